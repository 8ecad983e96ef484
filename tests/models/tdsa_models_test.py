"""What holds for every classifier, and the representation of each by hand."""

import math

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.predictors import Predictor

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.semeval_tdsa import SemEvalTdsaReader
from fiesta_allennlp.models.tdsa_models import TargetAttentionClassifier, TdsaClassifier
from tests.conftest import REPOSITORY
from tests.workbench import ModelTraining, Workbench

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
    reader = reader or SemEvalTdsaReader()
    made = reader.text_to_instance(text, target, label=label)
    reader.apply_token_indexers(made)
    return made


@pytest.fixture
def workbench():
    reader = SemEvalTdsaReader()
    return Workbench(reader, [instance(*case) for case in CASES], MODELS)


CLASSES = (*TdsaClassifier.__subclasses__(), *TargetAttentionClassifier.__subclasses__())
NAMES = sorted(name for name in Model.list_available() if Model.by_name(name) in CLASSES)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


class TestTraining(ModelTraining):
    data = REPOSITORY / "tests" / "fixtures" / "tdsa" / "restaurants.xml"

    def test_train_save_and_load(self, name):
        # Two sentences of the fixture have two targets and two labels, of which a model that is blind to the target
        # can learn one each: 4 of 6.
        config = self.config({"type": "semeval_tdsa"}, self.data, {"type": name, **MODELS[name]})
        assert list(ENCODERS) == NAMES, "every model is tried here"
        right = 4 / 6 if name == "target_lstm" else 1.0
        self.ensure_model_can_train_save_and_load(config, metric_to_check="accuracy", metric_terminal_value=right)


def test_padding_neighbours_and_fields_that_are_not_read_do_not_change_the_answer(workbench, name):
    model, tensors = workbench.model(name), workbench.tensors()
    logits = workbench.logits(model)
    alone = torch.cat([workbench.logits(model, instance) for instance in workbench.instances])
    torch.testing.assert_close(logits, alone)
    needed = model(**{field: tensors[field] for field in model.fields})
    assert torch.equal(needed["logits"], logits) and "loss" not in needed
    with pytest.raises(ConfigurationError, match="needs the field"):
        model()
    # Contexts without words give finite answers and gradients.
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
    with pytest.raises(ConfigurationError, match=rf"{encoder} input, .*\d and 5"):
        workbench.model(name, **{encoder: other})


def test_the_initializer_reaches_every_parameter(workbench, name):
    model = workbench.model(name, initializer={"regexes": [[".*", {"type": "constant", "val": 0.5}]]})
    assert all((parameter == 0.5).all() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("td_lstm", "dropout"),
        ("td_lstm", "variational_dropout"),
        ("atae_lstm", "state_dropout"),
        ("ian", "state_dropout"),
    ],
)
def test_dropout_is_for_training_only(workbench, name, kind):
    model, tensors = workbench.model(name, **{kind: 0.5}), workbench.tensors()
    assert torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    model.train()
    assert not torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])


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
    with pytest.raises(DataError, match="'target' is missing"):
        predictor.predict_json({"text": text})


class TestAtaeLstm:
    def test_attention(self, workbench):
        """Equations 7 and 8 with W_h = W_v = I and w that reads the first entry of each half of M."""
        model = workbench.model("atae_lstm")
        model._fusions[0].weight.data, model._fusions[1].weight.data = torch.eye(3), torch.eye(4)
        model._attention.weight.data = torch.tensor([[2.0, 0, 0, 1.0, 0, 0, 0]])
        hidden = torch.tensor([[[0.5, 7, 7], [-0.5, 7, 7], [9.0, 9, 9]]])
        mask = torch.tensor([[True, True, False]])
        alpha = model.attention(hidden, torch.tensor([[[0.3, 0, 0, 0]] * 3]), mask)[0]
        # The target adds tanh(0.3) to both scores, and so nothing to the softmax.
        first, second = math.exp(2 * math.tanh(0.5)), math.exp(2 * math.tanh(-0.5))
        assert alpha.tolist() == pytest.approx([first / (first + second), second / (first + second), 0.0])

    @pytest.mark.parametrize("final_state", [True, False])
    def test_representation(self, workbench, final_state):
        """h* = tanh(W_p r + W_x h_N), or r, from the model's own LSTM states, for an attention that is even."""
        model = workbench.model("atae_lstm", final_state=final_state)
        made = instance("soup was cold but bread", "soup was")
        model._attention.weight.data.zero_()
        embedded = model._text_field_embedder(workbench.tensors(made)["text"])
        aspect = embedded[:, :2].mean(dim=1)
        hidden, _ = model._text_encoder._module(torch.cat([embedded, aspect.unsqueeze(1).expand(1, 5, 4)], dim=-1))
        expected = hidden.mean(dim=1)
        if final_state:
            of_r, of_final = model._final_projections
            expected = torch.tanh(of_r(expected) + of_final(hidden[:, -1]))
        torch.testing.assert_close(workbench.logits(model, made), model._projection(expected).detach())

    def test_a_joint_fusion_is_one_layer_over_words_and_target(self, workbench):
        model = workbench.model("atae_lstm", joint_fusion=True)
        (fusion,) = model._fusions
        hidden, aspects = torch.randn(1, 2, 3), torch.randn(1, 2, 4)
        alpha = model.attention(hidden, aspects, torch.ones(1, 2, dtype=torch.bool))
        scores = model._attention(torch.tanh(fusion(torch.cat([hidden, aspects], dim=-1)))).squeeze(-1)
        torch.testing.assert_close(alpha, torch.softmax(scores, dim=-1))


