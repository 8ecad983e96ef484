"""A tagger that chooses each tag by itself."""

from typing import Any

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator

from fiesta_allennlp.tagging.sequence_tagger import SequenceTagger


@Model.register("softmax_sequence_tagger")
class SoftmaxSequenceTagger(SequenceTagger):
    """An encoder and a softmax over the tags of each word.

    It otherwise equals `crf_sequence_tagger`. The loss is the negative log likelihood of the tags of a sentence, which
    is that of a conditional random field whose transitions are all 0. AllenNLP's `simple_tagger` has no dropout, and
    computes its metrics in training too.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, encoder, **kwargs)
        initializer(self)

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return -torch.nn.functional.cross_entropy(logits[mask], tags[mask], reduction="sum")

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return logits.argmax(dim=-1)
