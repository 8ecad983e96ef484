from pathlib import Path
from typing import List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token, Vocabulary
from allennlp.data.data_loaders.data_collator import DataCollator, allennlp_collate
from allennlp.data.fields import ArrayField, LabelField, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer, SingleIdTokenIndexer, TokenCharactersIndexer

FIXTURE = Path(__file__).parent.parent / "fixtures" / "tdsa" / "restaurants.xml"


@pytest.fixture
def instances() -> List[Instance]:
    reader = DatasetReader.from_params(Params({"type": "semeval_tdsa"}))
    instances = list(reader.read(str(FIXTURE)))
    vocab = Vocabulary.from_instances(instances)
    for instance in instances:
        instance.index_fields(vocab)
    return instances


def collator() -> DataCollator:
    return DataCollator.from_params(Params({"type": "token_ids"}))


@pytest.mark.parametrize("size", [1, 3, None])
def test_batches_are_those_of_the_default_collator_without_metadata(instances: List[Instance], size: int) -> None:
    batch, expected = collator()(instances[:size]), allennlp_collate(instances[:size])
    assert set(batch) == set(expected) - {"metadata"} == {"left", "target", "right", "text", "label"}
    for name in ("left", "target", "right", "text"):
        assert torch.equal(batch[name]["tokens"]["tokens"], expected[name]["tokens"]["tokens"])
    assert torch.equal(batch["label"], expected["label"])
    assert batch["label"].dtype == expected["label"].dtype


def test_an_empty_text_is_all_padding(instances: List[Instance]) -> None:
    lefts = [i["left"].sequence_length() for i in instances]
    assert 0 in lefts, "the fixture has a target at the start of its sentence"
    row = collator()(instances)["left"]["tokens"]["tokens"][lefts.index(0)]
    assert not row.any()


def indexed(**fields: object) -> List[Instance]:
    instance = Instance(fields)
    instance.index_fields(Vocabulary.from_instances([instance]))
    return [instance]


def test_fields_it_does_not_know_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'numbers' is a TensorField"):
        collator()(indexed(numbers=ArrayField(torch.zeros(2).numpy())))
    text = TextField([Token("food")], {"elmo": ELMoTokenCharactersIndexer()})
    with pytest.raises(ConfigurationError, match="the indexer 'elmo' of 'text' gives"):
        collator()(indexed(text=text, label=LabelField("x"), metadata=MetadataField({})))
    text = TextField([Token("food")], {"words": SingleIdTokenIndexer()})
    assert list(collator()(indexed(text=text))["text"]) == ["words"]


@pytest.mark.parametrize("least", [1, 9])
def test_characters_and_a_label_for_each_word(least: int) -> None:
    indexers = {"tokens": SingleIdTokenIndexer(), "characters": TokenCharactersIndexer(min_padding_length=least)}
    made = []
    for words, tags in (("we eat", "A B"), ("soup", "C"), ("a b c", "A A B"), ("", "")):
        text = TextField([Token(word) for word in words.split()], indexers)
        made.append(Instance({"text": text, "tags": SequenceLabelField(tags.split(), text)}))
    vocab = Vocabulary.from_instances(made)
    for instance in made:
        instance.index_fields(vocab)
    for chosen in (made, made[:1], made[2:]):
        batch, expected = collator()(chosen), allennlp_collate(chosen)
        for name, key in (("tokens", "tokens"), ("characters", "token_characters")):
            assert torch.equal(batch["text"][name][key], expected["text"][name][key])
        assert torch.equal(batch["tags"], expected["tags"])
