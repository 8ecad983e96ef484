"""That the bare models are the same as ours, and that both sides train on the sample."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Dict, List

import pytest
import torch

from tests.conftest import REPOSITORY
from tests.scripts.conftest import SCRIPTS
from tests.tdsa.conftest import ENCODERS, Workbench


@pytest.fixture
def models() -> ModuleType:
    return importlib.import_module("bare_models")


def in_bare_order(parameters: List[torch.Tensor]) -> List[torch.Tensor]:
    """Ours have weight and bias of one attention of IAN beside each other; the bare model has both weights first."""
    if len(parameters) == 15:
        *before, weight, bias, other_weight, other_bias, out, out_bias = parameters
        return [*before, weight, other_weight, bias, other_bias, out, out_bias]
    return parameters


@pytest.mark.parametrize("kind", ["td_lstm", "atae_lstm", "ian"])
def test_the_bare_models_compute_what_ours_do(models: ModuleType, kind: str) -> None:
    workbench = Workbench()
    mine = workbench.model(kind)
    matrix = next(mine.parameters()).detach()
    embedder = {"token_embedders": {"tokens": {}}}
    bare = models.MODELS[kind](matrix.clone(), {"text_field_embedder": embedder, **ENCODERS[kind]}, 3).eval()
    given = in_bare_order(list(mine.parameters()))
    with torch.no_grad():
        for parameter, value in zip(bare.parameters(), given, strict=True):
            assert parameter.shape == value.shape
            parameter.copy_(value)
        tensors = workbench.tensors(workbench.instances)
        ids = {name: tensors[name]["tokens"]["tokens"] for name in bare.reads}
        if "right" in ids:
            backwards = [row[row != 0].flip(0) for row in ids["right"]]
            ids["right"] = torch.nn.utils.rnn.pad_sequence(backwards, batch_first=True)
        assert torch.allclose(bare(ids), mine(**tensors)["logits"], atol=1e-6)


def test_both_train_on_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SCRIPTS, str(REPOSITORY)]))  # for the workers
    script = importlib.import_module("benchmark_epochs")
    arguments = ["--candidates", "training_configs/sample/tdlstm.jsonnet", "--epochs", "3", "--repetitions", "1"]
    monkeypatch.setattr(sys, "argv", ["benchmark_epochs.py", *arguments])
    script.main()
    row = next(line for line in capsys.readouterr().out.splitlines() if "tdlstm" in line)
    cells = [cell.strip() for cell in row.strip("│ ").split("│")]
    assert len(cells) == 6
    assert all(float(cell.split()[0]) > 0 for cell in cells[1:5])
    accuracies: Dict[str, float] = dict(zip(("ours", "bare"), map(float, cells[5].split(" / ")), strict=True))
    assert min(accuracies.values()) > 0.5


def test_texts_are_padded_to_the_batch_or_to_the_longest_of_all() -> None:
    script = importlib.import_module("benchmark_epochs")
    rows = [({"text": torch.tensor([3, 4])}, 1), ({"text": torch.tensor([], dtype=torch.long)}, 0)]
    ids, labels = script.Collate({})(rows)
    assert ids["text"].tolist() == [[3, 4], [0, 0]]
    assert labels.tolist() == [1, 0]
    assert script.Collate({"text": 4})(rows)[0]["text"].tolist() == [[3, 4, 0, 0], [0, 0, 0, 0]]
