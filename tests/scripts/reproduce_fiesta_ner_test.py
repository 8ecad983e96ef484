import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, List

import numpy as np
import pytest


@pytest.fixture
def script() -> ModuleType:
    return import_module("reproduce_fiesta_ner")


@pytest.fixture
def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> Callable:
    """Runs the script. Returns what it printed."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["x", *arguments, "--output", str(tmp_path / "out"), "--repetitions", "4"])
        script.main()
        return str(capsys.readouterr().out)

    return call


def split(cnn: List[float], lstm: List[float]) -> List[List[Any]]:
    """A split as in the released file. The dev F1 is of no importance."""
    return [[0.5, score, name] for name, scores in (("cnn", cnn), ("lstm", lstm)) for score in scores]


SPLITS = [
    split([0.940, 0.942, 0.944, 0.941, 0.943], [0.945, 0.947, 0.946, 0.944, 0.948]),
    split([0.946, 0.945, 0.948, 0.947, 0.944], [0.943, 0.944, 0.945, 0.942, 0.946]),
    split([0.938, 0.790, 0.940, 0.939, 0.937], [0.941, 0.942, 0.940, 0.943, 0.944]),
    split([0.942, 0.943, 0.941, 0.944, 0.940], [0.944, 0.946, 0.946, 0.944, 0.948]),
]


def test_the_figure_and_the_replays_of_a_small_file(
    tmp_path: Path, run: Callable, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"max_evaluations": 20}  # the file has 20 runs of each
    procedures = tuple((name, {**options, **few}) for name, options in script.PROCEDURES)
    monkeypatch.setattr(script, "PROCEDURES", procedures)
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(SPLITS))
    printed = run(str(path))
    assert "| 0 | 0.9420 | 0.9460 | +0.0040 |" in printed
    assert "| 1 | 0.9460 | 0.9440 | -0.0020 |" in printed
    assert "| 2 | 0.9088 | 0.9420 | +0.0332 |" in printed
    assert "| all | 0.9347 | 0.9444 | +0.0097 |" in printed
    assert "lstm leads on 3 of 4 splits by the mean of their runs" in printed
    assert "Runs that did not converge: 1 of cnn, 0 of lstm." in printed
    rows = [line for line in printed.splitlines() if line.startswith(("| as released |", "| unconverged"))]
    assert len(rows) == 8
    assert (tmp_path / "out" / "figure1.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_did_not_converge_gets_the_mean_of_the_others_of_its_split(script: ModuleType) -> None:
    scores = script.scores_of(SPLITS)
    assert np.argwhere(script.unconverged(scores)["cnn"]).tolist() == [[2, 1]]
    mended = script.mended(scores)
    assert mended["cnn"][2, 1] == pytest.approx((0.938 + 0.940 + 0.939 + 0.937) / 4)
    assert np.delete(mended["cnn"].ravel(), 11).tolist() == np.delete(scores["cnn"].ravel(), 11).tolist()
    assert (mended["lstm"] == scores["lstm"]).all()


def test_synthetic_selections(run: Callable) -> None:
    printed = run("--synthetic", "1", "--procedure", "the default")
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if " | the default | " in line]
    assert [row[0] for row in rows] == ["all runs converge", "4 of 750 of cnn do not", "4 of 750 of lstm do not"]
    for row in rows:
        right, wrong = float(row[3].split()[0]), float(row[4])
        assert right + wrong <= 1
