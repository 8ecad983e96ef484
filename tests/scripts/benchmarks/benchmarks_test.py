"""The scripts are run by hand, for minutes; here on something small, so that they cannot rot."""

from importlib import import_module
from typing import Callable

import pytest

from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.tables.sources import PRESETS
from tests.scripts.conftest import cells_of


def test_every_row_of_the_strategies_can_be_built_and_is_printed(
    monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    script = import_module("strategies")
    rows = [row for section in script.SECTIONS.values() for row in section]
    assert len({row.label for row in rows}) == len(rows) == 28
    for row in rows:
        build_strategy(row.settings(500), list(row.candidates))
    options = {"strategy": "sequential_halving", "budget": 8, "processes": 1}
    rows = [
        script.ReplayRow({**options, "splits": splits}, source=PRESETS["tie"]) for splits in ("shared", "independent")
    ]
    monkeypatch.setattr(script, "SECTIONS", {"Ties": rows})
    headings, _, row = cells_of(run_script("strategies", "--repetitions", 2, "--only", "shared"))
    assert (headings, len(row)) == (list(script.HEADINGS), len(script.HEADINGS))
    assert row[:1] + row[2:9] == ["sequential_halving", "shared", "1", "8", "-", "8.0", "8-8", "8.0"]


def test_the_estimate_is_compared_with_the_runs_that_followed(
    run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = import_module("remaining")
    found = iter([[(2, 5, 6, 9), (3, 1, 0, 2)], [(2, 7, 6, 9)]])
    monkeypatch.setattr(remaining, "outcomes", lambda replay, repetition: next(found))
    assert cells_of(run_script("remaining", "--repetitions", 2, "--problems", "near tie, 4"))[2:] == [
        ["near tie, 4", "8", "2", "6.0", "6 to 9", "0.50", "0.50", "0.00"],
        ["near tie, 4", "12", "1", "1.0", "0 to 2", "0.00", "1.00", "0.00"],
    ]
    monkeypatch.undo()
    assert remaining.outcomes(remaining.replayer("near tie, 4"), 0)


@pytest.mark.xdist_group("fork server")
@pytest.mark.usefixtures("undrawn")
def test_the_costs_of_a_report_of_the_overhead_and_of_a_step_are_measured(run_script: Callable[..., str]) -> None:
    pytest.importorskip("allennlp")
    first, *_, sizes = run_script("report", "--candidates", 3, "--evaluations", 12).splitlines()
    assert first.startswith("3 candidates, 12 evaluations, ") and "in all" in sizes
    options = ("--evaluations", 2, "--workers", 1, "--executors", "processes")
    (name, *numbers, wanted, processor) = cells_of(run_script("scaling", "overhead", *options))[-1]
    assert (name, wanted) == ("processes", "under 50")
    assert all(float(number) > 0 for number in [*numbers, processor])
    steps = import_module("steps")
    assert all(steps.milliseconds(belief, 2, 20, 2) > 0 for belief in ("split_paired", "dirichlet_f_measure"))
