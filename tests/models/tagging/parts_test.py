"""The encoding of characters, which equals that of AllenNLP."""

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import TokenEmbedder

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
