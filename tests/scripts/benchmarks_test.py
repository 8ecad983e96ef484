"""The scripts are run by hand, for minutes; here on two repetitions of something small, so that they cannot rot."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from fiesta_allennlp.evaluators.score_presets import PRESETS
from fiesta_allennlp.strategy_building import build_strategy


@pytest.fixture
def script() -> ModuleType:
    return import_module("benchmark_strategies")


def test_every_row_can_be_built_and_told_apart(script: ModuleType) -> None:
    rows = [row for section in script.SECTIONS.values() for row in section]
    assert len({row.label for row in rows}) == len(rows) == 25
    for row in rows:
        build_strategy(row.settings(500), list(row.candidates))


def test_rows_are_printed_as_a_table(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    options = {"strategy": "sequential_halving", "budget": 8, "processes": 1}
    rows = [script.Row({**options, "splits": splits}, source=PRESETS["tie"]) for splits in ("shared", "independent")]
    monkeypatch.setattr(script, "SECTIONS", {"Ties": rows})
    monkeypatch.setattr(sys, "argv", ["benchmark_strategies.py", "--repetitions", "2", "--only", "shared"])
    script.main()
    title, blank, heading, rule, row = capsys.readouterr().out.strip().splitlines()
    assert (title, blank) == ("### Ties", "")
    assert heading.count("|") == rule.count("|") == row.count("|") == len(script.HEADINGS) + 1
    assert row.startswith("| sequential_halving | ")
    assert " | shared | 1 | 8 | - | 8.0 | 8-8 | 8.0 | " in row


def test_the_released_table_is_found(script: ModuleType, shared_data: Path) -> None:
    assert (shared_data / "scores" / script.RELEASED.name).is_file()


def test_a_family_of_problems_is_a_row(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    calibration = import_module("benchmark_calibration")
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--processes", "1", "--only", "two, .01"])
    calibration.main()
    row = capsys.readouterr().out.strip().splitlines()[-1]
    assert row.startswith("| two, .01 apart | 0 | ")
    assert row.count("|") == len(calibration.HEADINGS) + 1


def test_a_failing_candidate_keeps_its_mean() -> None:
    calibration = import_module("benchmark_calibration")
    family = calibration.Family("fails", {"a": 0.6, "b": 0.5}, failing="a")
    noise = family.noise("a", np.random.default_rng(1), 100000)
    assert abs(noise.mean()) < 0.001
    assert noise.std() == pytest.approx(np.hypot(0.0198, 0.1 * np.sqrt(0.2 * 0.8)), rel=0.01)
    heavy = calibration.Family("heavy", {"a": 0.6, "b": 0.5}, tail_df=5.0).noise("b", np.random.default_rng(1), 100000)
    assert heavy.std() == pytest.approx(0.0198, rel=0.02)


def test_a_step_is_timed() -> None:
    steps = import_module("benchmark_steps")
    assert len(steps.made_up(8, 100)) == 100
    assert steps.milliseconds("split_paired", 4, 20, 2) > 0
