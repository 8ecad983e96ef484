"""The models of `benchmark_epochs.py` in plain PyTorch, as public reimplementations write them: packed sequences over
batches of any lengths. The same equations and sizes as `fiesta_allennlp.tdsa`."""

from typing import Any, Dict, Mapping, Tuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Text = Tuple[torch.Tensor, torch.Tensor]
"""Embedded words of shape `(batch_size, num_words, dim)`, and lengths of shape `(batch_size,)`."""


class PackedLstm(nn.Module):
    """An LSTM over packed texts. A text without words counts as one of padding."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, batch_first=True)

    def forward(self, text: Text) -> Tuple[torch.Tensor, torch.Tensor]:
        """All states, zeros where a text is padded, and the last ones."""
        words, lengths = text
        packed = pack_padded_sequence(words, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        states, (last, _) = self.lstm(packed)
        return pad_packed_sequence(states, batch_first=True, total_length=words.size(1))[0], last[0]


class Classifier(nn.Module):
    """Words in, labels out. `reads` are the texts that a child represents."""

    reads: Tuple[str, ...]

    def __init__(self, matrix: torch.Tensor, config: Mapping[str, Any], num_labels: int) -> None:
        super().__init__()
        (tokens,) = config["text_field_embedder"]["token_embedders"].values()
        self.embed = nn.Embedding.from_pretrained(matrix, freeze=not tokens.get("trainable", True), padding_idx=0)
        self.dropout = nn.Dropout(config.get("dropout", 0.0))
        self.word_dropout = config.get("variational_dropout", 0.0)
        self.out = nn.Linear(self.build(matrix.size(1), config), num_labels)

    def build(self, dim: int, config: Mapping[str, Any]) -> int:
        """Make the layers. Returns how wide a representation is."""
        raise NotImplementedError

    def represent(self, texts: Dict[str, Text]) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, ids: Dict[str, torch.Tensor]) -> torch.Tensor:
        return self.out(self.dropout(self.represent({name: self._words(ids[name]) for name in self.reads})))

    def _words(self, ids: torch.Tensor) -> Text:
        words, lengths = self.embed(ids), (ids != 0).sum(dim=1)
        if self.word_dropout and self.training:
            mask = nn.functional.dropout(words.new_ones(words.size(0), 1, words.size(2)), self.word_dropout)
            words = words * mask
        return words, lengths


class TdLstm(Classifier):
    """The right context comes reversed."""

    reads = ("left", "right")

    def build(self, dim: int, config: Mapping[str, Any]) -> int:
        sizes = [config[f"{side}_encoder"]["hidden_size"] for side in self.reads]
        self.lstms = nn.ModuleList([PackedLstm(dim, size) for size in sizes])
        return sum(sizes)

    def represent(self, texts: Dict[str, Text]) -> torch.Tensor:
        last = [lstm(texts[side])[1] for side, lstm in zip(self.reads, self.lstms, strict=True)]
        empty = [(texts[side][1] == 0).unsqueeze(-1) for side in self.reads]
        return torch.cat([state.masked_fill(gone, 0.0) for state, gone in zip(last, empty, strict=True)], dim=-1)


class AtaeLstm(Classifier):
    reads = ("text", "target")

    def build(self, dim: int, config: Mapping[str, Any]) -> int:
        size = config["text_encoder"]["hidden_size"]
        self.lstm = PackedLstm(2 * dim, size)
        self.of_state, self.of_target = nn.Linear(size, size, bias=False), nn.Linear(dim, dim, bias=False)
        self.attend = nn.Linear(size + dim, 1, bias=False)
        self.attended, self.final = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        return int(size)

    def represent(self, texts: Dict[str, Text]) -> torch.Tensor:
        (words, lengths), (target, target_lengths) = texts["text"], texts["target"]
        target = target * mask_of(target, target_lengths).unsqueeze(-1)
        aspect = target.sum(dim=1) / target_lengths.clamp(min=1).unsqueeze(-1)
        beside = aspect.unsqueeze(1).expand(-1, words.size(1), -1)
        states, last = self.lstm((torch.cat([words, beside], dim=-1), lengths))
        on_target = self.of_target(aspect).unsqueeze(1).expand(-1, words.size(1), -1)
        scores = self.attend(torch.tanh(torch.cat([self.of_state(states), on_target], dim=-1))).squeeze(-1)
        weights = masked_softmax(scores, mask_of(words, lengths))
        attended = torch.bmm(weights.unsqueeze(1), states).squeeze(1)
        return torch.tanh(self.attended(attended) + self.final(last))


class Ian(Classifier):
    reads = ("text", "target")

    def build(self, dim: int, config: Mapping[str, Any]) -> int:
        sizes = [config[f"{name}_encoder"]["hidden_size"] for name in self.reads]
        self.lstms = nn.ModuleList([PackedLstm(dim, size) for size in sizes])
        self.weights = nn.ParameterList([nn.Parameter(torch.empty(b, a)) for a, b in (sizes, sizes[::-1])])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in sizes])
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)
        return sum(sizes)

    def represent(self, texts: Dict[str, Text]) -> torch.Tensor:
        states = [lstm(texts[name])[0] for name, lstm in zip(self.reads, self.lstms, strict=True)]
        lengths = [texts[name][1] for name in self.reads]
        averages = [one.sum(dim=1) / n.clamp(min=1).unsqueeze(-1) for one, n in zip(states, lengths, strict=True)]
        made = []
        for one in (0, 1):
            query = averages[1 - one] @ self.weights[one]
            scores = torch.tanh(torch.bmm(states[one], query.unsqueeze(-1)).squeeze(-1) + self.biases[one])
            weights = masked_softmax(scores, mask_of(states[one], lengths[one]))
            made.append(torch.bmm(weights.unsqueeze(1), states[one]).squeeze(1))
        return torch.cat(made, dim=-1)


def mask_of(words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """True where there is a word. Shape: `(batch_size, num_words)`."""
    return torch.arange(words.size(1)) < lengths.unsqueeze(-1)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)


MODELS = {"td_lstm": TdLstm, "atae_lstm": AtaeLstm, "ian": Ian}
"""By the registered name of ours."""
