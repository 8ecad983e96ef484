"""What holds for every classifier; one that is added to the package is tested the day it is added."""

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.predictors import Predictor

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader
from fiesta_allennlp.tdsa.tdsa_classifier import TdsaClassifier
from tests.conftest import REPOSITORY
from tests.tdsa.conftest import ENCODERS, LSTM, MODELS
from tests.workbench import ModelTraining

NAMES = sorted(name for name in Model.list_available() if Model.by_name(name) in TdsaClassifier.__subclasses__())


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


class TestTraining(ModelTraining):
    data = REPOSITORY / "tests" / "fixtures" / "tdsa" / "restaurants.xml"

    def test_train_save_and_load(self, name):
        # Two sentences of the fixture have two targets and two labels, of which a model that is blind to the target
        # can learn one each: 4 of 6.
        config = self.config({"type": "semeval_tdsa"}, self.data, {"type": name, **MODELS[name]}, "adam")
        right = 4 / 6 if name == "target_lstm" else 1.0
        self.ensure_model_can_train_save_and_load(config, metric_to_check="accuracy", metric_terminal_value=right)


def test_every_model_is_tried_here():
    assert list(ENCODERS) == NAMES
    assert all(Model.by_name(name).default_predictor == "tdsa" for name in NAMES)


def test_padding_neighbours_and_fields_that_are_not_read_do_not_change_the_answer(workbench, name):
    model, tensors = workbench.model(name), workbench.tensors()
    logits = workbench.logits(model)
    alone = torch.cat([workbench.logits(model, instance) for instance in workbench.instances])
    torch.testing.assert_close(logits, alone)
    needed = model(**{field: tensors[field] for field in model.reads})
    assert torch.equal(needed["logits"], logits) and "loss" not in needed
    with pytest.raises(ConfigError, match="reads the fields .* but the reader gives no"):
        model()


def test_contexts_without_words_give_finite_answers_and_gradients(workbench, name):
    model = workbench.model(name)
    tensors = workbench.tensors(workbench.instances[3])
    assert tensors["left"]["tokens"]["tokens"].shape == (1, 0)
    loss = model(**tensors)["loss"]
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(("name", "encoder"), [(name, encoder) for name in NAMES for encoder in ENCODERS[name]])
def test_encoders_of_another_width_are_refused(workbench, name, encoder):
    is_average = ENCODERS[name][encoder]["type"] == "boe"
    other = {"type": "boe", "embedding_dim": 5} if is_average else {**LSTM, "input_size": 5}
    with pytest.raises(ConfigurationError, match=rf"must match {encoder} input, but got \d and 5 instead"):
        workbench.model(name, **{encoder: other})


def test_the_initializer_reaches_every_parameter(workbench, name):
    model = workbench.model(name, initializer={"regexes": [[".*", {"type": "constant", "val": 0.5}]]})
    assert all((parameter == 0.5).all() for parameter in model.parameters())


@pytest.mark.parametrize("kind", ["dropout", "variational_dropout"])
def test_dropout_is_for_training_only_and_has_one_mask_for_all_words_of_a_text(workbench, kind):
    model, tensors = workbench.model("td_lstm", **{kind: 0.5}), workbench.tensors()
    assert torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    model.train()
    assert not torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    if kind == "variational_dropout":
        dropped = model._embed("text", tensors["text"]).vectors
        kept = dropped != 0
        assert torch.equal(kept, kept[:, :1].expand_as(kept))
        torch.testing.assert_close(dropped, model._text_field_embedder(tensors["text"]) * kept * 2)


@pytest.mark.parametrize(
    ("gold", "predicted", "f1"),
    [
        # positive: precision 2/4, recall 2/3; negative: 1/2, 1/2; neutral: never predicted.
        ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0], (4 / 7, 1 / 2, 0.0)),
        # A label that does not occur still counts in the mean.
        ([0, 1], [0, 1], (1.0, 1.0, 0.0)),
    ],
)
def test_scores_by_hand(workbench, gold, predicted, f1):
    model = workbench.model("target_lstm")
    model.represent = lambda texts: torch.eye(3)[predicted]
    model._projection = torch.nn.Identity()
    text = workbench.tensors(*[workbench.instances[0]] * len(gold))["text"]
    model(text=text, label=torch.tensor([2] * len(gold)))
    model.get_metrics(reset=True)
    model(text=text, label=torch.tensor(gold))
    right = sum(one == other for one, other in zip(gold, predicted, strict=True))
    expected = {f"{label}_f1": score for label, score in zip(("positive", "negative", "neutral"), f1, strict=True)}
    expected.update(accuracy=right / len(gold), macro_f1=sum(f1) / 3)
    assert model.get_metrics() == pytest.approx(expected)


def test_the_predictor_answers_with_a_label_and_looks_up_a_target_that_occurs_once(workbench):
    predictor = Predictor.by_name("tdsa")(workbench.model("td_lstm"), SemEvalTdsaReader())
    text = "Soup was cold but we adored the bread"
    answer = predictor.predict_json({"text": text, "target": "bread"})
    names = workbench.vocab.get_index_to_token_vocabulary("labels")
    assert answer["label"] == names[answer["probs"].index(max(answer["probs"]))]
    assert sum(answer["probs"]) == pytest.approx(1.0)
    assert answer["metadata"]["from"] == 32
    same = predictor.predict_json({"text": text, "target": "bread", "from": 32, "to": 37})
    assert same["probs"] == pytest.approx(answer["probs"])
    with pytest.raises(DataError, match='"target" is missing'):
        predictor.predict_json({"text": text})
