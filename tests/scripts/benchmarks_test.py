"""The scripts are run by hand, for minutes; here on two repetitions of something small, so that they cannot rot."""

import json
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Callable

import numpy as np
import pytest

from fiesta_allennlp.replays.sources import PRESETS
from fiesta_allennlp.reports.results import CandidateResult, SelectionResult
from fiesta_allennlp.selection.strategy_building import build_strategy

CANDIDATE_KEYS = [f.name for f in fields(CandidateResult) if f.name not in ("name", "failure_reasons")]
SELECTION_KEYS = [f.name for f in fields(SelectionResult)]


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


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Runs the script on a source. Returns the directory of its output."""
    script = import_module("reproduce_paper")
    monkeypatch.setattr(script, "BUDGETS", (48, 96))
    monkeypatch.setattr(script, "CONFIDENCES", (0.8,))
    monkeypatch.setattr(script, "PAPER", {key: texts[-1:] for key, texts in script.PAPER.items()})

    def run(source: Path) -> Path:
        options = ["--output", str(tmp_path / "out"), "--repetitions", "2", "--processes", "1"]
        monkeypatch.setattr(sys, "argv", ["reproduce_paper.py", str(source), *options])
        script.main()
        return tmp_path / "out"

    return run


def test_the_paper_is_reproduced_beside_its_numbers(
    shared_data: Path, reproduce: Callable[..., Path], capsys: pytest.CaptureFixture
) -> None:
    out = reproduce(shared_data / "scores" / "fiesta_tdsa_test_f1.json")
    text = (out / "tables.md").read_text()
    assert "| tdlstm | 500 | 0.6462 | 0.0265 | 0.5680 | 0.6457 | 0.7187 |" in text
    assert "| table 2 | TTTS | 0.8 | 24 / 65 / 274, 97 % | " in text
    assert "| table 3 | BTS, batches of 8 | 0.8 | 32 / 106 / 352, 99 % | " in text
    assert text.count("| the default, batches of ") == 3
    assert sum(line.startswith(("| independent |", "| shared |")) for line in text.splitlines()) == 4
    assert text in capsys.readouterr().out
    for figure in ("figure3.png", "figure4.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")


def test_figure_3_of_a_selection(tmp_path: Path, reproduce: Callable[..., Path]) -> None:
    entries = [{"name": name, "failure_reasons": [], **dict.fromkeys(CANDIDATE_KEYS, 0)} for name in ("a", "b", "c")]
    summary = {**dict.fromkeys(SELECTION_KEYS), "metric": "f1", "candidates": entries}
    (tmp_path / "selection.json").write_text(json.dumps(summary))
    rows = [
        "candidate,status,score",
        "a,finished,0.5",
        "b,finished,0.75",
        "b,failed,",
        "b,finished,0.25",
        "b,finished,1",
    ]
    (tmp_path / "evaluations.csv").write_text("\n".join(rows))
    out = reproduce(tmp_path)
    table = [line for line in (out / "tables.md").read_text().splitlines() if line.startswith(("| a", "| b", "| c "))]
    assert table == [
        "| b | 3 | 0.6667 | 0.3819 | 0.2500 | 0.7500 | 1.0000 |",
        "| a | 1 | 0.5000 | nan | 0.5000 | 0.5000 | 0.5000 |",
    ]
    assert (out / "figure3.png").is_file()
    assert not (out / "figure4.png").exists()


def test_a_wrong_table_is_told(tmp_path: Path, reproduce: Callable[..., Path]) -> None:
    (tmp_path / "scores.json").write_text(json.dumps({"tdlstm": [0.5] * 5, "mine": [0.4] * 5}))
    with pytest.raises(SystemExit, match="has no candidate 'atae'"):
        reproduce(tmp_path / "scores.json")
