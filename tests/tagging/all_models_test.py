"""What holds for every tagger."""

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.tagging.encodings import first_error
from fiesta_allennlp.tagging.sequence_tagger import SequenceTagger
from tests.tagging.conftest import MODEL, NAMES, Workbench


def test_every_model_is_tried_here():
    found = [name for name in Model.list_available() if Model.by_name(name) in SequenceTagger.__subclasses__()]
    assert sorted(found) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_padding_and_neighbours_do_not_change_the_answer(workbench, name):
    model = workbench.model(name)
    together = model(**workbench.tensors(*workbench.instances))
    for number, instance in enumerate(workbench.instances):
        alone = model(**workbench.tensors(instance))
        length = len(instance["tokens"])
        torch.testing.assert_close(alone["logits"][0], together["logits"][number, :length])
        assert alone["tags"][0] == together["tags"][number]
        assert len(alone["tags"][0]) == length
        assert alone["words"][0] == instance["metadata"]["words"]


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_a_mean_over_sentences_or_a_sum(workbench, name):
    tensors = workbench.tensors(*workbench.instances)
    mean, total = (workbench.model(name, loss=loss)(**tensors)["loss"] for loss in ("mean", "sum"))
    singly = [workbench.model(name)(**workbench.tensors(instance))["loss"] for instance in workbench.instances]
    torch.testing.assert_close(total, sum(singly))
    torch.testing.assert_close(mean, total / len(workbench.instances))


def test_a_field_with_transitions_of_0_is_a_softmax(workbench):
    model = workbench.model("crf_sequence_tagger", constrain_decoding=False)
    for parameter in (model._crf.transitions, model._crf.start_transitions, model._crf.end_transitions):
        torch.nn.init.zeros_(parameter)
    rival = workbench.model("softmax_sequence_tagger")
    rival.load_state_dict({key: value for key, value in model.state_dict().items() if not key.startswith("_crf")})
    tensors = workbench.tensors(*workbench.instances)
    mine, theirs = model(**tensors), rival(**tensors)
    torch.testing.assert_close(mine["loss"], theirs["loss"])
    assert mine["tags"] == theirs["tags"]


@pytest.mark.parametrize("encoding", ["BIO", "BIOUL"])
def test_a_field_with_constraints_gives_only_tags_of_the_encoding(encoding):
    workbench = Workbench(convert_to=encoding)
    tensors = workbench.tensors(*workbench.instances)
    wild = {"initializer": {"regexes": [["_projection.*|.*transitions", {"type": "normal", "std": 9.0}]]}}
    answers = workbench.model("crf_sequence_tagger", **wild)(**tensors)["tags"]
    assert [first_error(tags, encoding) for tags in answers] == [None] * len(workbench.instances)
    free = workbench.model("crf_sequence_tagger", constrain_decoding=False, **wild)(**tensors)["tags"]
    assert any(first_error(tags, encoding) is not None for tags in free)


def test_iob1_is_read_and_tagged_as_it_is():
    workbench = Workbench(convert_to=None)
    model = workbench.model("crf_sequence_tagger")
    assert torch.isfinite(model(**workbench.tensors(*workbench.instances))["loss"])


@pytest.mark.parametrize("name", NAMES)
def test_tags_are_decoded_outside_of_training_only(workbench, name):
    model = workbench.model(name).train()
    tensors = workbench.tensors(*workbench.instances)
    assert set(model(**tensors)) == {"logits", "loss", "words"}
    assert model.get_metrics(reset=True) == {}
    model.eval()
    model(**tensors)
    overall = {"precision-overall", "recall-overall", "f1-measure-overall"}
    assert set(model.get_metrics(reset=True)) == {"accuracy", *overall}


@pytest.mark.parametrize("name", NAMES)
def test_without_tags_there_is_no_loss_and_nothing_counts(workbench, name):
    model = workbench.model(name)
    tensors = workbench.tensors(*workbench.instances)
    del tensors["tags"]
    assert set(model(**tensors)) == {"logits", "tags", "words"}
    assert model._scores.num_words == 0


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_speech_have_an_accuracy_only(workbench, name):
    model = workbench.model(name, label_encoding=None)
    model(**workbench.tensors(*workbench.instances))
    assert set(model.get_metrics()) == {"accuracy"}


@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_for_training_only_and_in_both_places(workbench, name):
    model = workbench.model(name, dropout=0.5, variational_dropout=0.3)
    tensors = workbench.tensors(*workbench.instances)
    assert torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    seen = []
    model._dropout.register_forward_hook(lambda module, given, made: seen.append(made.shape[-1]))
    model._variational_dropout.register_forward_hook(lambda module, given, made: seen.append(made.shape[-1]))
    model.train()
    assert not torch.equal(model(**tensors)["logits"], model(**tensors)["logits"])
    assert seen == [11, 11, 8, 8] * 2


def test_one_dropout_mask_for_all_words_of_a_sentence(workbench):
    model = workbench.model("crf_sequence_tagger", variational_dropout=0.5).train()
    kept = model._dropped(torch.ones(5, 7, 11)) != 0
    assert torch.equal(kept, kept[:, :1].expand_as(kept))
    assert 0 < kept[:, 0].sum() < kept[:, 0].numel()


@pytest.mark.parametrize("name", NAMES)
def test_the_initializer_reaches_every_parameter(workbench, name):
    model = workbench.model(name, initializer={"regexes": [[".*", {"type": "constant", "val": 0.5}]]})
    assert all((parameter == 0.5).all() for parameter in model.parameters() if parameter.requires_grad)


@pytest.mark.parametrize("name", NAMES)
def test_an_encoder_of_another_width_is_refused(workbench, name):
    with pytest.raises(ConfigurationError, match="must match encoder input, but got 11 and 5 instead"):
        workbench.model(name, encoder={**MODEL["encoder"], "input_size": 5})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "avarage"}, r"loss must be one of \['mean', 'sum'\] but is 'avarage'"),
        ({"label_encoding": "IOB"}, r"label_encoding must be one of .* but is 'IOB'. Did you mean 'IOB1'"),
        ({"droput": 0.5}, "droput"),
    ],
)
def test_wrong_settings_are_refused(workbench, name, options, message):
    with pytest.raises((ConfigError, ConfigurationError, TypeError), match=message):
        workbench.model(name, **options)


@pytest.mark.parametrize("name", NAMES)
def test_tags_of_another_encoding_are_refused(name):
    with pytest.raises(ConfigError, match=r"which has O, B-\.\.\., I-\.\.\., but the data have the tag '[LU]-"):
        Workbench(convert_to="BIOUL").model(name, label_encoding="BIO")


def test_tags_that_decoding_cannot_give_are_refused():
    workbench = Workbench(convert_to=None)
    tensors = workbench.tensors(*workbench.instances)
    model = workbench.model("crf_sequence_tagger", label_encoding="BIO")
    with pytest.raises(ConfigError, match=r"'BIO', which does not allow 'I-[A-Z]+' after 'O'"):
        model(**tensors)
    free = workbench.model("crf_sequence_tagger", label_encoding="BIO", constrain_decoding=False)
    assert torch.isfinite(free(**tensors)["loss"])


def test_default_predictor():
    assert all(Model.by_name(name).default_predictor == "sentence_tagger" for name in NAMES)
