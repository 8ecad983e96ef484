"""Vectors of words from their characters, in less time."""

import torch
from allennlp.modules.token_embedders import TokenCharactersEncoder, TokenEmbedder

NARROW = 12
"""Characters. Most words have no more, and none of them is padded to the longest word of the batch."""


@TokenEmbedder.register("distinct_character_encoding")
class DistinctCharacterEncoder(TokenCharactersEncoder):
    """Computes the vectors of AllenNLP's `character_encoding` once for each distinct word of a batch.

    Use it to save time: a batch repeats its frequent words, and one link or user name pads all words to its length. The
    encoder therefore takes words of at most 12 characters separately from longer ones, each word once. Vectors and
    gradients equal those of `character_encoding`, except for the order of summation. It needs an encoder that looks at
    no more than 12 characters at once.

    Args:
        dropout: Dropout on the vector of each word, with a new mask for each occurrence of the word.
    """

    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        batch_size, num_words, num_characters = token_characters.shape
        # Shapes: (num_distinct, num_characters) and (batch_size * num_words,)
        words, places = torch.unique(token_characters.view(-1, num_characters), dim=0, return_inverse=True)
        is_wide = words[:, NARROW:].any(dim=1)
        order = is_wide.long().sort(stable=True).indices
        narrow, wide = words[order].split([len(words) - int(is_wide.sum()), int(is_wide.sum())])
        # Shape: (num_distinct, encoding_dim), in `order`
        encoded = torch.cat([self._encoded(part) for part in (narrow[:, :NARROW], wide) if len(part)])
        # Shape: (batch_size * num_words, encoding_dim)
        vectors = encoded[order.argsort()[places]]
        return self._dropout(vectors.view(batch_size, num_words, -1))

    def _encoded(self, words: torch.Tensor) -> torch.Tensor:
        """Shapes: (some_words, width) to (some_words, encoding_dim)."""
        return self._encoder(self._embedding(words.unsqueeze(0)), (words != 0).long().unsqueeze(0)).squeeze(0)
