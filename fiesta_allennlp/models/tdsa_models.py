"""The four classifiers of a target's sentiment."""

from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.common.util import JsonDict
from allennlp.data import Instance, TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.modules.attention import BilinearAttention
from allennlp.nn import InitializerApplicator, RegularizerApplicator
from allennlp.nn.util import get_final_encoder_states, get_text_field_mask, masked_mean, masked_softmax, weighted_sum
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.modules import drop, encode, reverse


class EmbeddedText(NamedTuple):
    """A batch of texts as vectors. Shapes: `vectors` (batch_size, num_words, embedding_dim); `mask` (batch_size,
    num_words), false where a text is padded."""

    vectors: torch.Tensor
    mask: torch.Tensor


class TdsaClassifier(Model):
    """Base class of the classifiers. A subclass names the `fields` that it reads and computes their representation
    (`represent`). Its constructor calls `add_projection` first and its initializer last.

    Args:
        text_field_embedder: Embeds the words of all fields.
        dropout: Regular dropout (Hinton et al. 2012) on the representation.
        variational_dropout: Dropout on the embedded words with one mask for all words of a text (Gal and Ghahramani
            2016).
    """

    default_predictor = "tdsa"
    fields: ClassVar[Tuple[str, ...]]

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        dropout: float = 0.0,
        variational_dropout: float = 0.0,
        regularizer: Optional[RegularizerApplicator] = None,
    ) -> None:
        super().__init__(vocab, regularizer)
        self._label_names = vocab.get_index_to_token_vocabulary("labels")
        self._text_field_embedder = text_field_embedder
        self._dropout = torch.nn.Dropout(dropout)
        self._variational_dropout = InputVariationalDropout(variational_dropout)
        self._accuracy = CategoricalAccuracy()
        self._f1 = FBetaMeasure(beta=1.0, average=None)

    def add_projection(self, representation_dim: int) -> None:
        """Add the layer from what `represent` returns to the labels."""
        self._projection = torch.nn.Linear(representation_dim, len(self._label_names))

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        """Compute the representations from the `fields` of the model. Shape: (batch_size,
        representation_dim)"""
        raise NotImplementedError

    def forward(
        self,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
        **texts: TextFieldTensors,
    ) -> Dict[str, Any]:
        """Compute `logits`, `probs` and, if there is a `label`, the `loss` of a batch, ignoring `texts` that the model
        does not read. Shapes: `logits` and `probs` (batch_size, num_labels), `label` (batch_size,)."""
        missing = [name for name in self.fields if name not in texts]
        if missing:
            raise ConfigurationError(
                f"{type(self).__name__} needs the field '{missing[0]}', which the reader does not produce. Add it to "
                "the reader's 'inputs'."
            )
        # Shape: (batch_size, representation_dim)
        representation = self._dropout(self.represent({name: self._embed(name, texts[name]) for name in self.fields}))
        # Shape: (batch_size, num_labels)
        logits = self.logits(representation)
        output: Dict[str, Any] = {"logits": logits, "probs": torch.softmax(logits, dim=-1)}
        if metadata is not None:
            output["metadata"] = metadata
        if label is not None:
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self._accuracy(logits, label)
            self._f1(output["probs"], label)
        return output

    def logits(self, representation: torch.Tensor) -> torch.Tensor:
        """Compute the logits of the labels. Shapes: (batch_size, representation_dim) to (batch_size, num_labels)."""
        return self._projection(representation)

    def embedder_of(self, field: str) -> TextFieldEmbedder:
        return self._text_field_embedder

    def _embed(self, field: str, tokens: TextFieldTensors) -> EmbeddedText:
        vectors = drop(self._variational_dropout, self.embedder_of(field)(tokens))
        return EmbeddedText(vectors, get_text_field_mask(tokens))

    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Add `label`, the most probable label of every instance."""
        output_dict["label"] = [self._label_names[index] for index in output_dict["probs"].argmax(dim=-1).tolist()]
        return output_dict

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, `<label>_f1` for each label of the vocabulary, and `macro_f1`, their mean."""
        scores = self._f1.get_metric(reset)["fscore"]
        f1_by_label = {f"{self._label_names[index]}_f1": score for index, score in enumerate(scores)}
        return {"accuracy": self._accuracy.get_metric(reset), "macro_f1": sum(scores) / len(scores), **f1_by_label}


def check_width(width: int, **encoders: Any) -> None:
    """Refuse an encoder whose input is not as wide as the vectors that it gets."""
    for name, encoder in encoders.items():
        check_dimensions_match(width, encoder.get_input_dim(), "its input vectors", f"{name} input")


@Predictor.register("tdsa")
class TdsaPredictor(Predictor):
    """Predicts the polarity towards a target, with any model of `fiesta_allennlp.models.tdsa_models`.

    The input is `{"text": ..., "target": ..., "from": ..., "to": ...}`. The offsets are optional if the target occurs
    once.

    """

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        for key in ("text", "target"):
            if key not in json_dict:
                raise DataError(f"'{key}' is missing from the input {json_dict}.")
        return self._dataset_reader.text_to_instance(
            json_dict["text"], json_dict["target"], start=json_dict.get("from"), end=json_dict.get("to")
        )


