"""What holds for every tagger."""

import copy
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.models import Model

from fiesta_allennlp.models.sequence_tagger import SequenceTagger
from fiesta_allennlp.models.tagged_columns import first_error
from tests.workbench import ModelTraining, Workbench

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


def made(convert_to="BIO"):
    """Taggers of the small file, whose tags are converted to this encoding, or stay IOB1."""
    reader = DatasetReader.from_params(Params(copy.deepcopy({**READER, "convert_to": convert_to})))
    models = {name: {"label_encoding": convert_to or "IOB1", **MODEL} for name in NAMES}
    return Workbench(reader, reader.read(FIXTURE), models)


@pytest.fixture
def workbench():
    return made()


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


class TestTraining(ModelTraining):
    def test_train_save_and_load(self, name):
        found = [name for name in Model.list_available() if Model.by_name(name) in SequenceTagger.__subclasses__()]
        assert sorted(found) == NAMES, "every model is tried here"
        config = self.config(READER, FIXTURE, {"type": name, **MODEL})
        metric = {"metric_to_check": "f1-measure-overall", "metric_terminal_value": 1.0}
        self.ensure_model_can_train_save_and_load(config, **metric)


def test_padding_and_neighbours_change_neither_the_answer_nor_the_loss(workbench, name):
    mean, total = (workbench.model(name, loss=loss)(**workbench.tensors()) for loss in ("mean", "sum"))
    alone = [workbench.model(name)(**workbench.tensors(instance)) for instance in workbench.instances]
    for number, (one, instance) in enumerate(zip(alone, workbench.instances, strict=True)):
        torch.testing.assert_close(one["logits"][0], mean["logits"][number, : len(instance["tokens"])])
        assert one["tags"][0] == mean["tags"][number]
        assert one["words"][0] == instance["metadata"]["words"]
    torch.testing.assert_close(total["loss"], sum(one["loss"] for one in alone))
    torch.testing.assert_close(mean["loss"], total["loss"] / len(alone))


def test_a_field_with_transitions_of_0_is_a_softmax(workbench):
    model = workbench.model("crf_sequence_tagger", constrain_decoding=False)
    for parameter in (model._crf.transitions, model._crf.start_transitions, model._crf.end_transitions):
        torch.nn.init.zeros_(parameter)
    rival = workbench.model("softmax_sequence_tagger")
    rival.load_state_dict({key: value for key, value in model.state_dict().items() if not key.startswith("_crf")})
    mine, theirs = model(**workbench.tensors()), rival(**workbench.tensors())
    torch.testing.assert_close(mine["loss"], theirs["loss"])
    assert mine["tags"] == theirs["tags"]


@pytest.mark.parametrize("encoding", ["BIO", "BIOUL"])
def test_a_field_with_constraints_gives_only_tags_of_the_encoding(encoding):
    workbench = made(encoding)
    wild = {"initializer": {"regexes": [["_projection.*|.*transitions", {"type": "normal", "std": 9.0}]]}}
    answers = workbench.model("crf_sequence_tagger", **wild)(**workbench.tensors())["tags"]
    assert [first_error(tags, encoding) for tags in answers] == [None] * len(workbench.instances)
    free = workbench.model("crf_sequence_tagger", constrain_decoding=False, **wild)(**workbench.tensors())["tags"]
    assert any(first_error(tags, encoding) is not None for tags in free)


def test_tags_are_decoded_outside_of_training_and_scored_where_they_are_given(workbench, name):
    model, tensors = workbench.model(name).train(), workbench.tensors()
    assert set(model(**tensors)) == {"logits", "loss", "words"}
    assert model.get_metrics(reset=True) == {}
    model.eval()
    model(**tensors)
    overall = {"precision-overall", "recall-overall", "f1-measure-overall"}
    assert set(model.get_metrics(reset=True)) == {"accuracy", *overall}
    del tensors["tags"]
    assert set(model(**tensors)) == {"logits", "tags", "words"}
    assert model._scores.num_words == 0
    assert set(workbench.model(name, label_encoding=None).get_metrics()) == {"accuracy"}, "such as parts of speech"


def test_dropout_is_for_training_only_and_has_one_mask_for_all_words_of_a_sentence(workbench):
    model, tensors = workbench.model("crf_sequence_tagger", dropout=0.5, variational_dropout=0.5), workbench.tensors()
    assert torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    seen = []
    for dropout in (model._dropout, model._variational_dropout):
        dropout.register_forward_hook(lambda module, given, made: seen.append(made.shape[-1]))
    model.train()
    assert not torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    assert seen == [11, 11, 8, 8] * 2
    kept = model._variational_dropout(torch.ones(5, 7, 11)) != 0
    assert torch.equal(kept, kept[:, :1].expand_as(kept))
    assert 0 < kept[:, 0].sum() < kept[:, 0].numel()


def test_the_initializer_reaches_every_parameter(workbench, name):
    model = workbench.model(name, initializer={"regexes": [[".*", {"type": "constant", "val": 0.5}]]})
    assert all((parameter == 0.5).all() for parameter in model.parameters() if parameter.requires_grad)


def test_wrong_settings_and_impossible_tags_are_refused(workbench):
    wide = {"encoder": {**MODEL["encoder"], "input_size": 5}}
    for options, named in (
        ({"loss": "avarage"}, "'loss'"),
        ({"label_encoding": "IOB"}, "'label_encoding'"),
        (wide, "5"),
    ):
        with pytest.raises(ConfigurationError, match=named):
            workbench.model("softmax_sequence_tagger", **options)
    with pytest.raises(ConfigurationError, match="tag '[LU]-"):
        made("BIOUL").model("softmax_sequence_tagger", label_encoding="BIO")
    other, constrained = made(None), {"label_encoding": "BIO"}
    with pytest.raises(ConfigurationError, match="BIO, .*'I-[A-Z]+' after 'O'"):
        other.model("crf_sequence_tagger", **constrained)(**other.tensors())
    free = other.model("crf_sequence_tagger", constrain_decoding=False, **constrained)
    assert torch.isfinite(free(**other.tensors())["loss"])
