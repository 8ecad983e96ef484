"""That our training and the bare loop both train, on a few sentences."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Callable, List

import numpy as np
import pytest
import torch
from allennlp.modules import ConditionalRandomField

from tests.conftest import REPOSITORY
from tests.scripts.conftest import cells_of

SAMPLE = REPOSITORY / "data" / "sample"


def test_an_evaluation_is_timed_and_so_is_the_bare_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("FIESTA_DATA", "FIESTA_VECTORS"):
        monkeypatch.setenv(name, "")  # restores what the script sets
    for ours, theirs in (("train", "Train_v2"), ("test", "Test_Gold")):
        shutil.copy(SAMPLE / f"restaurants_{ours}.xml", tmp_path / f"Restaurants_{theirs}.xml")
    rng = np.random.default_rng(1)
    words = [line.split(" ")[0] for line in (SAMPLE / "vectors.25d.txt").open(encoding="utf-8")]
    rows = [f"{word} " + " ".join(f"{value:.3f}" for value in rng.normal(0, 0.5, 50)) for word in words]
    (tmp_path / "vectors.50d.txt").write_text("\n".join(rows), encoding="utf-8")
    how = ("--data", tmp_path, "--vectors", tmp_path / "vectors.50d.txt", "--epochs", 3, "--repetitions", 1)
    printed = run_script("training", *how)
    rows = {row[0]: row[1:] for row in cells_of(printed)}
    for name in ("fiesta_allennlp", "bare PyTorch"):
        *seconds, score = map(float, rows[name])
        assert len(seconds) == 4 and seconds[0] >= seconds[1] > 0
        assert score > 0.4
    assert "\nwhole-evaluation ratio " in printed


SENTENCES = REPOSITORY / "tests" / "fixtures" / "tagging" / "small.conll"


class StandIn(ConditionalRandomField):
    """pytorch-crf's interface."""

    def __init__(self, num_tags: int, batch_first: bool) -> None:
        assert batch_first
        super().__init__(num_tags)

    def decode(self, emissions: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
        return [tags for tags, _ in self.viterbi_tags(emissions, mask)]


def test_epochs_of_both_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setitem(sys.modules, "torchcrf", SimpleNamespace(CRF=StandIn))  # type: ignore[arg-type]
    for name in ("FIESTA_TAGGING", "FIESTA_VECTORS"):
        monkeypatch.setenv(name, "")  # restores what the script sets
    rows = [f"{word} " + " ".join([f"{number / 9:.3f}"] * 100) for number, word in enumerate(("rome", "the", "met"))]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    files = ",".join([str(SENTENCES)] * 3)
    how = ("--files", files, "--vectors", tmp_path / "vectors.txt", "--epochs", 25)
    printed = run_script("tagging", *how)
    rows = {row[0]: row[1:] for row in cells_of(printed)}
    for name in ("fiesta_allennlp", "bare PyTorch, pytorch-crf"):
        training, validation, epoch, score = map(float, rows[name])
        assert epoch > 0 and training >= 0 and validation >= 0
        assert score > 0.1
    assert "\nratio of an epoch " in printed
    assert set(rows) >= {"batches", "characters", "word vectors", "encoder", "CRF", "gradients", "forward, the rest"}
