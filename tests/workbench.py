"""Small models of the example tasks, and the instances that they are tried and trained on."""

import json
import logging
from typing import Any, Dict, Iterable, Iterator, Mapping

import pytest
import torch
from allennlp.common import Params
from allennlp.common.testing import ModelTestCase
from allennlp.data import Batch, DatasetReader, Instance, TensorDict, Vocabulary
from allennlp.models import Model


class Workbench:
    """Models by name and the instances that they are tried on, all with one vocabulary."""

    def __init__(self, reader: DatasetReader, instances: Iterable[Instance], models: Mapping[str, Any]) -> None:
        self.reader = reader
        self.instances = list(instances)
        self.models = models
        self.vocab = Vocabulary.from_instances(self.instances)

    def model(self, name: str, **options: Any) -> Any:
        torch.manual_seed(7)
        params = json.dumps({"type": name, **self.models[name], **options})  # no part is taken apart twice
        return Model.from_params(Params(json.loads(params)), vocab=self.vocab).eval()

    def tensors(self, *instances: Instance) -> TensorDict:
        batch = Batch(instances or self.instances)
        batch.index_instances(self.vocab)
        return batch.as_tensor_dict()

    def logits(self, model: Model, *instances: Instance) -> torch.Tensor:
        with torch.no_grad():
            return model(**self.tensors(*instances))["logits"]


class ModelTraining(ModelTestCase):
    """Tests that a model learns, is saved, and answers the same after it is loaded."""

    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Any) -> Iterator[None]:
        self.directory = tmp_path
        before = list(logging.root.handlers)
        yield
        logging.root.handlers[:] = before  # AllenNLP leaves those that write into the directory of the training

    def config(self, reader: Mapping[str, Any], data: Any, model: Mapping[str, Any]) -> str:
        config: Dict[str, Any] = {
            "dataset_reader": reader,
            "train_data_path": str(data),
            "validation_data_path": str(data),
            "model": model,
            "data_loader": {"batch_size": 4},
            "trainer": {"num_epochs": 20, "optimizer": {"type": "adam", "lr": 0.1}, "cuda_device": -1},
        }
        path = self.directory / "config.json"
        path.write_text(json.dumps(config))
        return str(path)
