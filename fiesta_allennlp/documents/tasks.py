"""Tasks: how gold annotation and answers are read, counted and scored."""

from abc import abstractmethod
from collections import Counter
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, cast

import numpy as np

from fiesta_allennlp.core.errors import ConfigError, DataError, join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable

UNKNOWN = "?"
"""Stands for a predicted label that is not a gold label of any document."""

UNKNOWN_PREFIX = "unknown:"
"""Begins the names of the metrics that count answers which are no gold label."""

Span = Tuple[int, int, str]


class Task(Registrable):
    """A kind of annotation. An item has one gold value and gets one answer.

    An item must have exactly one of the fields `gold_fields`. `metric` is the score's name.
    """

    gold_fields: Tuple[str, ...] = ()
    metric: str

    @abstractmethod
    def gold(self, field: str, value: Any) -> Any:
        """Read the gold value of an item from its field.

        Raises:
            DataError: if the value is not a gold value. The message omits the place, which the caller knows.
        """

    @abstractmethod
    def answer(self, value: Any, gold: Any) -> Any:
        """Convert a system's answer for an item into the form of the gold value. The gold value determines the shape.

        Raises:
            DataError: if the answer has another shape.
        """

    def check(self, golds: Sequence[Any]) -> None:
        """Check once that the gold values of a file can tell systems apart.

        Raises:
            DataError: if they cannot. The message omits the file's name.
        """

    @abstractmethod
    def counts(self, golds: Sequence[Any], answers: Sequence[Any]) -> Dict[str, int]:
        """Count items, or parts of them, by the cell of the confusion matrix that they belong to."""

    def unknown_labels(self, answers: Sequence[Any]) -> Sequence[str]:
        """Return the labels among these answers that are no gold label of the file."""
        return ()

    @abstractmethod
    def score(self, counts: Mapping[str, float]) -> float:
        """Compute the measure called `metric` from the counts of one or more documents, by cell. It needs no earlier
        `check`."""

    def measure(self, history: History, name: str) -> float:
        """Score all counts of a candidate together, so that a document counts by its size."""
        counts = history.counts(name)
        return self.score(dict(zip(counts.kinds, counts.values.sum(axis=0).tolist(), strict=True)))


@Task.register("classification")
class Classification(Task):
    """Annotation with one label for each item.

    The score is the F-measure of one label, macro-F1 over all labels, or accuracy.

    Args:
        positive_label: the label that the F-measure is about. All other labels then count as one negative label.
        metric: `f_measure` (default with a positive label), `macro_f1` (default without) or `accuracy`.
    """

    gold_fields = ("label",)

    def __init__(self, *, positive_label: Optional[str] = None, metric: Optional[str] = None) -> None:
        self.metric = metric or ("macro_f1" if positive_label is None else "f_measure")
        allowed = ("macro_f1" if positive_label is None else "f_measure", "accuracy")
        if self.metric not in allowed:
            rule = f"must be {' or '.join(allowed)} {'without' if positive_label is None else 'with'} --positive-label"
            raise ConfigError(f"--metric {rule} but is '{self.metric}'.")
        self._positive = positive_label
        self._labels: List[str] = []

    def gold(self, field: str, value: Any) -> str:
        return _parse_label(value)

    def answer(self, value: Any, gold: Any) -> str:
        return _parse_label(value)

    def check(self, golds: Sequence[Any]) -> None:
        self._labels = sorted(set(golds))
        if self._positive is not None and self._positive not in self._labels:
            names = join_some(self._labels)
            raise DataError(f"no item has the label '{self._positive}' of --positive-label. The labels are {names}.")
        if len(self._labels) < 2:
            raise DataError(f"all {len(golds)} items have the label '{self._labels[0]}', so no system can be wrong.")
        reserved_label = next((label for label in self._labels if ">" in label or label == UNKNOWN), None)
        if self._positive is None and reserved_label is not None:
            raise DataError(f"the label '{reserved_label}' must not contain '>' or be '{UNKNOWN}'. Rename it.")

    def unknown_labels(self, answers: Sequence[str]) -> Sequence[str]:
        return [answer for answer in answers if answer not in self._labels]

    def counts(self, golds: Sequence[str], answers: Sequence[str]) -> Dict[str, int]:
        pairs = list(zip(golds, answers, strict=True))
        if self._positive is not None:
            n = Counter((gold == self._positive, answer == self._positive) for gold, answer in pairs)
            return {"tp": n[True, True], "fp": n[False, True], "fn": n[True, False], "tn": n[False, False]}
        confusion = Counter((gold, answer if answer in self._labels else UNKNOWN) for gold, answer in pairs)
        cells = ((gold, label) for gold in self._labels for label in [*self._labels, UNKNOWN])
        return {f"{gold}>{label}": confusion[gold, label] for gold, label in cells}

    def score(self, counts: Mapping[str, float]) -> float:
        if self._positive is not None:
            is_accuracy = self.metric == "accuracy"
            return (counts["tp"] + counts["tn"]) / sum(counts.values()) if is_accuracy else _f_measure(counts)
        labels = sorted({cell.partition(">")[0] for cell in counts})
        cells = np.array([[counts[f"{gold}>{answer}"] for answer in [*labels, UNKNOWN]] for gold in labels])
        if self.metric == "accuracy":
            return float(cells.trace() / cells.sum())
        totals = cells.sum(axis=1) + cells[:, :-1].sum(axis=0)
        return float((2 * cells.diagonal()[totals > 0] / totals[totals > 0]).mean())


