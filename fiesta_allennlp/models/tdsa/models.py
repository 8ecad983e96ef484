"""The four classifiers of a target's sentiment."""

from typing import Any, Dict

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.modules.attention import BilinearAttention
from allennlp.nn import Activation, InitializerApplicator
from allennlp.nn.util import get_final_encoder_states, masked_mean, masked_softmax, weighted_sum

from fiesta_allennlp.models.modules import encode, reverse
from fiesta_allennlp.models.tdsa.tdsa_classifier import EmbeddedText, TdsaClassifier


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
        self.check_width(text_encoder=text_encoder)
        self._text_encoder = text_encoder
        self.add_projection(text_encoder.get_output_dim())
        initializer(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        # Shape: (batch_size, encoding_dim)
        return encode(self._text_encoder, texts["text"].vectors, texts["text"].mask)


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
        self.check_width(left_encoder=left_encoder, right_encoder=right_encoder)
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
        self.check_width(text_encoder=text_encoder, target_encoder=target_encoder)
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


@Model.register("atae_lstm")
class AtaeLstm(TdsaClassifier):
    """LSTM with attention and aspect embedding.

    `Wang et al. (2016) <https://aclanthology.org/D16-1058>`__, sections 3.3 and 3.4.

    The model appends the target's vector v_a to every word of the sentence. The vector also guides the attention over
    the hidden states H, whose last one is h_N (equations 7 to 10 of the paper)::

        M = tanh([W_h H; W_v v_a e_N]),  alpha = softmax(w^T M),  r = H alpha^T,  h* = tanh(W_p r + W_x h_N)

    The paper learns a vector for each of five aspects. Here targets are open, so the model computes v_a from the
    target's words.

    Args:
        target_encoder: From the target's words to v_a. Moss et al. (2019) use an average, that is `boe` with
            `averaged`.
        text_encoder: Its input is as wide as a word and v_a together. It must read from left to right only.
    """

    reads = ("text", "target")

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        target_encoder: Seq2VecEncoder,
        text_encoder: Seq2SeqEncoder,
        initializer: InitializerApplicator = InitializerApplicator(),  # noqa: B008
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        target_dim = target_encoder.get_output_dim()
        self.check_width(target_encoder=target_encoder)
        self.check_width(text_encoder=text_encoder, added_dim=target_dim)
        self._target_encoder = target_encoder
        self._text_encoder = text_encoder
        hidden_dim = text_encoder.get_output_dim()
        self._hidden_projection = torch.nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_h
        self._target_projection = torch.nn.Linear(target_dim, target_dim, bias=False)  # W_v
        self._attention = torch.nn.Linear(hidden_dim + target_dim, 1, bias=False)  # w
        self._attended_projection = torch.nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_p
        self._final_projection = torch.nn.Linear(hidden_dim, hidden_dim, bias=False)  # W_x
        self.add_projection(hidden_dim)
        initializer(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        text, target = texts["text"], texts["target"]
        # Shape: (batch_size, target_dim)
        aspect = self._target_encoder(target.vectors, target.mask)
        # Shape: (batch_size, num_words, embedding_dim + target_dim)
        words = torch.cat([text.vectors, aspect.unsqueeze(1).expand(-1, text.vectors.size(1), -1)], dim=-1)
        # Shape: (batch_size, num_words, hidden_dim)
        hidden = self._text_encoder(words, text.mask)
        # Shape: (batch_size, hidden_dim)
        attended = weighted_sum(hidden, self.attention(hidden, aspect, text.mask))
        # Shape: (batch_size, hidden_dim)
        final = get_final_encoder_states(hidden, text.mask)
        # Shape: (batch_size, hidden_dim)
        return torch.tanh(self._attended_projection(attended) + self._final_projection(final))

    def attention(self, hidden: torch.Tensor, aspect: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute alpha, equations 7 and 8. Shape: (batch_size, num_words)"""
        # Shape: (batch_size, num_words, target_dim)
        targets = self._target_projection(aspect).unsqueeze(1).expand(-1, hidden.size(1), -1)
        # Shape: (batch_size, num_words, hidden_dim + target_dim)
        combined = torch.tanh(torch.cat([self._hidden_projection(hidden), targets], dim=-1))
        # Shape: (batch_size, num_words)
        return masked_softmax(self._attention(combined).squeeze(-1), mask)
