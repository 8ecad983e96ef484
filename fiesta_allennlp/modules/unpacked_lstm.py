"""LSTMs that run over padded batches as they are: the states of AllenNLP's `lstm`, in less time on a processor.

A state that was reached from left to right does not know of the padding behind it, so there is nothing to pack.
Packing costs more than it saves: a batch of 32 texts of 3 to 21 words takes three times as long with 50 units, and a
fifth longer with 300. For several layers or very uneven texts take AllenNLP's `lstm`.
"""

from typing import Optional

import torch
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder


class _UnpackedLstm(torch.nn.Module):
    """A layer from left to right, and its dimensions."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self._lstm = torch.nn.LSTM(input_size, hidden_size, batch_first=True)

    def get_input_dim(self) -> int:
        return self._lstm.input_size

    def get_output_dim(self) -> int:
        return self._lstm.hidden_size


@Seq2SeqEncoder.register("unpacked_lstm")
class UnpackedLstmSeq2Seq(_UnpackedLstm, Seq2SeqEncoder):
    """All hidden states of one layer, zeros where a text is padded.

    Args:
        hidden_size: Of each direction.
        bidirectional: Whether the states of a second LSTM, which reads each text from its last word to its first, are
            appended.
    """

    def __init__(self, input_size: int, hidden_size: int, bidirectional: bool = False) -> None:
        super().__init__(input_size, hidden_size)
        self._backward_lstm: Optional[torch.nn.LSTM] = None
        if bidirectional:
            self._backward_lstm = torch.nn.LSTM(input_size, hidden_size, batch_first=True)

    def get_output_dim(self) -> int:
        return super().get_output_dim() * (2 if self.is_bidirectional() else 1)

    def is_bidirectional(self) -> bool:
        return self._backward_lstm is not None

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Shape: (batch_size, num_words, hidden_size)
        states = self._lstm(inputs)[0]
        if self._backward_lstm is not None:
            from_right = reverse(self._backward_lstm(reverse(inputs, mask))[0], mask)
            # Shape: (batch_size, num_words, 2 * hidden_size)
            states = torch.cat([states, from_right], dim=-1)
        return states * mask.unsqueeze(-1)


@Seq2VecEncoder.register("unpacked_lstm")
class UnpackedLstmSeq2Vec(_UnpackedLstm, Seq2VecEncoder):
    """The last hidden state of one layer from left to right, zeros for a text without words."""

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # Shape: (batch_size, num_words, hidden_size)
        states, _ = self._lstm(inputs)
        # Shape: (batch_size,)
        num_words = mask.sum(dim=1)
        rows = torch.arange(states.size(0), device=states.device)
        # Shape: (batch_size, hidden_size)
        return states[rows, (num_words - 1).clamp(min=0)] * (num_words > 0).unsqueeze(-1)


def encode(encoder: Seq2VecEncoder, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return `encoder(vectors, mask)`, with zeros for a text without words, even where the whole batch has none.

    `vectors` has the shape (batch_size, num_words, embedding_dim), the result (batch_size, encoding_dim).
    """
    if not mask.any():
        return vectors.new_zeros(vectors.size(0), encoder.get_output_dim())
    return encoder(vectors, mask)


def reverse(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Reverse every text, from its last word to its first; the padding stays at the end.

    `vectors` and the result have the shape (batch_size, num_words, embedding_dim).
    """
    positions = torch.arange(vectors.size(1), device=vectors.device)
    # Shape: (batch_size, num_words)
    sources = (mask.sum(dim=1, keepdim=True) - 1 - positions).clamp(min=0)
    # Shape: (batch_size, 1)
    rows = torch.arange(vectors.size(0), device=vectors.device).unsqueeze(1)
    return vectors[rows, sources]
