"""Parts of AllenNLP models that serve any task: encoders, a token embedder, a collator and an optimizer.

The unpacked LSTMs run over padded batches: they compute the states of AllenNLP's `lstm`, in less time on a CPU. A state
that was reached from left to right does not depend on the padding after it, so nothing is packed. Packing costs more
than it saves: a batch of 32 texts of 3 to 21 words takes three times as long with 50 units, and a fifth longer with
300. For several layers or very uneven texts, use AllenNLP's `lstm`."""

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance
from allennlp.data.data_loaders.data_collator import DataCollator
from allennlp.data.fields import LabelField, MetadataField, SequenceLabelField, TextField
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, Seq2VecEncoder
from allennlp.modules.token_embedders import TokenCharactersEncoder, TokenEmbedder
from allennlp.training.optimizers import Optimizer, make_parameter_groups


class _UnpackedLstm(torch.nn.Module):
    """One layer that reads from left to right."""

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
            backward_states = reverse(self._backward_lstm(reverse(inputs, mask))[0], mask)
            # Shape: (batch_size, num_words, 2 * hidden_size)
            states = torch.cat([states, backward_states], dim=-1)
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
    """Return `encoder(vectors, mask)`, with zeros for a text without words, even if the whole batch has none. Shapes:
    `vectors` (batch_size, num_words, embedding_dim), the result (batch_size, encoding_dim)."""
    if not mask.any():
        return vectors.new_zeros(vectors.size(0), encoder.get_output_dim())
    return encoder(vectors, mask)


def drop(dropout: InputVariationalDropout, vectors: torch.Tensor) -> torch.Tensor:
    """Return `dropout(vectors)`. With a probability of 0 the layer would copy the vectors all the same."""
    return dropout(vectors) if dropout.p > 0 else vectors


def reverse(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Reverse every text and leave the padding at the end. Shape of `vectors` and the result: (batch_size, num_words,
    embedding_dim)."""
    positions = torch.arange(vectors.size(1), device=vectors.device)
    # Shape: (batch_size, num_words)
    source_positions = (mask.sum(dim=1, keepdim=True) - 1 - positions).clamp(min=0)
    # Shape: (batch_size, 1)
    rows = torch.arange(vectors.size(0), device=vectors.device).unsqueeze(1)
    return vectors[rows, source_positions]


@DataCollator.register("token_ids")
class TokenIdsCollator(DataCollator):
    """The batches of AllenNLP's default collator for word ids, characters and labels, in a fraction of its time.

    For small models the default collator takes as long as the model: it pads each instance separately and stacks the
    tensors. This collator pads all instances of a batch together. It omits metadata, which no training needs, and which
    AllenNLP would search for tensors in every batch. Use it if all text fields have `single_id` or `characters`
    indexers; otherwise, use the default.

    Raises:
        ConfigurationError: on a field that is neither text, label, sequence label nor metadata, or on other indexers.
    """

    def __call__(self, instances: List[Instance]) -> Dict[str, Any]:
        batch: Dict[str, Any] = {}
        for name, field in instances[0].fields.items():
            fields = [instance.fields[name] for instance in instances]
            if isinstance(field, TextField):
                batch[name] = _text_tensors(name, fields)
            elif isinstance(field, LabelField):
                batch[name] = torch.tensor([label._label_id for label in fields], dtype=torch.long)
            elif isinstance(field, SequenceLabelField):
                batch[name] = torch.from_numpy(_pad_ids([labels._indexed_labels for labels in fields]))
            elif not isinstance(field, MetadataField):
                raise ConfigurationError(
                    f"the collator 'token_ids' does not support '{name}', a {type(field).__name__}. Remove "
                    "'collate_fn' from the data loader."
                )
        return batch


def _text_tensors(name: str, fields: List[TextField]) -> Dict[str, Dict[str, torch.Tensor]]:
    tensors: Dict[str, Dict[str, torch.Tensor]] = {}
    for indexer, indexed in fields[0]._indexed_tokens.items():
        (key, *other_keys) = indexed
        if other_keys or key not in ("tokens", "token_characters"):
            raise ConfigurationError(
                f"the collator 'token_ids' supports only 'single_id' and 'characters' indexers, not '{indexer}' of "
                f"'{name}'. Remove 'collate_fn' from the data loader."
            )
        ids = [field._indexed_tokens[indexer][key] for field in fields]
        if key == "tokens":
            padded = _pad_ids(ids)
        else:
            padded = _pad_characters(ids, min_characters=fields[0]._token_indexers[indexer]._min_padding_length)
        tensors[indexer] = {key: torch.from_numpy(padded)}
    return tensors


def _pad_ids(ids: List[List[int]]) -> np.ndarray:
    """Shape: `(batch_size, num_words)`."""
    padded = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
    for row, text in zip(padded, ids, strict=True):
        row[: len(text)] = text
    return padded


def _pad_characters(texts: List[List[List[int]]], *, min_characters: int) -> np.ndarray:
    """Pad every word to the longest one, but at least to `min_characters`. Shape: `(batch_size, num_words,
    num_characters)`."""
    width = max([min_characters, *(len(word) for text in texts for word in text)])
    padded = np.zeros((len(texts), max(map(len, texts)), width), dtype=np.int64)
    for rows, text in zip(padded, texts, strict=True):
        for row, word in zip(rows, text, strict=False):
            row[: len(word)] = word
    return padded


NARROW_WIDTH = 12  # characters, which few words exceed


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
        words, word_index = torch.unique(token_characters.view(-1, num_characters), dim=0, return_inverse=True)
        is_wide = words[:, NARROW_WIDTH:].any(dim=1)
        order = is_wide.long().sort(stable=True).indices
        narrow, wide = words[order].split([len(words) - int(is_wide.sum()), int(is_wide.sum())])
        # Shape: (num_distinct, encoding_dim), in `order`
        encoded = torch.cat([self._encode(group) for group in (narrow[:, :NARROW_WIDTH], wide) if len(group)])
        # Shape: (batch_size * num_words, encoding_dim)
        vectors = encoded[order.argsort()[word_index]]
        return self._dropout(vectors.view(batch_size, num_words, -1))

    def _encode(self, words: torch.Tensor) -> torch.Tensor:
        """Shapes: (some_words, width) to (some_words, encoding_dim)."""
        return self._encoder(self._embedding(words.unsqueeze(0)), (words != 0).long().unsqueeze(0)).squeeze(0)


@Optimizer.register("nadam")
class NadamOptimizer(Optimizer, torch.optim.NAdam):
    """PyTorch's Nadam (`Dozat 2016 <https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ>`__)."""

    def __init__(
        self,
        model_parameters: List[Tuple[str, torch.nn.Parameter]],
        parameter_groups: Optional[List[Tuple[List[str], Dict[str, Any]]]] = None,
        lr: float = 0.002,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
    ) -> None:
        params = make_parameter_groups(model_parameters, parameter_groups)
        super().__init__(params, lr, betas, eps, weight_decay, momentum_decay)
