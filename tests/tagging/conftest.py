import json
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model

import fiesta_allennlp.tagging  # noqa: F401

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tagging" / "small.conll"

READER = {
    "type": "tagged_columns",
    "encoding": "IOB1",
    "convert_to": "BIO",
    "document_prefix": "-DOCSTART-",
    "token_indexers": {
        "tokens": {"type": "single_id", "lowercase_tokens": True},
        "characters": {"type": "characters", "min_padding_length": 3},
    },
}

MODEL = {
    "text_field_embedder": {
        "token_embedders": {
            "tokens": {"type": "embedding", "embedding_dim": 6},
            "characters": {
                "type": "character_encoding",
                "embedding": {"embedding_dim": 4, "vocab_namespace": "token_characters"},
                "encoder": {"type": "cnn", "embedding_dim": 4, "num_filters": 5, "ngram_filter_sizes": [3]},
            },
        }
    },
    "encoder": {"type": "lstm", "input_size": 11, "hidden_size": 4, "bidirectional": True},
}

NAMES = ["crf_sequence_tagger", "softmax_sequence_tagger"]


class Workbench:
    """A small model of each kind and the sentences it is tried on."""

    def __init__(self, **reader):
        params = {**READER, **reader}
        self.reader = DatasetReader.from_params(Params(json.loads(json.dumps(params))))
        self.instances = list(self.reader.read(FIXTURE))
        self.vocab = Vocabulary.from_instances(self.instances)
        self.encoding = params["convert_to"] or params["encoding"]

    def model(self, name, **options):
        params = {"type": name, "label_encoding": self.encoding, **MODEL, **options}
        torch.manual_seed(7)
        return Model.from_params(Params(json.loads(json.dumps(params))), vocab=self.vocab).eval()

    def tensors(self, *instances):
        batch = Batch(list(instances))
        batch.index_instances(self.vocab)
        return batch.as_tensor_dict()


@pytest.fixture
def workbench():
    return Workbench()
