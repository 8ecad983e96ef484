"""The encodings of spans as tags, IOB1, BIO and BIOUL: checked, converted and scored."""

from itertools import pairwise
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from allennlp.modules.conditional_random_field.conditional_random_field import is_transition_allowed
from allennlp.training.metrics import Metric

PREFIXES: Dict[str, str] = {"IOB1": "IOB", "BIO": "BIO", "BIOUL": "BIOUL"}  # the first letters of tags, by encoding
OUTSIDE = "O"


class Span(NamedTuple):
    """The words `first` to `last` of a sentence, both included."""

    label: str
    first: int
    last: int


def split_tag(tag: str) -> Tuple[str, str]:
    prefix, _, label = tag.partition("-")
    return prefix, label


def is_tag(tag: str, encoding: str) -> bool:
    """Return whether a tag belongs to the encoding, regardless of the tags around it."""
    prefix, _ = split_tag(tag)
    return tag == OUTSIDE or (prefix != OUTSIDE and prefix in tuple(PREFIXES[encoding]))


def first_error(tags: Sequence[str], encoding: str) -> Optional[Tuple[int, str]]:
    """Return the position of the first tag that the encoding forbids, and the reason; None if all tags are valid. In
    IOB1 a `B-` may begin any span, so a sentence in BIO is also valid IOB1, with the same spans."""
    for position, tag in enumerate(tags):
        if not is_tag(tag, encoding):
            return position, f"'{tag}' is not a valid {encoding} tag"
    if encoding == "IOB1":
        return None
    enclosed = [("START", ""), *map(split_tag, tags), ("END", "")] if tags else []
    for position, (previous, current) in enumerate(pairwise(enclosed)):
        if not is_transition_allowed(encoding, *previous, *current):
            if position == len(tags):
                return position - 1, f"{encoding} does not allow '{tags[-1]}' at the end of a sentence"
            context = f"after '{tags[position - 1]}'" if position else "at the beginning of a sentence"
            return position, f"{encoding} does not allow '{tags[position]}' {context}"
    return None


def spans_of(tags: Sequence[str]) -> List[Span]:
    """Return the spans of a sentence, in order, in any of the encodings. Wrong tags count as in CoNLL's evaluation
    script: an `I-` or `L-` that does not continue a span begins a span."""
    spans: List[Span] = []
    is_open = False
    for position, tag in enumerate(tags):
        prefix, label = split_tag(tag)
        if prefix == OUTSIDE:
            is_open = False
        elif is_open and prefix in "IL" and label == spans[-1].label:
            spans[-1] = spans[-1]._replace(last=position)
            is_open = prefix != "L"
        else:
            spans.append(Span(label, position, position))
            is_open = prefix not in "UL"
    return spans


def tags_of(spans: Sequence[Span], num_words: int, encoding: str) -> List[str]:
    """Return the tags, in BIO or BIOUL, of a sentence with these spans."""
    tags = [OUTSIDE] * num_words
    for label, first, last in spans:
        prefixes = ["B", *"I" * (last - first)]
        if encoding == "BIOUL":
            prefixes[-1] = "U" if first == last else "L"
        for position, prefix in zip(range(first, last + 1), prefixes, strict=True):
            tags[position] = f"{prefix}-{label}" if label else prefix
    return tags


class SpanScores(Metric):
    """Computes the scores of CoNLL's evaluation script: a span is right if its label and both of its ends are right.

    Precision, recall and F1 are over the spans of all labels and all sentences, and 0 if no span is right. `spans_of`
    defines how wrong tags of a tagger without constraints count. Without `has_spans`, the only score is the accuracy.
    """

    def __init__(self, has_spans: bool = True) -> None:
        self._has_spans = has_spans
        self.reset()

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """Add sentences, with one tag for each word."""
        for guess, truth in zip(predicted, gold, strict=True):
            self.num_words += len(truth)
            self._num_right_tags += sum(tag == true_tag for tag, true_tag in zip(guess, truth, strict=True))
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
        self.num_words = self._num_right_tags = 0
        self._num_right = self._num_guessed = self._num_true = 0


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0
