"""The LSTM that does not know its target."""

from typing import Any, Dict

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator

from fiesta_allennlp.modules.unpacked_lstm import encode
from fiesta_allennlp.tdsa.tdsa_classifier import EmbeddedText, TdsaClassifier


@Model.register("target_lstm")
class TargetLstm(TdsaClassifier):
    """The baseline LSTM of `Tang et al. (2016) <https://aclanthology.org/C16-1311>`__, section 3.1.

    The representation is the last hidden state over the whole sentence, so all targets of a sentence get the same
    answer. Use it to measure how much knowledge of the target improves the other models.
    """

    reads = ("text",)

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        text_encoder: Seq2VecEncoder,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        embedding_dim = text_field_embedder.get_output_dim()
        check_dimensions_match(embedding_dim, text_encoder.get_input_dim(), "word embedding", "text_encoder input")
        self._text_encoder = text_encoder
        self.add_projection(text_encoder.get_output_dim())
        initializer(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        # Shape: (batch_size, encoding_dim)
        return encode(self._text_encoder, texts["text"].vectors, texts["text"].mask)
