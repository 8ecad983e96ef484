"""What terminals and files are shown."""

import os
from io import BytesIO, StringIO, TextIOWrapper
from typing import Dict, List

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fiesta_allennlp.core.records import Decision, Evaluation, Failure, History, Request
from fiesta_allennlp.selection.console import PipeSafeConsole
from fiesta_allennlp.selection.progress import ProgressDisplay
from fiesta_allennlp.selection.texts import loss_text


def test_a_probable_winner_waits_for_who_runs_again_and_not_for_an_estimate() -> None:
    file = StringIO()
    progress = ProgressDisplay(
        Console(file=file, width=200), "accuracy", describe_forecast=lambda history: "about 9 more runs"
    )
    request = Request("able", 0, 1, 2, 3, 4)
    for number, lacking in ((1, ()), (2, ("blind", "able"))):
        outcome = Evaluation(request, 0.5, "accuracy", seconds=1.0)
        progress.on_outcome(outcome)
        progress.on_state(History(("able", "blind"), (outcome,) * number), Decision(best="able", lacking=lacking))
    first, second = file.getvalue().splitlines()
    assert first.endswith(" in 1.0 s; about 9 more runs")
    assert second.endswith(" in 1.0 s; before a winner is named: blind 0 of at least 1 runs, able 2 of at least 3 runs")


def test_an_error_is_shown_once() -> None:
    file = StringIO()
    progress = ProgressDisplay(Console(file=file, width=200), "accuracy")
    for name, replicate, error in (("able", 0, "no file"), ("able", 1, "no file"), ("blind", 0, "no GPU")):
        progress.on_outcome(Failure(Request(name, replicate, 1, 2, 3, 4), "error", error))
    lines = [line.partition("] ")[2] for line in file.getvalue().splitlines()]
    assert [line.partition(" s: ")[2] for line in lines] == ["no file", "the error of able-0", "no GPU"]


def test_lines_have_the_cost_of_choosing_now_and_a_collapsed_run_once() -> None:
    file = StringIO()
    found = {"able": "1 of 5 runs of able lies far below"}
    collapsed: Dict[int, Dict[str, str]] = {1: {}, 2: found, 3: found}
    progress = ProgressDisplay(
        Console(file=file, width=200), "accuracy", find_collapsed=lambda history: collapsed[len(history.evaluations)]
    )
    outcome = Evaluation(Request("able", 0, 1, 2, 3, 4), 0.5, "accuracy", seconds=1.0)
    for number, stopped_by in ((1, None), (2, None), (3, "confidence")):
        progress.on_outcome(outcome)
        decision = Decision("able", prob_within_margin={"able": 0.9}, stopped_by=stopped_by, expected_loss=0.00042)
        progress.on_state(History(("able", "blind"), (outcome,) * number), decision)
    first, note, second, last = [line.partition("] ")[2] for line in file.getvalue().splitlines()]
    said = "able-0 accuracy 0.5000 in 1.0 s; able leads with probability 0.900"
    assert first == second == f"{said}; choosing able now costs 0.00042 on average"
    assert note == "Note: 1 of 5 runs of able lies far below"
    assert last == said, "a selection that is over has chosen"


def test_the_table_tells_what_waits_from_what_runs() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80, legacy_windows=False)
    progress = ProgressDisplay(console, "accuracy")
    pending = [Request(name, replicate, 1, 2, 3, 4) for name in ("able", "blind") for replicate in range(3)]

    def shown() -> List[str]:
        with console.capture() as capture:
            console.print(progress._build_table(), no_wrap=True)
        return [" ".join(line.split()) for line in Text.from_ansi(capture.get()).plain.splitlines()]

    progress.on_state(History(("able", "blind", "rest"), pending=tuple(pending)), Decision(best=None))
    assert shown()[0].startswith("accuracy: 0 runs, 6 running, 0:00:0")
    assert not any("waiting" in line for line in shown())
    progress.on_waiting([*pending[:2], Request("rest", 0, 1, 2, 3, 4)])  # the last one is no longer pending
    assert shown()[0].startswith("accuracy: 0 runs, 4 running, 2 waiting for another try")
    rows = [line for line in shown() if line.startswith(("able", "blind", "rest"))]
    assert rows[0].startswith("able 0 1 2 ") and rows[1].startswith("blind 0 3 ") and rows[2].startswith("rest 0 ")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("With a margin of 0.00051 it ends.", "With a margin of\n0.00051 it ends.\n"),
        ("of a_rather_long_name_for_a-model it", "of\na_rather_long_name_for_a-model\nit\n"),
        ("Go on with: allennlp fiesta-select -s x", "Go on with: allennlp fiesta-select -s x\n"),
    ],
)
def test_a_terminal_gets_messages_broken_at_blanks_and_commands_whole(said: str, shown: str) -> None:
    file, piped = StringIO(), StringIO()
    PipeSafeConsole(file=file, force_terminal=True, width=20, color_system=None).print(said, soft_wrap=True)
    assert file.getvalue() == shown
    console = PipeSafeConsole(file=piped, width=20)
    console.print(said, soft_wrap=True)
    console.print("one   ")
    console.print("two ", end="")
    console.print("three")
    assert piped.getvalue() == f"{said}\none\ntwo three\n"


def test_a_terminal_that_is_closed_or_a_full_disk_ends_nothing() -> None:
    ours, theirs = os.openpty()
    with open(theirs, "w") as terminal:
        console = PipeSafeConsole(file=terminal, force_terminal=True)
        with ProgressDisplay(console, "accuracy") as progress:
            os.close(ours)
            with pytest.raises(OSError, match="Input/output error"):
                os.write(theirs, b"nobody reads")
            progress.on_outcome(Failure(Request("able", 0, 1, 2, 3, 4), "error", "no"))
        console.print("and more")
    with open("/dev/full", "w") as full:
        console = PipeSafeConsole(file=full)
        console.print("no room")
        console.print("none")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_a_terminal_would_obey_is_shown_as_escapes(is_terminal: bool) -> None:
    file = StringIO()
    console = PipeSafeConsole(file=file, force_terminal=is_terminal, width=60, color_system=None)
    table = Table(title="t\x07", box=None)
    table.add_column("h\x1b[2J")
    table.add_row(escape("a\x1b[red]\u202e\r"))
    console.print(table)
    console.print("one\n\x1b]0;TITLE\x07", markup=False)
    expected = [r"t\x07", r"h\x1b[2J", r"a\x1b[red]\u202e\r", "one", r"\x1b]0;TITLE\x07"]
    assert [line.strip() for line in file.getvalue().splitlines()] == expected


def test_what_an_output_cannot_encode_is_a_question_mark() -> None:
    written = BytesIO()
    console = PipeSafeConsole(file=TextIOWrapper(written, encoding="latin-1"))
    console.print("caf\u00e9 \u2013 \udcff")
    assert written.getvalue() == b"caf\xe9 ? \\udcff\n"


def test_a_cost_that_the_scores_do_not_show_is_less_than_their_last_decimal() -> None:
    assert loss_text("a", 0.00042) == "choosing a now costs 0.00042 on average"
    assert loss_text("a", 2.2e-14) == "choosing a now costs less than 0.0001 on average"
    assert loss_text("a", 2.2e-6, 6) == "choosing a now costs 2.2e-06 on average"
    assert loss_text("a", None) == ""


@pytest.mark.parametrize(("term", "is_terminal"), [("xterm", True), ("dumb", False), ("unknown", False)])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, is_terminal: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    assert PipeSafeConsole(force_terminal=True).is_terminal == is_terminal
