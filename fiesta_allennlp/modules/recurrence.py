"""Two things recurrent encoders of contexts need: contexts without words, and reading from the right."""

import torch
from allennlp.modules import Seq2VecEncoder


def encode(encoder: Seq2VecEncoder, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`encoder(vectors, mask)`, with zeros for a text without words, even where the whole batch has none.

    `vectors` has the shape (batch_size, num_words, embedding_dim), the result (batch_size, encoding_dim).
    """
    if not mask.any():
        return vectors.new_zeros(vectors.size(0), encoder.get_output_dim())
    return encoder(vectors, mask)


def reverse(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Every text from its last word to its first; the padding stays at the end.

    `vectors` and the result have the shape (batch_size, num_words, embedding_dim).
    """
    positions = torch.arange(vectors.size(1), device=vectors.device)
    # Shape: (batch_size, num_words)
    sources = (mask.sum(dim=1, keepdim=True) - 1 - positions).clamp(min=0)
    # Shape: (batch_size, 1)
    rows = torch.arange(vectors.size(0), device=vectors.device).unsqueeze(1)
    return vectors[rows, sources]
