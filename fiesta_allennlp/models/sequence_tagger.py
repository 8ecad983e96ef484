"""The sequence taggers and their common base."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.conditional_random_field import allowed_transitions
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_text_field_mask

from fiesta_allennlp.models.modules import drop
from fiesta_allennlp.models.tagged_columns import PREFIXES, SpanScores, is_tag


class SequenceTagger(Model):
    """Base class of the taggers.

    A subclass implements the probability of tags (`log_likelihood`) and the choice of the best tags (`best_tags`). If
    it adds layers, its constructor calls the initializer last, and passes none on. The tagger decodes only outside of
    training, because metrics of the training set would cost more than the gradients. It therefore has no training
    metrics.

    Args:
        dropout: Dropout on the input and on the output of the encoder.
        variational_dropout: Dropout in the same two places, with one mask for all words of a sentence (Gal and
            Ghahramani 2016).
        label_encoding: How the reader's tags write spans: `BIO`, `IOB1` or `BIOUL`. `null` is for tags that write no
            spans, for which the only metric is the accuracy.
        loss: The `mean` or the `sum` of the negative log likelihoods of a batch's sentences. AllenNLP's own taggers
            with a conditional random field use the sum, which ties the learning rate to the batch size.
    """

    default_predictor = "sentence_tagger"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        dropout: float = 0.0,
        variational_dropout: float = 0.0,
        label_encoding: Optional[str] = "BIO",
        loss: str = "mean",
        label_namespace: str = "labels",
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        check_dimensions_match(
            text_field_embedder.get_output_dim(), encoder.get_input_dim(), "text field embedding", "encoder input"
        )
        if loss not in ("mean", "sum"):
            raise ConfigurationError(f"'loss' must be mean or sum but is '{loss}'.")
        self._tag_names: Dict[int, str] = vocab.get_index_to_token_vocabulary(label_namespace)
        _check_encoding(label_encoding, self._tag_names)
        self._label_encoding = label_encoding
        self._is_mean = loss == "mean"
        self._text_field_embedder = text_field_embedder
        self._encoder = encoder
        self._dropout = torch.nn.Dropout(dropout)
        self._variational_dropout = InputVariationalDropout(variational_dropout)
        self._projection = torch.nn.Linear(encoder.get_output_dim(), len(self._tag_names))
        self._scores = SpanScores(has_spans=label_encoding is not None)
        if initializer is not None:
            initializer(self)

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the log likelihood of the right tags, summed over the sentences. Shapes: `logits` (batch_size,
        num_words, num_tags), `tags` and `mask` (batch_size, num_words), the result ()."""
        raise NotImplementedError

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
        """Compute the numbers of the best tags of each sentence. Shapes: `logits` (batch_size, num_words, num_tags),
        `mask` (batch_size, num_words)."""
        raise NotImplementedError

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """Compute the logits, the loss if there are `tags`, and outside of training the names of the best tags of a
        batch. Shapes: `logits` (batch_size, num_words, num_tags), `tags` (batch_size, num_words)."""
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, num_words, embedding_dim)
        embedded = self._apply_dropout(self._text_field_embedder(tokens))
        # Shape: (batch_size, num_words, encoding_dim)
        encoded = self._apply_dropout(self._encoder(embedded, mask))
        # Shape: (batch_size, num_words, num_tags)
        logits = self._projection(encoded)
        output: Dict[str, Any] = {"logits": logits}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
        if tags is not None:
            likelihood = self.log_likelihood(logits, tags, mask)
            output["loss"] = -likelihood / len(tags) if self._is_mean else -likelihood
        if not self.training:
            output["tags"] = self._to_names(self.best_tags(logits, mask))
            if tags is not None:
                self._scores(output["tags"], self._to_names(unpadded(tags, mask)))
        return output

    def _apply_dropout(self, vectors: torch.Tensor) -> torch.Tensor:
        return self._dropout(drop(self._variational_dropout, vectors))

    def _to_names(self, tags: List[List[int]]) -> List[List[str]]:
        return [[self._tag_names[number] for number in row] for row in tags]

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, and the overall precision, recall and F1 of spans; an empty dictionary for the training
        set."""
        if self.training and not self._scores.num_words:
            return {}
        return self._scores.get_metric(reset)


def unpadded(tags: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
    """Return the tags of each sentence without its padding. Shape of both: (batch_size, num_words)."""
    return [row[:length] for row, length in zip(tags.tolist(), mask.sum(dim=1).tolist(), strict=True)]


def _check_encoding(encoding: Optional[str], tag_names: Dict[int, str]) -> None:
    if encoding is None:
        return
    if encoding not in PREFIXES:
        raise ConfigurationError(f"'label_encoding' must be one of {', '.join(PREFIXES)} but is '{encoding}'.")
    for name in tag_names.values():
        if not is_tag(name, encoding):
            raise ConfigurationError(
                f"'label_encoding' is {encoding}, but the data contain the tag '{name}'. Use the encoding of the "
                "reader's tags: its 'convert_to', or else its 'encoding'."
            )


@Model.register("softmax_sequence_tagger")
class SoftmaxSequenceTagger(SequenceTagger):
    """An encoder and a softmax over the tags of each word.

    It otherwise equals `crf_sequence_tagger`. The loss is the negative log likelihood of the tags of a sentence, which
    is that of a conditional random field whose transitions are all 0. AllenNLP's `simple_tagger` has no dropout, and
    computes its metrics in training too.
    """

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return -torch.nn.functional.cross_entropy(logits[mask], tags[mask], reduction="sum")

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
        return unpadded(logits.argmax(dim=-1), mask)


@Model.register("crf_sequence_tagger")
class CrfSequenceTagger(SequenceTagger):
    """An encoder and a linear-chain conditional random field over the tags.

    The model of `Huang et al. (2015) <https://arxiv.org/abs/1508.01991>`__, section 2.5. With embedded words and
    characters it is the tagger of `Lample et al. (2016) <https://aclanthology.org/N16-1030>`__ and of `Ma and Hovy
    (2016) <https://aclanthology.org/P16-1101>`__. With A the transitions and P the logits of sentence X, tags y have
    the probability::

        p(y | X) = exp s(X, y) / sum_y' exp s(X, y'),  s(X, y) = sum_i A_{y_i, y_{i+1}} + sum_i P_{i, y_i}

    (Lample et al., section 2.2, where y_0 and y_{n+1} are the start and the end). AllenNLP computes the likelihood and
    the best tags.

    Args:
        constrain_decoding: Whether decoding gives only tags that the label encoding allows. The likelihood is over all
            tags.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        constrain_decoding: bool = True,
        include_start_end_transitions: bool = True,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, encoder, **kwargs)
        constraints: Optional[List[Tuple[int, int]]] = None
        if constrain_decoding and self._label_encoding is not None:
            constraints = allowed_transitions(self._label_encoding, self._tag_names)
        self._crf = ConditionalRandomField(len(self._tag_names), constraints, include_start_end_transitions)
        (initializer or InitializerApplicator())(self)

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not self.training:
            self._check_allowed(tags, mask)
        return self._crf(logits, tags, mask)

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> List[List[int]]:
        return [tags for tags, _ in self._crf.viterbi_tags(logits, mask)]

    def _check_allowed(self, tags: torch.Tensor, mask: torch.Tensor) -> None:
        """Refuse gold tags that decoding can never produce."""
        # Shape: (batch_size, num_words - 1)
        is_forbidden = (self._crf._constraint_mask[tags[:, :-1], tags[:, 1:]] == 0) & mask[:, 1:]
        if is_forbidden.any():
            row, column = is_forbidden.nonzero()[0].tolist()
            first, second = (self._tag_names[int(tags[row, position])] for position in (column, column + 1))
            raise ConfigurationError(
                f"'label_encoding' is {self._label_encoding}, which does not allow '{second}' after '{first}', as the "
                "data do. Use the encoding of the reader's tags, convert them with the reader's 'convert_to', or set "
                "'constrain_decoding' to false."
            )
