"""What holds for every classifier; one that is added to the package is tested the day it is added."""

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.tdsa.tdsa_classifier import TdsaClassifier
from tests.tdsa.conftest import ENCODERS, LSTM

NAMES = sorted(name for name in Model.list_available() if Model.by_name(name) in TdsaClassifier.__subclasses__())


def test_every_model_is_tried_here():
    assert sorted(ENCODERS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_padding_and_neighbours_do_not_change_the_answer(workbench, name):
    model = workbench.model(name)
    together = workbench.logits(model, *workbench.instances)
    alone = torch.cat([workbench.logits(model, instance) for instance in workbench.instances])
    assert together.shape == (4, 3)
    torch.testing.assert_close(together, alone)


@pytest.mark.parametrize("name", NAMES)
def test_contexts_without_words_give_finite_answers_and_gradients(workbench, name):
    model = workbench.model(name)
    tensors = workbench.tensors([workbench.instances[3]])
    assert tensors["left"]["tokens"]["tokens"].shape == (1, 0)
    loss = model(**tensors)["loss"]
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", NAMES)
def test_fields_that_are_not_read_may_be_left_out(workbench, name):
    model = workbench.model(name)
    tensors = workbench.tensors(workbench.instances)
    everything = model(**tensors)["logits"]
    needed = model(**{field: tensors[field] for field in model.reads})
    assert torch.equal(needed["logits"], everything)
    assert "loss" not in needed


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_field_is_named(workbench, name):
    with pytest.raises(ConfigError, match=r"reads the fields .* but the reader gives no"):
        workbench.model(name)()


@pytest.mark.parametrize(("name", "encoder"), [(name, encoder) for name in NAMES for encoder in ENCODERS[name]])
def test_encoders_of_another_width_are_refused(workbench, name, encoder):
    kind = (
        {"type": "boe", "embedding_dim": 5} if ENCODERS[name][encoder]["type"] == "boe" else {**LSTM, "input_size": 5}
    )
    with pytest.raises(ConfigurationError, match=rf"must match {encoder} input, but got \d and 5 instead"):
        workbench.model(name, **{encoder: kind})


@pytest.mark.parametrize("name", NAMES)
def test_the_initializer_reaches_every_parameter(workbench, name):
    regexes = [[".*", {"type": "constant", "val": 0.5}]]
    model = workbench.model(name, initializer={"regexes": regexes})
    assert all((parameter == 0.5).all() for parameter in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_for_training_only(workbench, name):
    model = workbench.model(name, dropout=0.5, variational_dropout=0.5)
    tensors = workbench.tensors(workbench.instances)
    assert torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    model.train()
    assert not torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])


def test_one_dropout_mask_for_all_words_of_a_text(workbench):
    model = workbench.model("td_lstm", variational_dropout=0.5)
    model.train()
    tensors = workbench.tensors(workbench.instances)
    clean = model._text_field_embedder(tensors["text"])
    dropped = model._embed("text", tensors["text"]).vectors
    kept = dropped != 0
    assert torch.equal(kept, kept[:, :1].expand_as(kept))
    assert 0 < kept[:, 0].sum() < kept[:, 0].numel()
    torch.testing.assert_close(dropped, clean * kept * 2)


def scored(workbench, predicted, gold):
    """The metrics of a model that gives label i the logit predicted[:, i]."""
    model = workbench.model("target_lstm")
    model.represent = lambda texts: torch.tensor(predicted)
    model._projection = torch.nn.Identity()
    text = workbench.tensors([workbench.instances[0]] * len(gold))["text"]
    model(text=text, label=torch.tensor(gold))
    return model.get_metrics(reset=True)


def test_scores_by_hand(workbench):
    # Labels by frequency and then name: positive 0, negative 1, neutral 2.
    assert workbench.vocab.get_index_to_token_vocabulary("labels") == {0: "positive", 1: "negative", 2: "neutral"}
    one_hot = torch.eye(3).tolist()
    gold = [0, 0, 0, 1, 1, 2]
    predicted = [one_hot[label] for label in (0, 0, 1, 1, 0, 0)]
    # positive: precision 2/4, recall 2/3; negative: 1/2, 1/2; neutral: never predicted.
    assert scored(workbench, predicted, gold) == pytest.approx(
        {
            "accuracy": 3 / 6,
            "positive_f1": 4 / 7,
            "negative_f1": 1 / 2,
            "neutral_f1": 0.0,
            "macro_f1": (4 / 7 + 1 / 2 + 0) / 3,
        }
    )


def test_a_label_that_does_not_occur_still_counts_in_macro_f1(workbench):
    one_hot = torch.eye(3).tolist()
    assert scored(workbench, [one_hot[0], one_hot[1]], [0, 1])["macro_f1"] == pytest.approx(2 / 3)


def test_reset_forgets(workbench):
    model = workbench.model("td_lstm")
    tensors = workbench.tensors(workbench.instances)
    model(**tensors)
    first = model.get_metrics(reset=True)
    model(**tensors)
    assert model.get_metrics() == first


def test_output_for_people(workbench):
    model = workbench.model("td_lstm")
    output = model.make_output_human_readable(model(**workbench.tensors(workbench.instances)))
    names = workbench.vocab.get_index_to_token_vocabulary("labels")
    assert output["label"] == [names[int(row.argmax())] for row in output["probs"]]
    torch.testing.assert_close(output["probs"].sum(dim=-1), torch.ones(4))


def test_default_predictor_and_registered_names():
    assert all(Model.by_name(name).default_predictor == "tdsa" for name in NAMES)
    assert NAMES == ["atae_lstm", "ian", "target_lstm", "td_lstm"]


def test_regularizer_is_understood(workbench):
    model = workbench.model("ian", regularizer={"regexes": [[".*", {"type": "l2", "alpha": 0.1}]]})
    expected = 0.1 * sum((parameter**2).sum() for parameter in model.parameters())
    torch.testing.assert_close(model.get_regularization_penalty(), expected)
