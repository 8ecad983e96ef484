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
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder
from allennlp.modules.token_embedders import TokenEmbedder

from fiesta_allennlp.models.modules import reverse

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
    assert instances[0]["left"].sequence_length() == 0, "a text without words is all padding"
    assert not batch["left"]["tokens"]["tokens"][0].any()


def indexed(**fields: object) -> List[Instance]:
    instance = Instance(fields)
    instance.index_fields(Vocabulary.from_instances([instance]))
    return [instance]


def test_fields_it_does_not_know_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'numbers'"):
        collator()(indexed(numbers=ArrayField(torch.zeros(2).numpy())))
    text = TextField([Token("food")], {"elmo": ELMoTokenCharactersIndexer()})
    with pytest.raises(ConfigurationError, match="'elmo' of 'text'"):
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


@pytest.mark.parametrize(
    ("kind", "options"), [(Seq2VecEncoder, {}), (Seq2SeqEncoder, {}), (Seq2SeqEncoder, {"bidirectional": True})]
)
def test_the_states_are_those_of_the_packed_lstm(kind, options):
    """Values and gradients, for texts of all lengths, one without words among them."""
    torch.manual_seed(3)
    sizes = {"input_size": 4, "hidden_size": 5, **options}
    unpacked, packed = (kind.by_name(name)(**sizes) for name in ("unpacked_lstm", "lstm"))
    ours = dict(unpacked._lstm.named_parameters())
    if options:
        from_right = unpacked._backward_lstm.named_parameters()
        ours.update({f"{name}_reverse": parameter for name, parameter in from_right})
    packed._module.load_state_dict(ours)
    mask = torch.arange(6) < torch.tensor([2, 0, 6, 1, 5]).unsqueeze(1)
    inputs = torch.randn(5, 6, 4)
    outputs, expected = unpacked(inputs, mask), packed(inputs, mask)
    torch.testing.assert_close(outputs, expected)
    assert (unpacked.get_input_dim(), unpacked.get_output_dim()) == (4, outputs.shape[-1])
    weights = torch.randn_like(outputs)
    for made in (outputs, expected):
        (made * weights).sum().backward()
    for name, theirs in packed._module.named_parameters():
        torch.testing.assert_close(ours[name].grad, theirs.grad)


def test_reverse_leaves_the_padding_at_the_end():
    vectors = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0], [9.0, 9.0, 9.0]]).unsqueeze(-1)
    mask = torch.tensor([[True, True, True], [True, True, False], [False, False, False]])
    assert reverse(vectors, mask).squeeze(-1)[mask].tolist() == [3.0, 2.0, 1.0, 5.0, 4.0]
    assert reverse(vectors[:, :0], mask[:, :0]).shape == (3, 0, 1)


ENCODERS = {
    "cnn": {"type": "cnn", "embedding_dim": 4, "num_filters": 5, "ngram_filter_sizes": [2, 3], "output_dim": 6},
    "lstm": {"type": "lstm", "input_size": 4, "hidden_size": 3, "bidirectional": True},
}


def embedder(kind, encoder, dropout=0.0):
    vocab = Vocabulary(tokens_to_add={"token_characters": list("abcdefgh")})
    embedding = {"embedding_dim": 4, "vocab_namespace": "token_characters"}
    params = {"type": kind, "embedding": embedding, "encoder": dict(ENCODERS[encoder]), "dropout": dropout}
    torch.manual_seed(3)
    return TokenEmbedder.from_params(Params(params), vocab=vocab)


def characters(num_characters, seed=1, batch_size=3, num_words=5):
    """Random words, some twice, and one sentence that is padded after its third word."""
    rng = torch.Generator().manual_seed(seed)
    words = torch.randint(1, 10, (batch_size, num_words, num_characters), generator=rng)
    lengths = torch.randint(1, num_characters + 1, (batch_size, num_words, 1), generator=rng)
    lengths[0, 0] = num_characters
    words = words * (torch.arange(num_characters) < lengths)
    words[1, 1:3] = words[0, 0:2]
    words[2, 3:] = 0
    return words


@pytest.mark.parametrize("num_characters", [3, 13])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_vectors_and_gradients_are_those_of_allennlp(encoder, num_characters):
    mine, theirs = (embedder(kind, encoder) for kind in ("distinct_character_encoding", "character_encoding"))
    words = characters(num_characters)
    made, expected = mine(words), theirs(words)
    torch.testing.assert_close(made, expected)
    assert made.shape == (3, 5, 6)
    weights = torch.randn(made.shape)
    for vectors in (made, expected):
        (vectors * weights).sum().backward()
    for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_every_distinct_word_goes_through_the_encoder_once_and_dropout_is_drawn_for_each_place():
    mine = embedder("distinct_character_encoding", "lstm", dropout=0.5).train()
    shapes = []
    mine._encoder._module.register_forward_hook(lambda module, given, made: shapes.append(tuple(given[0].shape)))
    words = torch.zeros(2, 3, 30, dtype=torch.long)
    words[0, :, 0] = torch.tensor([1, 2, 1])
    words[1, 0] = 3
    made = mine(words)
    assert shapes == [(3, 12, 4), (1, 30, 4)]  # two words of one character, the padding, and the long word
    assert not torch.equal(made[0, 0], made[0, 2])