@Model.register("target_lstm")
class TargetLstm(TdsaClassifier):
    """The baseline LSTM of `Tang et al. (2016) <https://aclanthology.org/C16-1311>`__, section 3.1.

    The representation is the last hidden state over the whole sentence, so all targets of a sentence get the same
    answer. Use it to measure how much knowledge of the target improves the other models.
    """

    fields = ("text",)

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        text_encoder: Seq2VecEncoder,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        self.add_projection(text_encoder.get_output_dim())
        check_width(text_field_embedder.get_output_dim(), text_encoder=text_encoder)
        self._text_encoder = text_encoder
        (initializer or InitializerApplicator())(self)

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

    fields = ("left", "right")

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        left_encoder: Seq2VecEncoder,
        right_encoder: Seq2VecEncoder,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        self.add_projection(left_encoder.get_output_dim() + right_encoder.get_output_dim())
        check_width(text_field_embedder.get_output_dim(), left_encoder=left_encoder, right_encoder=right_encoder)
        self._left_encoder = left_encoder
        self._right_encoder = right_encoder
        (initializer or InitializerApplicator())(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        left, right = texts["left"], texts["right"]
        # Shape: (batch_size, left_encoding_dim)
        left_encoding = encode(self._left_encoder, left.vectors, left.mask)
        # Shape: (batch_size, right_encoding_dim)
        right_encoding = encode(self._right_encoder, reverse(right.vectors, right.mask), right.mask)
        # Shape: (batch_size, left_encoding_dim + right_encoding_dim)
        return torch.cat([left_encoding, right_encoding], dim=-1)


class TargetAttentionClassifier(TdsaClassifier):
    """Base class of the classifiers with an attention between the sentence and the target.

    A subclass takes the `target_field_embedder`, so that AllenNLP builds it after the encoders. It embeds the target's
    words instead, and is trained apart from `text_field_embedder`.

    Args:
        state_dropout: Variational dropout on states within the model.
    """

    fields = ("text", "target")
    _target_field_embedder: Optional[TextFieldEmbedder]

    def __init__(
        self, vocab: Vocabulary, text_field_embedder: TextFieldEmbedder, state_dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        self._state_dropout = InputVariationalDropout(state_dropout)

    def embedder_of(self, field: str) -> TextFieldEmbedder:
        return (self._target_field_embedder if field == "target" else None) or self._text_field_embedder


@Model.register("ian")
class Ian(TargetAttentionClassifier):
    """Interactive attention networks, `Ma et al. (2017) <https://www.ijcai.org/proceedings/2017/568>`__, section 2.2.

    Context and target each have an LSTM. The average of the target's hidden states is the query of an attention over
    the context's hidden states, and vice versa. For the context::

        gamma(h_i, t_avg) = tanh(h_i W_a t_avg^T + b_a),  alpha = softmax(gamma),  c_r = sum_i alpha_i h_i

    The representation is [c_r; t_r]. The context is the whole sentence, as in the paper's figure 1. The code of Moss et
    al. (2019) has a `target_field_embedder`, `tanh_logits`, and `state_dropout` equal to the other two dropouts. It
    drops the hidden states of both LSTMs. The paper has no dropout there.

    Args:
        tanh_logits: Whether there is a tanh between the projection to the labels and the softmax, as in the paper.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        text_encoder: Seq2SeqEncoder,
        target_encoder: Seq2SeqEncoder,
        target_field_embedder: Optional[TextFieldEmbedder] = None,
        tanh_logits: bool = False,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        self._target_field_embedder = target_field_embedder
        text_dim, target_dim = text_encoder.get_output_dim(), target_encoder.get_output_dim()
        self.add_projection(text_dim + target_dim)
        check_width(text_field_embedder.get_output_dim(), text_encoder=text_encoder)
        check_width(self.embedder_of("target").get_output_dim(), target_encoder=target_encoder)
        self._tanh_logits = tanh_logits
        self._text_encoder = text_encoder
        self._target_encoder = target_encoder
        self._text_attention = BilinearAttention(target_dim, text_dim, activation=torch.tanh)
        self._target_attention = BilinearAttention(text_dim, target_dim, activation=torch.tanh)
        (initializer or InitializerApplicator())(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        text, target = texts["text"], texts["target"]
        # Shape: (batch_size, num_words, text_dim)
        text_hidden = drop(self._state_dropout, self._text_encoder(text.vectors, text.mask))
        # Shape: (batch_size, num_target_words, target_dim)
        target_hidden = drop(self._state_dropout, self._target_encoder(target.vectors, target.mask))
        # Shape: (batch_size, text_dim)
        text_average = masked_mean(text_hidden, text.mask.unsqueeze(-1), dim=1)
        # Shape: (batch_size, target_dim)
        target_average = masked_mean(target_hidden, target.mask.unsqueeze(-1), dim=1)
        # Shape: (batch_size, text_dim)
        attended_text = weighted_sum(text_hidden, self._text_attention(target_average, text_hidden, text.mask))
        # Shape: (batch_size, target_dim)
        attended_target = weighted_sum(target_hidden, self._target_attention(text_average, target_hidden, target.mask))
        # Shape: (batch_size, text_dim + target_dim)
        return torch.cat([attended_text, attended_target], dim=-1)

    def logits(self, representation: torch.Tensor) -> torch.Tensor:
        logits = super().logits(representation)
        return torch.tanh(logits) if self._tanh_logits else logits


@Model.register("atae_lstm")
class AtaeLstm(TargetAttentionClassifier):
    """LSTM with attention and aspect embedding.

    `Wang et al. (2016) <https://aclanthology.org/D16-1058>`__, sections 3.3 and 3.4.

    The model appends the target's vector v_a to every word of the sentence. The vector also guides the attention over
    the hidden states H, whose last one is h_N (equations 7 to 10 of the paper)::

        M = tanh([W_h H; W_v v_a e_N]),  alpha = softmax(w^T M),  r = H alpha^T,  h* = tanh(W_p r + W_x h_N)

    The paper learns a vector for each of five aspects. Here targets are open, so the model computes v_a from the
    target's words. The code of Moss et al. (2019) has a `target_field_embedder`, `final_state: false`,
    `joint_fusion`, and `state_dropout` equal to the other two dropouts: on v_a where it follows a word, on
    [H; v_a e_N] before W_h, W_v or W, and on M. The paper has none.

    Args:
        target_encoder: From the target's words to v_a. Moss et al. use an average, that is `boe` with `averaged`.
        text_encoder: Its input is as wide as a word and v_a together. It must read from left to right only.
        final_state: Whether the representation is h*, as in the paper; otherwise, it is r.
        joint_fusion: Whether M is tanh(W [H; v_a e_N] + b).
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        target_encoder: Seq2VecEncoder,
        text_encoder: Seq2SeqEncoder,
        target_field_embedder: Optional[TextFieldEmbedder] = None,
        final_state: bool = True,
        joint_fusion: bool = False,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, **kwargs)
        self._target_field_embedder = target_field_embedder
        hidden_dim, target_dim = text_encoder.get_output_dim(), target_encoder.get_output_dim()
        self.add_projection(hidden_dim)
        check_width(self.embedder_of("target").get_output_dim(), target_encoder=target_encoder)
        check_width(text_field_embedder.get_output_dim() + target_dim, text_encoder=text_encoder)
        self._target_encoder = target_encoder
        self._text_encoder = text_encoder
        fusions = [(hidden_dim + target_dim, True)] if joint_fusion else [(hidden_dim, False), (target_dim, False)]
        self._fusions = torch.nn.ModuleList([torch.nn.Linear(dim, dim, bias=bias) for dim, bias in fusions])
        self._attention = torch.nn.Linear(hidden_dim + target_dim, 1, bias=False)  # w
        self._final_projections = torch.nn.ModuleList()  # W_p and W_x
        if final_state:
            self._final_projections.extend(torch.nn.Linear(hidden_dim, hidden_dim, bias=False) for _ in range(2))
        (initializer or InitializerApplicator())(self)

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        text, target = texts["text"], texts["target"]
        # Shape: (batch_size, num_words, target_dim)
        aspects = self._target_encoder(target.vectors, target.mask).unsqueeze(1).expand(-1, text.vectors.size(1), -1)
        # Shape: (batch_size, num_words, hidden_dim)
        hidden = self._text_encoder(torch.cat([text.vectors, drop(self._state_dropout, aspects)], dim=-1), text.mask)
        # Shape: (batch_size, hidden_dim)
        attended = weighted_sum(hidden, self.attention(hidden, aspects, text.mask))
        if not self._final_projections:
            return attended
        vectors = (attended, get_final_encoder_states(hidden, text.mask))
        return torch.tanh(sum(layer(vector) for layer, vector in zip(self._final_projections, vectors, strict=True)))

    def attention(self, hidden: torch.Tensor, aspects: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute alpha, equations 7 and 8. Shapes: `hidden` (batch_size, num_words, hidden_dim), `aspects`
        (batch_size, num_words, target_dim), the result (batch_size, num_words)."""
        # Shape: (batch_size, num_words, hidden_dim + target_dim)
        combined = drop(self._state_dropout, torch.cat([hidden, aspects], dim=-1))
        parts = combined.split([layer.in_features for layer in self._fusions], dim=-1)
        fused = torch.cat([layer(part) for layer, part in zip(self._fusions, parts, strict=True)], dim=-1)
        combined = drop(self._state_dropout, torch.tanh(fused))
        # Shape: (batch_size, num_words)
        return masked_softmax(self._attention(combined).squeeze(-1), mask)
