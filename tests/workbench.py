"""Small models of the example tasks, and the instances that they are tried and trained on."""

import json
import logging
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Sequence

import pytest
import torch
from allennlp.common import Params
from allennlp.common.testing import ModelTestCase
from allennlp.data import Batch, DatasetReader, Instance, TensorDict, Vocabulary
from allennlp.models import Model
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.core.errors import DataError


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


def read_damaged(path: Path, put: Sequence[bytes], read: Callable[[Path], None]) -> Callable[[], None]:
    """A test that a file with anything changed is read, or refused with its name: bytes of a good file are cut out, put
    in or overwritten, anywhere. Some of what is put in is `put`."""

    @settings(max_examples=50, deadline=None)
    @given(data=some.data())
    def check(data: some.DataObject) -> None:
        content = path.read_bytes()
        for _ in range(data.draw(some.integers(1, 3))):
            start = data.draw(some.integers(0, len(content)))
            end = start + data.draw(some.sampled_from([0, 1, 2, 30, len(content)]))
            new = data.draw(some.one_of(some.binary(max_size=4), some.sampled_from(list(put))))
            content = content[:start] + new + content[end:]
        with tempfile.TemporaryDirectory() as scratch:
            changed = Path(scratch) / f"changed{path.suffix}"
            changed.write_bytes(content)
            try:
                return read(changed)
            except DataError as error:
                message = str(error)
            assert str(changed) in message

    return check
