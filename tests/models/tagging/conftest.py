import copy
from pathlib import Path

import pytest

FIXTURE = Path(__file__).parents[2] / "fixtures" / "tagging" / "small.conll"

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


def made(convert_to="BIO"):
    """Taggers of the small file, whose tags are converted to this encoding, or stay IOB1."""
    from allennlp.common import Params
    from allennlp.data import DatasetReader

    import fiesta_allennlp.models.tagging  # noqa: F401
    from tests.workbench import Workbench

    reader = DatasetReader.from_params(Params(copy.deepcopy({**READER, "convert_to": convert_to})))
    models = {name: {"label_encoding": convert_to or "IOB1", **MODEL} for name in NAMES}
    return Workbench(reader, reader.read(FIXTURE), models)


@pytest.fixture
def workbench():
    return made()
