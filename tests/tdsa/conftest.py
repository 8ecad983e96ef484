import json

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, Vocabulary
from allennlp.models import Model

import fiesta_allennlp.tdsa  # noqa: F401
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader

LSTM = {"type": "lstm", "input_size": 4, "hidden_size": 3}
ENCODERS = {
    "td_lstm": {"left_encoder": LSTM, "right_encoder": LSTM},
    "target_lstm": {"text_encoder": LSTM},
    "atae_lstm": {
        "target_encoder": {"type": "boe", "embedding_dim": 4, "averaged": True},
        "text_encoder": {**LSTM, "input_size": 8},
    },
    "ian": {"text_encoder": LSTM, "target_encoder": {**LSTM, "hidden_size": 2}},
}
CASES = [
    ("Soup was cold but we adored the bread", "Soup", "negative"),
    ("Soup was cold but we adored the bread", "bread", "positive"),
    ("Soup was cold but we adored the wine list", "wine list", "positive"),
    ("A table", "A table", "neutral"),
]


class Workbench:
    """A small model of each kind and the instances it is tried on, all with one vocabulary."""

    def __init__(self):
        self.reader = SemEvalTdsaReader()
        self.instances = [self.instance(*case) for case in CASES]
        self.vocab = Vocabulary.from_instances(self.instances)

    def instance(self, text, target, label=None):
        instance = self.reader.text_to_instance(text, target, label=label)
        self.reader.apply_token_indexers(instance)
        return instance

    def model(self, name, **options):
        params = {
            "type": name,
            "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
            **ENCODERS[name],
            **options,
        }
        torch.manual_seed(7)
        return Model.from_params(Params(json.loads(json.dumps(params))), vocab=self.vocab).eval()

    def tensors(self, instances):
        batch = Batch(instances)
        batch.index_instances(self.vocab)
        return batch.as_tensor_dict()

    def logits(self, model, *instances):
        with torch.no_grad():
            return model(**self.tensors(list(instances)))["logits"]


@pytest.fixture
def workbench():
    return Workbench()
