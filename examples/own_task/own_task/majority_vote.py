from typing import Any, Dict

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.nn.util import get_text_field_mask
from allennlp.training.metrics import CategoricalAccuracy


@Model.register("majority_vote")
class MajorityVote(Model):
    """Every word votes for the labels, with weights that are learned. The mean vote decides.

    Args:
        vocab: of the words and the labels.
        dropout: the share of words whose votes are left out in training.
    """

    def __init__(self, vocab: Vocabulary, dropout: float = 0.0) -> None:
        super().__init__(vocab)
        self._votes = torch.nn.Embedding(vocab.get_vocab_size("tokens"), vocab.get_vocab_size("labels"))
        self._dropout = torch.nn.Dropout(dropout)
        self._accuracy = CategoricalAccuracy()

    def forward(  # type: ignore[override]
        self, tokens: TextFieldTensors, label: torch.Tensor, writer: Any = None
    ) -> Dict[str, torch.Tensor]:
        # Shape: (batch_size, num_tokens)
        mask = self._dropout(get_text_field_mask(tokens).float())
        # Shape: (batch_size, num_tokens, num_labels)
        votes = self._votes(tokens["tokens"]["tokens"]) * mask.unsqueeze(-1)
        # Shape: (batch_size, num_labels)
        logits = votes.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        self._accuracy(logits, label)
        return {"loss": torch.nn.functional.cross_entropy(logits, label), "logits": logits}

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        return {"accuracy": self._accuracy.get_metric(reset)}
