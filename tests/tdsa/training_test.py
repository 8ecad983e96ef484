"""Every model learns, is saved, and answers the same after it is loaded."""

import json

import pytest
from allennlp.common.testing import ModelTestCase
from allennlp.predictors import Predictor

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader
from tests.tdsa.conftest import ENCODERS


class TestTraining(ModelTestCase):
    @pytest.fixture(autouse=True)
    def _config_directory(self, tmp_path, request):
        self.directory = tmp_path
        self.data = str(request.config.rootpath / "tests" / "fixtures" / "tdsa" / "restaurants.xml")

    def config(self, name):
        config = {
            "dataset_reader": {"type": "semeval_tdsa"},
            "train_data_path": self.data,
            "validation_data_path": self.data,
            "model": {
                "type": name,
                "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 4}}},
                **ENCODERS[name],
            },
            "data_loader": {"batch_size": 3},
            "trainer": {"num_epochs": 40, "optimizer": {"type": "adam", "lr": 0.05}, "cuda_device": -1},
        }
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(config))
        return path

    # Two sentences of the fixture have two targets and two labels, of which a model that is blind to the target
    # can learn one each: 4 of 6.
    @pytest.mark.parametrize(
        ("name", "accuracy"), [(name, 4 / 6 if name == "target_lstm" else 1.0) for name in sorted(ENCODERS)]
    )
    def test_train_save_and_load(self, name, accuracy):
        self.ensure_model_can_train_save_and_load(
            self.config(name), metric_to_check="accuracy", metric_terminal_value=accuracy
        )

    def test_predictor(self):
        self.set_up_model(self.config("td_lstm"), self.data)
        predictor = Predictor.by_name("tdsa")(self.model, SemEvalTdsaReader())
        text = "Soup was cold but we adored the bread"
        answer = predictor.predict_json({"text": text, "target": "bread"})
        assert answer["label"] in {"positive", "negative", "neutral"}
        assert sum(answer["probs"]) == pytest.approx(1.0)
        assert answer["metadata"]["from"] == 32
        same = predictor.predict_json({"text": text, "target": "bread", "from": 32, "to": 37})
        assert same["probs"] == pytest.approx(answer["probs"])
        with pytest.raises(DataError, match='"target" is missing'):
            predictor.predict_json({"text": text})
