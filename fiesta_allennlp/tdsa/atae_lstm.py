"""ATAE-LSTM."""

from typing import Any, Dict

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_final_encoder_states, masked_softmax, weighted_sum

from fiesta_allennlp.tdsa.tdsa_classifier import EmbeddedText, TdsaClassifier


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
        embedding_dim, target_dim = text_field_embedder.get_output_dim(), target_encoder.get_output_dim()
        check_dimensions_match(embedding_dim, target_encoder.get_input_dim(), "word embedding", "target_encoder input")
        check_dimensions_match(
            embedding_dim + target_dim,
            text_encoder.get_input_dim(),
            "word embedding + target_encoder output",
            "text_encoder input",
        )
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
