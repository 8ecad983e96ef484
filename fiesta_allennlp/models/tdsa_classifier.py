"""The base class of the classifiers of a target's sentiment, and their predictor."""

from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.common.util import JsonDict
from allennlp.data import Instance, TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator
from allennlp.nn.util import get_text_field_mask
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.modules import drop


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