@pytest.mark.parametrize("name", ["atae_lstm", "ian"])
def test_the_target_is_embedded_apart_on_request(workbench, name):
    embedder = MODELS[name]["text_field_embedder"]
    model = workbench.model(name, target_field_embedder=embedder)
    model(**workbench.tensors())["loss"].backward()
    assert model._target_field_embedder.token_embedder_tokens.weight.grad.any()
    before = workbench.logits(model)
    model._target_field_embedder.token_embedder_tokens.weight.data.zero_()
    assert not torch.equal(workbench.logits(model), before)


def test_ian_has_a_tanh_before_the_softmax_on_request(workbench):
    logits = workbench.logits(workbench.model("ian", tanh_logits=True))
    torch.testing.assert_close(logits, torch.tanh(workbench.logits(workbench.model("ian"))))


def test_ian(workbench):
    """alpha = softmax(tanh(h_i W_a t_avg + b_a)) and beta with the roles exchanged."""
    model, made = workbench.model("ian"), instance("soup was cold but wine list", "wine list")
    model._text_attention._bias.data.fill_(0.2)
    tensors = workbench.tensors(made)
    text, _ = model._text_encoder._module(model._text_field_embedder(tensors["text"]))
    target, _ = model._target_encoder._module(model._text_field_embedder(tensors["target"]))
    text, target = text[0], target[0]
    scores = torch.tanh(text @ model._text_attention._weight_matrix.t() @ target.mean(dim=0) + 0.2)
    context = torch.softmax(scores, dim=0) @ text
    scores = torch.tanh(target @ model._target_attention._weight_matrix.t() @ text.mean(dim=0))
    expected = torch.cat([context, torch.softmax(scores, dim=0) @ target])
    torch.testing.assert_close(workbench.logits(model, made)[0], model._projection(expected).detach())


def test_target_lstm_is_blind_to_the_target(workbench):
    model, made = workbench.model("target_lstm"), workbench.instances[0]
    _, (hidden, _) = model._text_encoder._module(model._text_field_embedder(workbench.tensors(made)["text"]))
    logits = workbench.logits(model, *workbench.instances[:2])
    torch.testing.assert_close(logits, model._projection(hidden[0]).detach().expand(2, -1))


class TestTdLstm:
    def test_each_context_is_read_towards_the_target(self, workbench):
        """The representation is what two bare LSTMs give, the right one fed from the end of the sentence."""
        model, made = workbench.model("td_lstm"), instance("soup was cold but the bread", "cold")
        tensors = workbench.tensors(made)
        embed = model._text_field_embedder
        _, (left, _) = model._left_encoder._module(embed(tensors["left"]))
        _, (right, _) = model._right_encoder._module(embed(tensors["right"]).flip(1))
        expected = model._projection(torch.cat([left[0], right[0]], dim=-1)).detach()
        torch.testing.assert_close(workbench.logits(model, made), expected)
        without_context = workbench.logits(model, workbench.instances[3])[0]
        torch.testing.assert_close(without_context, model._projection.bias.detach())

    @pytest.mark.parametrize("include_target", [False, True])
    def test_the_words_of_the_target_are_seen_on_request(self, workbench, include_target):
        model, reader = workbench.model("td_lstm"), SemEvalTdsaReader(include_target=include_target)
        cases = (("We adored the bread but", "bread"), ("We adored the wine list but", "wine list"))
        bread, wine = (workbench.logits(model, instance(*case, reader=reader)) for case in cases)
        assert torch.allclose(bread, wine) is not include_target