@Task.register("spans")
class Spans(Task):
    """Marked spans of an item, as BIO tags of its tokens or as a set.

    The score is the micro-averaged F-measure of exact matches.
    """

    gold_fields = ("tags", "spans")
    metric = "f_measure"

    def __init__(self, *, positive_label: Optional[str] = None, metric: Optional[str] = None) -> None:
        if positive_label is not None:
            raise ConfigError("--positive-label requires --task classification.")
        if metric not in (None, self.metric):
            raise ConfigError(f"--metric must be f_measure for --task spans but is '{metric}'.")

    def gold(self, field: str, value: Any) -> Tuple[Optional[int], FrozenSet[Span]]:
        """Read the number of tokens, known from tags only, and the spans."""
        return (len(value), _spans_from_tags(value)) if field == "tags" else (None, _parse_spans(value))

    def answer(self, value: Any, gold: Any) -> FrozenSet[Span]:
        num_tokens, _ = gold
        if num_tokens is None:
            return _parse_spans(value)
        spans = _spans_from_tags(value)
        if len(value) != num_tokens:
            raise DataError(f"{len(value)} tags for {num_tokens} tokens")
        return spans

    def check(self, golds: Sequence[Any]) -> None:
        if not any(spans for _, spans in golds):
            raise DataError("no item has a span, so no system can be scored.")

    def counts(self, golds: Sequence[Any], answers: Sequence[Any]) -> Dict[str, int]:
        num_right = sum(len(gold & answer) for (_, gold), answer in zip(golds, answers, strict=True))
        num_gold, num_answered = sum(len(gold) for _, gold in golds), sum(map(len, answers))
        return {"tp": num_right, "fp": num_answered - num_right, "fn": num_gold - num_right, "tn": 0}

    def score(self, counts: Mapping[str, float]) -> float:
        return _f_measure(counts)


def _f_measure(counts: Mapping[str, float]) -> float:
    """Compute 2 TP / (2 TP + FP + FN), and 1 if there was nothing to find and nothing was found."""
    tp, fp, fn = counts["tp"], counts["fp"], counts["fn"]
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1.0


def _parse_label(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError("a label must be a string or a whole number")
    return value.strip()


def _spans_from_tags(value: Any) -> FrozenSet[Span]:
    """Read the spans of BIO tags; an `I-` without its `B-` begins one."""
    if not isinstance(value, list) or not all(isinstance(tag, str) and tag[:1] in ("B", "I", "O") for tag in value):
        raise DataError("tags must be a list of O, B-... and I-...")
    spans, start = set(), 0
    open_label: Optional[str] = None
    for position, tag in enumerate([*value, "O"]):
        if tag[0] == "I" and tag[2:] == open_label:
            continue
        if open_label is not None:
            spans.add((start, position - 1, open_label))
        start, open_label = position, None if tag[0] == "O" else tag[2:]
    return frozenset(spans)


def _parse_spans(value: Any) -> FrozenSet[Span]:
    if not isinstance(value, list):
        raise DataError('spans must be a list such as [[0, 5, "PERSON"]]')
    return frozenset(map(_parse_span, value))


def _parse_span(value: Any) -> Span:
    """Read `[start, end, label]`, or an object with these keys. The label is optional."""
    fields = [value.get("start"), value.get("end"), value.get("label", "")] if isinstance(value, dict) else value
    if isinstance(fields, list) and len(fields) == 2:
        fields = [*fields, ""]
    is_list = isinstance(fields, list) and [type(entry) for entry in fields] == [int, int, str]
    if not is_list or not 0 <= fields[0] <= fields[1]:
        raise DataError('a span must be [start, end, label] or {"start": ..., "end": ..., "label": ...}')
    return cast(Span, tuple(fields))
