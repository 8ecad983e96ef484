import pytest

EMBEDDER = {"text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}}}
LSTM = {"type": "lstm", "input_size": 4, "hidden_size": 3}
ENCODERS = {
    "atae_lstm": {
        "target_encoder": {"type": "boe", "embedding_dim": 4, "averaged": True},
        "text_encoder": {**LSTM, "input_size": 8},
    },
    "ian": {"text_encoder": LSTM, "target_encoder": {**LSTM, "hidden_size": 2}},
    "target_lstm": {"text_encoder": LSTM},
    "td_lstm": {"left_encoder": LSTM, "right_encoder": LSTM},
}
MODELS = {name: {**EMBEDDER, **encoders} for name, encoders in ENCODERS.items()}
CASES = [
    ("Soup was cold but we adored the bread", "Soup", "negative"),
    ("Soup was cold but we adored the bread", "bread", "positive"),
    ("Soup was cold but we adored the wine list", "wine list", "positive"),
    ("A table", "A table", "neutral"),
]


def instance(text, target, label=None, reader=None):
    from fiesta_allennlp.models.tdsa.semeval_tdsa import SemEvalTdsaReader

    reader = reader or SemEvalTdsaReader()
    made = reader.text_to_instance(text, target, label=label)
    reader.apply_token_indexers(made)
    return made


@pytest.fixture
def workbench():
    import fiesta_allennlp.models.tdsa  # noqa: F401
    from fiesta_allennlp.models.tdsa.semeval_tdsa import SemEvalTdsaReader
    from tests.workbench import Workbench

    reader = SemEvalTdsaReader()
    return Workbench(reader, [instance(*case) for case in CASES], MODELS)
