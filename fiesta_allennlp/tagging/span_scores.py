"""Precision, recall and F1 of whole spans, and the accuracy of tags."""

from typing import Dict, Sequence

from allennlp.training.metrics import Metric

from fiesta_allennlp.tagging.encodings import spans_of


class SpanScores(Metric):
    """Computes the scores of CoNLL's evaluation script: a span is right if its label and both of its ends are right.

    Precision, recall and F1 are over the spans of all labels and all sentences. They are 0 if there is no right span. A
    tagger without constraints may predict wrong tags; `spans_of` defines how they count.

    Args:
        has_spans: `bool`, optional (default = `True`) Whether tags write spans. If not, the only score is the accuracy.
    """

    def __init__(self, has_spans: bool = True) -> None:
        self._has_spans = has_spans
        self.reset()

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """Adds sentences. `predicted` and `gold` have one tag for each word."""
        for guess, truth in zip(predicted, gold, strict=True):
            self.num_words += len(truth)
            self._num_right_tags += sum(one == other for one, other in zip(guess, truth, strict=True))
            if self._has_spans:
                guessed, true = set(spans_of(guess)), set(spans_of(truth))
                self._num_guessed += len(guessed)
                self._num_true += len(true)
                self._num_right += len(guessed & true)

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, `precision-overall`, `recall-overall` and `f1-measure-overall`."""
        scores = {"accuracy": _share(self._num_right_tags, self.num_words)}
        if self._has_spans:
            scores["precision-overall"] = _share(self._num_right, self._num_guessed)
            scores["recall-overall"] = _share(self._num_right, self._num_true)
            scores["f1-measure-overall"] = _share(2 * self._num_right, self._num_guessed + self._num_true)
        if reset:
            self.reset()
        return scores

    def reset(self) -> None:
        self.num_words = 0
        self._num_right_tags = 0
        self._num_right = 0
        self._num_guessed = 0
        self._num_true = 0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
