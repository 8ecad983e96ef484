"""What terminals and files are shown."""

import os
import re
from functools import partial
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any, Dict, List, Tuple

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fiesta_allennlp.choosing.forecast import Forecast
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.console import PipeSafeConsole
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.reports.progress import LiveTable
from fiesta_allennlp.selecting.results.candidate_result import CollapsedRuns
from fiesta_allennlp.selecting.results.result import Result


def facts(history: History, decision: Decision, **further_facts: Any) -> Result:
    metric = Metric.parse("accuracy")
    return Result.from_decision(history, decision, metric, running=True, **further_facts)


def test_a_probable_winner_waits_for_who_runs_again_and_not_for_an_estimate() -> None:
    file = StringIO()
    about_9 = Forecast(9, 9, 9, is_limited=False, prob_decided=1.0)
    progress = LiveTable(Console(file=file, width=200), make_result=partial(facts, forecast=about_9))
    request = Request("able", 0, 1, 2, 3, 4)
    for number, lacking in ((1, ()), (2, ("blind", "able"))):
        outcome = Evaluation(request, 0.5, "accuracy", seconds=1.0)
        progress.on_outcome(outcome)
        progress.on_state(History(("able", "blind"), (outcome,) * number), Decision(best="able", lacking=lacking))
    first, second = file.getvalue().splitlines()
    assert first.endswith("] able-0 0.5000; about 9 more runs")
    assert second.endswith("] able-0 0.5000; at least 2 more runs")


def test_an_error_is_shown_once() -> None:
    file = StringIO()
    progress = LiveTable(Console(file=file, width=200), make_result=facts)
    for name, replicate, error in (("able", 0, "no file"), ("able", 1, "no file"), ("blind", 0, "no GPU")):
        progress.on_outcome(Failure(Request(name, replicate, 1, 2, 3, 4), "error", error))
    lines = [line.partition("] ")[2] for line in file.getvalue().splitlines()]
    assert [line.partition(" s: ")[2] for line in lines] == ["no file", "the error of able-0", "no GPU"]


def test_lines_have_the_leader_and_a_collapsed_run_once() -> None:
    file = StringIO()
    collapsed = (CollapsedRuns("able", 5, {"able-0": 0.1}, sds=20.0),)
    found: Dict[int, Tuple[CollapsedRuns, ...]] = {1: (), 2: collapsed, 3: collapsed}

    def make_result(history: History, decision: Decision) -> Result:
        return facts(history, decision, expected_loss=0.00042, collapsed=found[len(history.evaluations)])

    progress = LiveTable(Console(file=file, width=300), make_result=make_result)
    outcome = Evaluation(Request("able", 0, 1, 2, 3, 4), 0.5, "accuracy", seconds=1.0)
    for number, stopped_by in ((1, None), (2, None), (3, "confidence")):
        progress.on_outcome(outcome)
        decision = Decision("able", prob_within_margin={"able": 0.9}, stopped_by=stopped_by)
        progress.on_state(History(("able", "blind"), (outcome,) * number), decision)
    first, note, second, last = [line.partition("] ")[2] for line in file.getvalue().splitlines()]
    assert first == second == last == "able-0 0.5000; able P(best) 0.900"
    assert re.match(r"Note: 1 of 5 runs of able .*20 .*\(able-0: 0\.1\)", note)


def test_the_table_tells_what_is_queued_from_what_runs() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80, legacy_windows=False)
    queued: List[str] = []
    progress = LiveTable(console, make_result=facts, find_queued=lambda: queued)
    pending = [Request(name, replicate, 1, 2, 3, 4) for name in ("able", "blind") for replicate in range(3)]

    def shown() -> List[str]:
        with console.capture() as capture:
            console.print(progress._build_table(), no_wrap=True)
        return [" ".join(line.split()) for line in Text.from_ansi(capture.get()).plain.splitlines()]

    progress.on_state(History(("able", "blind", "rest"), pending=tuple(pending)), Decision(best=None))
    assert shown()[0].startswith("accuracy: 0 runs, 6 running, 0:00:0")
    assert not any("queued" in line for line in shown())
    queued += [pending[0].name, pending[1].name, "rest-0"]  # the last one is no longer pending
    assert shown()[0].startswith("accuracy: 0 runs, 4 running, 2 queued")
    rows = [line for line in shown() if line.startswith(("able", "blind", "rest"))]
    assert rows[0].startswith("able 0 1 2 ") and rows[1].startswith("blind 0 3 ") and rows[2].startswith("rest 0 ")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
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
        with LiveTable(console, make_result=facts) as progress:
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


@pytest.mark.parametrize(("term", "is_terminal"), [("xterm", True), ("dumb", False), ("unknown", False)])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, is_terminal: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    assert PipeSafeConsole(force_terminal=True).is_terminal == is_terminal
