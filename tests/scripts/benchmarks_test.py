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
    assert [e.request.name for e in steps.documents(2, 4)] == ["c0-0", "c1-0", "c0-1", "c1-1"]
    assert steps.milliseconds("dirichlet_f_measure", 2, 20, 2) > 0


def test_the_synthetic_documents_of_haffari(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    haffari = import_module("reproduce_haffari")
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--processes", "1", "--problems", "0.05:5"])
    haffari.main()
    lines = capsys.readouterr().out.strip().splitlines()[2:]
    assert all(line.count("|") == len(haffari.HEADINGS) + 1 for line in lines)
    rows = [line.split(" | ") for line in lines[2:]]
    assert [row[2] for row in rows] == ["Baseline2", "BaselineK-1", *haffari.METHODS]
    assert [row[3] for row in rows] == ["120", "185", "513 (100 %)", "22 (100 %)", "360 (100 %)", "19 (100 %)"]


def test_the_rates_of_haffari_have_the_f_measure_asked_for() -> None:
    haffari = import_module("reproduce_haffari")
    setting = haffari.Setting(positives=0.3, misses=0.8)
    tp, fp, fn, tn = setting.rates(0.85)
    assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(0.85)
    assert fn == pytest.approx(4 * fp)
    assert tp + fp + fn + tn == pytest.approx(1)
    assert setting.rates(1.0) == pytest.approx([0.3, 0, 0, 0.7])


def test_documents_of_haffari_are_as_alike_as_asked_for() -> None:
    haffari = import_module("reproduce_haffari")
    apart = haffari.Setting(items=10**6, best=0.8, concentration=20.0)
    alike = haffari.Setting(items=10**6, best=0.8, concentration=20.0, alike=0.9)
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(4000, 4))
    pair = [haffari.f_measures(alike.documents(0.8, 4000, rng, shared)) for _ in range(2)]
    alone = haffari.f_measures(apart.documents(0.8, 4000, rng))
    assert np.corrcoef(*pair)[0, 1] > 0.8
    assert pair[0].mean() == pytest.approx(alone.mean(), abs=0.01)
    assert pair[0].std() == pytest.approx(alone.std(), rel=0.06)
