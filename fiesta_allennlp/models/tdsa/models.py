"""The four classifiers of a target's sentiment, and the base class and predictor that they share."""

from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.common.util import JsonDict
from allennlp.data import Instance, TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, Seq2VecEncoder, TextFieldEmbedder
from allennlp.modules.attention import BilinearAttention
from allennlp.nn import Activation, InitializerApplicator
from allennlp.nn.util import get_final_encoder_states, get_text_field_mask, masked_mean, masked_softmax, weighted_sum
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.models.modules import encode, reverse


class EmbeddedText(NamedTuple):
    """A batch of texts as vectors. Shapes: `vectors` (batch_size, num_words, embedding_dim); `mask` (batch_size,
    num_words), false where a text is padded."""

    vectors: torch.Tensor
    mask: torch.Tensor


class TdsaClassifier(Model):
    """Base class of the classifiers.

    A subclass names the `fields` that it reads and computes their representation (`represent`). Its constructor calls
    `check_width`, sets the encoders, and calls `add_projection` and, last, its initializer.

    Args:
        text_field_embedder: Embeds context and target words alike.
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
        label_namespace: str = "labels",
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self._text_field_embedder = text_field_embedder
        self._dropout = torch.nn.Dropout(dropout)
        self._variational_dropout = InputVariationalDropout(variational_dropout)
        self._label_namespace = label_namespace
        self._accuracy = CategoricalAccuracy()
        self._f1 = FBetaMeasure(beta=1.0, average=None)

    def check_width(self, *, added_dim: int = 0, **encoders: Any) -> None:
        """Refuse an encoder whose input is not as wide as an embedded word and `added_dim` together."""
        for name, encoder in encoders.items():
            width = self._text_field_embedder.get_output_dim() + added_dim
            check_dimensions_match(width, encoder.get_input_dim(), "its input vectors", f"{name} input")

    def add_projection(self, representation_dim: int) -> None:
        """Add the linear layer from the representation to the labels."""
        self._projection = torch.nn.Linear(representation_dim, self.vocab.get_vocab_size(self._label_namespace))

    def represent(self, texts: Dict[str, EmbeddedText]) -> torch.Tensor:
        """Compute the representations from the `fields` of the model. Shape: (batch_size,
        representation_dim)"""
        raise NotImplementedError

    def forward(
        self,
        left: Optional[TextFieldTensors] = None,
        target: Optional[TextFieldTensors] = None,
        right: Optional[TextFieldTensors] = None,
        text: Optional[TextFieldTensors] = None,
        label: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """Compute `logits`, `probs` and, if there is a `label`, the `loss` of a batch, ignoring fields that the model
        does not read. Shapes: `logits` and `probs` (batch_size, num_labels), `label` (batch_size,)."""
        inputs = {"left": left, "target": target, "right": right, "text": text}
        # Shape: (batch_size, representation_dim)
        representation = self._dropout(self.represent({name: self._embed(name, inputs[name]) for name in self.fields}))
        # Shape: (batch_size, num_labels)
        logits = self._projection(representation)
        output: Dict[str, Any] = {"logits": logits, "probs": torch.softmax(logits, dim=-1)}
        if metadata is not None:
            output["metadata"] = metadata
        if label is not None:
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self._accuracy(logits, label)
            self._f1(output["probs"], label)
        return output

    def _embed(self, name: str, tokens: Optional[TextFieldTensors]) -> EmbeddedText:
        if tokens is None:
            raise ConfigError(
                f"{type(self).__name__} needs the field '{name}', which the reader does not produce. Add it to the "
                "reader's 'inputs'."
            )
        vectors = self._text_field_embedder(tokens)
        if self._variational_dropout.p > 0:  # with 0 it would copy the vectors all the same
            vectors = self._variational_dropout(vectors)
        return EmbeddedText(vectors, get_text_field_mask(tokens))

    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Add `label`, the most probable label of every instance."""
        names = self.vocab.get_index_to_token_vocabulary(self._label_namespace)
        output_dict["label"] = [names[index] for index in output_dict["probs"].argmax(dim=-1).tolist()]
        return output_dict

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, `<label>_f1` for each label of the vocabulary, and `macro_f1`, their mean."""
        scores = self._f1.get_metric(reset)["fscore"]
        names = self.vocab.get_index_to_token_vocabulary(self._label_namespace)
        metrics = {"accuracy": self._accuracy.get_metric(reset), "macro_f1": sum(scores) / len(scores)}
        metrics.update({f"{names[index]}_f1": score for index, score in enumerate(scores)})
        return metrics


@Predictor.register("tdsa")
class TdsaPredictor(Predictor):
    """Predicts the polarity towards a target, with any model of `fiesta_allennlp.models.tdsa`.

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

    fields = ("left", "right")

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
        left_encoding = encode(self._left_encoder, left.vectors, left.mask)
        # Shape: (batch_size, right_encoding_dim)
        right_encoding = encode(self._right_encoder, reverse(right.vectors, right.mask), right.mask)
        # Shape: (batch_size, left_encoding_dim + right_encoding_dim)
        return torch.cat([left_encoding, right_encoding], dim=-1)


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

    fields = ("text", "target")

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
        attended_text = weighted_sum(text_hidden, self._text_attention(target_average, text_hidden, text.mask))
        # Shape: (batch_size, target_dim)
        attended_target = weighted_sum(target_hidden, self._target_attention(text_average, target_hidden, target.mask))
        # Shape: (batch_size, text_dim + target_dim)
        return torch.cat([attended_text, attended_target], dim=-1)


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

    fields = ("text", "target")

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
        final_hidden = get_final_encoder_states(hidden, text.mask)
        # Shape: (batch_size, hidden_dim)
        return torch.tanh(self._attended_projection(attended) + self._final_projection(final_hidden))

    def attention(self, hidden: torch.Tensor, aspect: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute alpha, equations 7 and 8. Shape: (batch_size, num_words)"""
        # Shape: (batch_size, num_words, target_dim)
        targets = self._target_projection(aspect).unsqueeze(1).expand(-1, hidden.size(1), -1)
        # Shape: (batch_size, num_words, hidden_dim + target_dim)
        combined = torch.tanh(torch.cat([self._hidden_projection(hidden), targets], dim=-1))
        # Shape: (batch_size, num_words)
        return masked_softmax(self._attention(combined).squeeze(-1), mask)
