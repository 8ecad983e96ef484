"""That both sides train, on a few sentences. AllenNLP's field stands in for pytorch-crf, which may not be there."""

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import List

import pytest
import torch
from allennlp.modules import ConditionalRandomField

from tests.conftest import REPOSITORY

SENTENCES = REPOSITORY / "tests" / "fixtures" / "tagging" / "small.conll"


class StandIn(ConditionalRandomField):
    """pytorch-crf's interface."""

    def __init__(self, num_tags: int, batch_first: bool) -> None:
        assert batch_first
        super().__init__(num_tags)

    def forward(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().forward(emissions, tags, mask)

    def decode(self, emissions: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
        return [tags for tags, _ in self.viterbi_tags(emissions, mask)]


def test_epochs_of_both_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setitem(sys.modules, "torchcrf", SimpleNamespace(CRF=StandIn))  # type: ignore[arg-type]
    for name in ("FIESTA_TAGGING", "FIESTA_VECTORS"):
        monkeypatch.setenv(name, "")  # restores what the script sets
    rows = [f"{word} " + " ".join([f"{number / 9:.3f}"] * 100) for number, word in enumerate(("rome", "the", "met"))]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    files = ",".join([str(SENTENCES)] * 3)
    how = ["--files", files, "--vectors", str(tmp_path / "vectors.txt"), "--epochs", "25"]
    monkeypatch.setattr(sys, "argv", ["tagging.py", *how])
    import_module("tagging").main()
    lines = capsys.readouterr().out.splitlines()
    for name in ("fiesta_allennlp", "bare PyTorch, pytorch-crf"):
        training, validation, epoch, score = map(
            float, next(line for line in lines if line.startswith(f"| {name} ")).strip("| ").split(" | ")[1:]
        )
        assert epoch > 0 and training >= 0 and validation >= 0
        assert score > 0.1
    assert any(line.startswith("ratio of an epoch ") for line in lines)
    parts = [line.strip("| ").split(" | ")[0] for line in lines[lines.index("| part | seconds | share |") + 2 :]]
    assert set(parts) >= {"batches", "characters", "word vectors", "encoder", "CRF", "gradients", "forward, the rest"}
