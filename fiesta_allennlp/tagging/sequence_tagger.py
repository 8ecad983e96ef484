"""The base of all sequence taggers: words in, a tag for each word and scores out."""

from typing import Any, Dict, List, Optional

import torch
from allennlp.common.checks import check_dimensions_match
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn.util import get_text_field_mask

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.tagging.encodings import PREFIXES, SpanScores, in_words, is_tag

LOSSES = ("mean", "sum")


class SequenceTagger(Model):
    """Base class of the taggers.

    A subclass implements the probability of tags (`log_likelihood`) and the choice of the best tags (`best_tags`). Its
    constructor calls its initializer last. The tagger decodes only outside of training, because metrics of the training
    set would cost more than the gradients. It therefore has no training metrics.

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
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        check_dimensions_match(
            text_field_embedder.get_output_dim(), encoder.get_input_dim(), "text field embedding", "encoder input"
        )
        if loss not in LOSSES:
            raise ConfigError(f"loss must be one of {list(LOSSES)} but is '{loss}'.{did_you_mean(loss, LOSSES)}")
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

    def log_likelihood(self, logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the log likelihood of the right tags, summed over the sentences.

        Shapes: `logits` (batch_size, num_words, num_tags), `tags` and `mask` (batch_size, num_words), the result ().
        """
        raise NotImplementedError

    def best_tags(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute the numbers of the best tags. The values at masked positions are arbitrary.

        Shapes: `logits` (batch_size, num_words, num_tags), `mask` (batch_size, num_words), the result (batch_size,
        num_words).
        """
        raise NotImplementedError

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: Optional[torch.Tensor] = None,
        metadata: Optional[List[Dict[str, Any]]] = None,
    ) -> Dict[str, Any]:
        """Compute the logits, the loss and, outside of training, the tags of a batch.

        Returns:
            `logits` of shape (batch_size, num_words, num_tags). Outside of training `tags`, a list of tag names for
                each sentence. `words` if `metadata` has them. `loss` if `tags`, of shape (batch_size, num_words), was
                given.
        """
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, num_words, embedding_dim)
        embedded = self._dropped(self._text_field_embedder(tokens))
        # Shape: (batch_size, num_words, encoding_dim)
        encoded = self._dropped(self._encoder(embedded, mask))
        # Shape: (batch_size, num_words, num_tags)
        logits = self._projection(encoded)
        output: Dict[str, Any] = {"logits": logits}
        if metadata is not None:
            output["words"] = [one["words"] for one in metadata]
        if tags is not None:
            likelihood = self.log_likelihood(logits, tags, mask)
            output["loss"] = -likelihood / len(tags) if self._is_mean else -likelihood
        if not self.training:
            output["tags"] = self._named(self.best_tags(logits, mask), mask)
            if tags is not None:
                self._scores(output["tags"], self._named(tags, mask))
        return output

    def _dropped(self, vectors: torch.Tensor) -> torch.Tensor:
        if self._variational_dropout.p > 0:  # with 0 it would copy the vectors all the same
            vectors = self._variational_dropout(vectors)
        return self._dropout(vectors)

    def _named(self, tags: torch.Tensor, mask: torch.Tensor) -> List[List[str]]:
        lengths = mask.sum(dim=1).tolist()
        return [
            [self._tag_names[number] for number in row[:length]]
            for row, length in zip(tags.tolist(), lengths, strict=True)
        ]

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, and `precision-overall`, `recall-overall` and `f1-measure-overall` of spans.

        Return an empty dictionary for the training set.
        """
        if self.training and not self._scores.num_words:
            return {}
        return self._scores.get_metric(reset)


def _check_encoding(encoding: Optional[str], tag_names: Dict[int, str]) -> None:
    if encoding is None:
        return
    if encoding not in PREFIXES:
        raise ConfigError(
            f"label_encoding must be one of {list(PREFIXES)} but is '{encoding}'.{did_you_mean(encoding, PREFIXES)}"
        )
    for name in tag_names.values():
        if not is_tag(name, encoding):
            raise ConfigError(
                f"label_encoding is '{encoding}', which has {in_words(encoding)}, but the data have the tag '{name}'. "
                "Give the encoding of the reader's tags: its `convert_to`, or else its `encoding`."
            )
