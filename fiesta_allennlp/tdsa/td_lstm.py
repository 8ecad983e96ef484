"""TD-LSTM."""

from typing import Any, Dict

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator

from fiesta_allennlp.modules.unpacked_lstm import encode, reverse
from fiesta_allennlp.tdsa.tdsa_classifier import EmbeddedText, TdsaClassifier


@Model.register("td_lstm")
class TdLstm(TdsaClassifier):
    """Target-dependent LSTM, `Tang et al. (2016) <https://aclanthology.org/C16-1311>`__, section 3.2.

    One LSTM reads the left context towards the target. Another LSTM reads the right context from the end of the
    sentence towards the target. The model concatenates their last hidden states. The reader's option `include_target`
    sets whether the target's own words belong to the contexts. The paper includes them; Moss et al. (2019) leave them
    out.
    """

    reads = ("left", "right")

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        left_encoder: Seq2VecEncoder,
        right_encoder: Seq2VecEncoder,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        embedding_dim = text_field_embedder.get_output_dim()
        check_dimensions_match(embedding_dim, left_encoder.get_input_dim(), "word embedding", "left_encoder input")
        check_dimensions_match(embedding_dim, right_encoder.get_input_dim(), "word embedding", "right_encoder input")
        self._left_encoder = left_encoder
        self._right_encoder = right_encoder
        self.add_projection(left_encoder.get_output_dim() + right_encoder.get_output_dim())
        initializer(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        left, right = texts["left"], texts["right"]
        # Shape: (batch_size, left_encoding_dim)
        from_left = encode(self._left_encoder, left.vectors, left.mask)
        # Shape: (batch_size, right_encoding_dim)
        from_right = encode(self._right_encoder, reverse(right.vectors, right.mask), right.mask)
        # Shape: (batch_size, left_encoding_dim + right_encoding_dim)
        return torch.cat([from_left, from_right], dim=-1)
