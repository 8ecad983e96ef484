from io import StringIO
from typing import List

import pytest
from rich.console import Console
from rich.text import Text

from fiesta_allennlp.listeners.progress import Progress, counting, repetition_bar
from fiesta_allennlp.records import Decision, Evaluation, History, Request


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_counts_on_a_terminal_and_names_are_told_one_by_one_elsewhere(is_terminal: bool) -> None:
    console = Console(file=StringIO(), force_terminal=is_terminal, width=80, legacy_windows=False)
    with repetition_bar(console, 50) as advance:
        advance(20)
        advance(10)
    bar = console.file.getvalue()  # type: ignore[attr-defined]
    assert "30/50" in bar if is_terminal else bar == ""
    with counting(console, 2) as checked:
        checked("first")
        checked("[second]")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("2/2" in shown) is is_terminal
    assert ("  first\n  [second]\n" in shown) is not is_terminal


def test_a_probable_winner_waits_for_who_runs_again_and_not_for_an_estimate() -> None:
    file = StringIO()
    progress = Progress(Console(file=file, width=200), "accuracy", remaining=lambda history: "; about 9 more runs")
    request = Request("able", 0, 1, 2, 3, 4)
    for number, lacking in ((1, ()), (2, ("blind", "able"))):
        outcome = Evaluation(request, 0.5, "accuracy", seconds=1.0)
        progress.on_outcome(outcome)
        progress.on_state(History(("able", "blind"), (outcome,) * number), Decision(best="able", lacking=lacking))
    first, second = file.getvalue().splitlines()
    assert first.endswith(" in 1.0 s; about 9 more runs")
    assert second.endswith(" in 1.0 s; blind runs again before a winner is named")


def test_the_table_tells_what_waits_from_what_runs() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80, legacy_windows=False)
    progress = Progress(console, "accuracy")
    pending = [Request(name, replicate, 1, 2, 3, 4) for name in ("able", "blind") for replicate in range(3)]

    def shown() -> List[str]:
        with console.capture() as capture:
            console.print(progress._table(), no_wrap=True)
        return [" ".join(line.split()) for line in Text.from_ansi(capture.get()).plain.splitlines()]

    progress.on_state(History(("able", "blind", "rest"), pending=tuple(pending)), Decision(best=None))
    assert shown()[0].startswith("accuracy: 0 runs, 6 running, 0:00:0")
    assert not any("waiting" in line for line in shown())
    progress.on_waiting([*pending[:2], Request("rest", 0, 1, 2, 3, 4)])  # the last one is no longer pending
    assert shown()[0].startswith("accuracy: 0 runs, 4 running, 2 waiting for another try, 0:00:0")
    rows = [line for line in shown() if line.startswith(("candidate", "able", "blind", "rest"))]
    assert rows[0] == "candidate runs running waiting failed mean sd P(best) seconds"
    assert rows[1].startswith("able 0 1 2 ") and rows[2].startswith("blind 0 3 ") and rows[3].startswith("rest 0 ")
