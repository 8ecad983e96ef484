"""The base of all classifiers of a target's sentiment, and their predictor."""

from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.common.util import JsonDict
from allennlp.data import Instance, TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, TextFieldEmbedder
from allennlp.nn.util import get_text_field_mask
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

from fiesta_allennlp.core.errors import ConfigError, DataError


class EmbeddedText(NamedTuple):
    """A batch of texts as vectors. Shapes: `vectors` (batch_size, num_words, embedding_dim); `mask` (batch_size,
    num_words), false where a text is padded."""

    vectors: torch.Tensor
    mask: torch.Tensor


class TdsaClassifier(Model):
    """Base class of the classifiers.

    A subclass names the fields that it `reads` and computes their representation (`represent`). Its constructor calls
    `check_width`, sets the encoders, and calls `add_projection` and, last, its initializer.

    Args:
        text_field_embedder: Embeds context and target words alike.
        dropout: Regular dropout (Hinton et al. 2012) on the representation.
        variational_dropout: Dropout on the embedded words with one mask for all words of a text (Gal and Ghahramani
            2016).
    """

    default_predictor = "tdsa"
    reads: ClassVar[Tuple[str, ...]]

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
        """Compute the representations from the fields that the model `reads`. Shape: (batch_size,
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
        representation = self._dropout(self.represent({name: self._embed(name, inputs[name]) for name in self.reads}))
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
