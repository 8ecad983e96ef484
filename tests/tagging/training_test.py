"""Every model learns, is saved, and answers the same after it is loaded."""

import json

import pytest
import torch
from allennlp.common import Params
from allennlp.common.testing import ModelTestCase
from allennlp.training.optimizers import Optimizer

from tests.tagging.conftest import FIXTURE, MODEL, NAMES, READER


class TestTraining(ModelTestCase):
    @pytest.fixture(autouse=True)
    def _config_directory(self, tmp_path):
        self.directory = tmp_path

    def config(self, name, convert_to="BIO"):
        config = {
            "dataset_reader": {**READER, "convert_to": convert_to},
            "train_data_path": str(FIXTURE),
            "validation_data_path": str(FIXTURE),
            "model": {"type": name, "label_encoding": convert_to, **MODEL},
            "data_loader": {"batch_size": 4},
            "trainer": {"num_epochs": 40, "optimizer": {"type": "nadam", "lr": 0.05}, "cuda_device": -1},
        }
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(config))
        return path

    @pytest.mark.parametrize("name", NAMES)
    def test_train_save_and_load(self, name):
        self.ensure_model_can_train_save_and_load(
            self.config(name), metric_to_check="f1-measure-overall", metric_terminal_value=1.0
        )

    def test_answers_for_one_sentence(self):
        self.set_up_model(self.config("crf_sequence_tagger"), FIXTURE)
        instance = self.instances[0]
        answer = self.model.eval().forward_on_instance(instance)
        assert answer["words"] == instance["metadata"]["words"]
        assert len(answer["tags"]) == len(answer["words"])
        assert answer["logits"].shape == (5, self.model._crf.num_tags)


def test_nadam_steps_as_pytorch_does():
    mine, theirs = (torch.nn.Parameter(torch.tensor([1.0, -2.0])) for _ in range(2))
    options = {"lr": 0.1, "betas": [0.8, 0.9], "eps": 1e-6, "weight_decay": 0.01, "momentum_decay": 0.01}
    optimizers = [
        Optimizer.from_params(Params({"type": "nadam", **options}), model_parameters=[("p", mine)]),
        torch.optim.NAdam([theirs], **{**options, "betas": (0.8, 0.9)}),
    ]
    for _ in range(3):
        for optimizer, parameter in zip(optimizers, (mine, theirs), strict=True):
            optimizer.zero_grad()
            (parameter**2).sum().backward()
            optimizer.step()
    assert torch.equal(mine, theirs)
    assert mine[0] != 1.0


def test_nadam_begins_with_pytorchs_settings():
    parameter = torch.nn.Parameter(torch.zeros(1))
    mine = Optimizer.from_params(Params({"type": "nadam"}), model_parameters=[("p", parameter)]).defaults
    theirs = torch.optim.NAdam([parameter]).defaults
    assert mine == theirs
