import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from allennlp.common import Params, plugins
from allennlp.data.tokenizers import PretrainedTransformerTokenizer
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from transformers import BertConfig, BertTokenizerFast

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.running.fork_server import start_fork_server
from fiesta_allennlp.running.processes import start_call
from tests.conftest import PRELOADED


def test_a_plugin_that_cannot_be_imported_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise AttributeError("module 'torch' has no attribute 'six'")

    monkeypatch.setattr(plugins, "import_plugins", fail)
    runpy.run_module("fiesta_allennlp.candidates.allennlp.loaded")
    told = capsys.readouterr().err
    assert re.search(r"AttributeError: .*'six' \(\S+loaded_test.py, line \d+\)", told)


def state_of_a_worker() -> "tuple[bool, bool, bool]":
    return torch.cuda._is_in_bad_fork(), "allennlp.models" in sys.modules, "cupy" in sys.modules


def test_a_worker_of_a_server_that_has_loaded_everything_can_use_a_gpu() -> None:
    assert start_call(start_fork_server(1, PRELOADED), state_of_a_worker).result() == (False, True, False)


PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "good", "##ness", "1", "2")


def test_the_tokenizer_of_a_transformer_gives_its_word_pieces(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    BertConfig(vocab_size=len(PIECES)).save_pretrained(tmp_path)
    with_ends = PretrainedTransformerTokenizer(str(tmp_path))
    assert [token.text for token in with_ends.tokenize("Goodness a")] == ["[CLS]", "good", "##ness", "a", "[SEP]"]
    without_ends = PretrainedTransformerTokenizer(str(tmp_path), add_special_tokens=False)
    assert [token.text_id for token in without_ends.tokenize("Goodness a")] == [7, 8, 5]


def test_the_learning_rate_falls_where_the_metric_does_not_improve() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    params = {"type": "reduce_on_plateau", "mode": "max", "factor": 0.5, "patience": 0, "verbose": True}
    scheduler = LearningRateScheduler.from_params(Params(params), optimizer=optimizer)
    rates = []
    for accuracy in (0.6, 0.7, 0.7, 0.8, 0.1):
        scheduler.step(accuracy)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.25]
