"""That both sides train: on the sample's sentences, with random vectors."""

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import REPOSITORY
from tests.scripts.conftest import BENCHMARKS

SAMPLE = REPOSITORY / "data" / "sample"


def test_an_evaluation_is_timed_and_so_is_the_bare_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([BENCHMARKS, str(REPOSITORY)]))  # for the workers
    for name in ("FIESTA_DATA", "FIESTA_VECTORS"):
        monkeypatch.setenv(name, "")  # restores what the script sets
    for ours, theirs in (("train", "Train_v2"), ("test", "Test_Gold")):
        shutil.copy(SAMPLE / f"restaurants_{ours}.xml", tmp_path / f"Restaurants_{theirs}.xml")
    rng = np.random.default_rng(1)
    words = [line.split(" ")[0] for line in (SAMPLE / "vectors.25d.txt").open(encoding="utf-8")]
    rows = [f"{word} " + " ".join(f"{value:.3f}" for value in rng.normal(0, 0.5, 50)) for word in words]
    (tmp_path / "vectors.50d.txt").write_text("\n".join(rows), encoding="utf-8")
    how = ["--data", str(tmp_path), "--vectors", str(tmp_path / "vectors.50d.txt"), "--epochs", "3"]
    monkeypatch.setattr(sys, "argv", ["training.py", *how, "--repetitions", "1"])
    import_module("training").main()
    lines = capsys.readouterr().out.splitlines()
    for name in ("fiesta_allennlp", "bare PyTorch"):
        row = next(line for line in lines if line.startswith(f"| {name} "))
        *seconds, score = map(float, row.strip("| ").split(" | ")[1:])
        assert len(seconds) == 4
        assert seconds[0] >= seconds[1] > 0
        assert score > 0.4
    assert any(line.startswith("whole-evaluation ratio ") for line in lines)
