"""Interactive attention networks."""

from typing import Any, Dict

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.attention import BilinearAttention
from allennlp.nn import Activation, InitializerApplicator
from allennlp.nn.util import masked_mean, weighted_sum

from fiesta_allennlp.tdsa.tdsa_classifier import EmbeddedText, TdsaClassifier


@Model.register("ian")
class Ian(TdsaClassifier):
    """Interactive attention networks, `Ma et al. (2017) <https://www.ijcai.org/proceedings/2017/568>`__, section 2.2.

    Context and target each have an LSTM. The average of the target's hidden states is the query of an attention over
    the context's hidden states, and vice versa. For the context::

        gamma(h_i, t_avg) = tanh(h_i W_a t_avg^T + b_a),  alpha = softmax(gamma),  c_r = sum_i alpha_i h_i

    The representation is [c_r; t_r]. The context is the whole sentence, as in the paper's figure 1. The paper has a
    tanh between the projection to the labels and the softmax. Here the projection is the linear one that all models
    share.
    """

    reads = ("text", "target")

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        text_encoder: Seq2SeqEncoder,
        target_encoder: Seq2SeqEncoder,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        embedding_dim = text_field_embedder.get_output_dim()
        check_dimensions_match(embedding_dim, text_encoder.get_input_dim(), "word embedding", "text_encoder input")
        check_dimensions_match(embedding_dim, target_encoder.get_input_dim(), "word embedding", "target_encoder input")
        self._text_encoder = text_encoder
        self._target_encoder = target_encoder
        text_dim, target_dim = text_encoder.get_output_dim(), target_encoder.get_output_dim()
        tanh = Activation.by_name("tanh")()
        self._text_attention = BilinearAttention(target_dim, text_dim, activation=tanh)
        self._target_attention = BilinearAttention(text_dim, target_dim, activation=tanh)
        self.add_projection(text_dim + target_dim)
        initializer(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        text, target = texts["text"], texts["target"]
        # Shape: (batch_size, num_words, text_dim)
        text_hidden = self._text_encoder(text.vectors, text.mask)
        # Shape: (batch_size, num_target_words, target_dim)
        target_hidden = self._target_encoder(target.vectors, target.mask)
        # Shape: (batch_size, text_dim)
        text_average = masked_mean(text_hidden, text.mask.unsqueeze(-1), dim=1)
        # Shape: (batch_size, target_dim)
        target_average = masked_mean(target_hidden, target.mask.unsqueeze(-1), dim=1)
        # Shape: (batch_size, text_dim)
        text_final = weighted_sum(text_hidden, self._text_attention(target_average, text_hidden, text.mask))
        # Shape: (batch_size, target_dim)
        target_final = weighted_sum(target_hidden, self._target_attention(text_average, target_hidden, target.mask))
        # Shape: (batch_size, text_dim + target_dim)
        return torch.cat([text_final, target_final], dim=-1)
