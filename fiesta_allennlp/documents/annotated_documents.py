"""Documents with their gold annotation, from a JSONL file; and tasks: how gold annotation and answers are read, counted
and scored."""

import hashlib
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, cast

import numpy as np

from fiesta_allennlp.core.errors import MAX_CHOICES, ConfigError, DataError, join_some
from fiesta_allennlp.core.files import read_jsonl, shorten, shown_value
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable

UNKNOWN = "?"
"""Stands for a predicted label that is not a gold label of any document."""

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


FIELD_NAMES = ("id", "items", "label", "tags", "spans")
"""The names that have a meaning. Every other field is passed on to the systems unchanged."""

Aliases = Mapping[str, str]
"""The names of fields in the file, by those of `FIELD_NAMES`."""


@dataclass(frozen=True)
class Item:
    """An item to annotate: its own fields, and the gold value in the task's form."""

    fields: Mapping[str, Any]
    gold: Any


@dataclass(frozen=True)
class Document:
    """The subject of one query. `fields` are what a system may see: all but the gold annotation. Without `has_items`,
    the document itself is its only item. `line` counts from 1."""

    id: str
    line: int
    fields: Mapping[str, Any]
    items: Tuple[Item, ...]
    has_items: bool


@dataclass(frozen=True)
class DocumentFacts:
    """Facts about the documents in the store; `file` is the file that they were read from."""

    file: str
    num_documents: int
    num_items: int


@dataclass(frozen=True)
class DocumentFile:
    """All documents in the file's order. The fingerprint identifies the content."""

    path: Path
    documents: Tuple[Document, ...]
    fingerprint: str

    @property
    def facts(self) -> DocumentFacts:
        return DocumentFacts(str(self.path), len(self.documents), sum(len(each.items) for each in self.documents))


def read_documents(path: Path, task: Task, fields: str = "") -> DocumentFile:
    """Read and check a file, whose `fields` are those of `--fields`. Raise a `DataError` with the line."""
    aliases = parse_field_names(fields)
    records = read_by_id(path, aliases.get("id", "id"), "use --fields id=FIELD")
    if not records:
        raise DataError(f"{path} contains no documents. Write one JSON object per line.")
    documents: List[Document] = []
    for key, (line, record) in records.items():
        documents.append(_parse_document(key, line, record, task, aliases, f"{path}, line {line}"))
    try:
        task.check([item.gold for document in documents for item in document.items])
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return DocumentFile(path, tuple(documents), hashlib.sha256(path.read_bytes()).hexdigest())


def read_by_id(path: Path, id_field: str, remedy: str) -> Dict[str, Tuple[int, Dict[str, Any]]]:
    """Return the lines of a JSONL file by their ids: the number of each, and the rest of its object. `remedy` is
    what to do where the field of the ids has another name."""
    records: Dict[str, Tuple[int, Dict[str, Any]]] = {}
    for line, record in read_jsonl(path):
        key = record.pop(id_field, None)
        if isinstance(key, bool) or not isinstance(key, (str, int)) or not str(key).strip():
            rule = f"'{id_field}' must be a string or a whole number but is {shorten(key)}"
            raise DataError(f"{path}, line {line}: {rule}. Add it, or {remedy}.")
        if str(key) in records:
            raise DataError(f"{path}, line {line}: the id '{key}' appears twice, first on line {records[str(key)][0]}.")
        records[str(key)] = line, record
    return records


def parse_field_names(text: str) -> Dict[str, str]:
    """Read `--fields id=key,label=sentiment` as a mapping from our names to the file's."""
    names: Dict[str, str] = {}
    for pair in filter(str.strip, text.split(",")):
        name, _, field = (piece.strip() for piece in pair.partition("="))
        if not field or name not in FIELD_NAMES:
            raise ConfigError(f"--fields: '{pair.strip()}' must be NAME=FIELD. Valid names: {', '.join(FIELD_NAMES)}.")
        names[name] = field
    return names


def _parse_document(key: str, line: int, fields: Dict[str, Any], task: Task, aliases: Aliases, where: str) -> Document:
    items_field = aliases.get("items", "items")
    if items_field not in fields:
        item = _parse_item(fields, task, aliases, where)
        return Document(key, line, item.fields, (item,), has_items=False)
    records = fields.pop(items_field)
    if not isinstance(records, list) or not records or not all(isinstance(item, dict) for item in records):
        rule = "must be a list of one or more objects but is"
        raise DataError(f"{where}: '{items_field}' {rule} {shown_value(records)}.")
    items = tuple(_parse_item(item, task, aliases, f"{where}, item {n}") for n, item in enumerate(records, start=1))
    for gold_field in task.gold_fields:
        fields.pop(aliases.get(gold_field, gold_field), None)
    fields["items"] = [dict(item.fields) for item in items]
    return Document(key, line, fields, items, has_items=True)


def _parse_item(record: Mapping[str, Any], task: Task, aliases: Aliases, where: str) -> Item:
    fields = dict(record)
    field_by_name = {name: aliases.get(name, name) for name in task.gold_fields}
    golds = {name: fields.pop(field) for name, field in field_by_name.items() if field in fields}
    if len(golds) != 1:
        choices = " or ".join(f"'{field}'" for field in field_by_name.values())
        number, names = "more than one" if golds else "no", join_some(record, limit=MAX_CHOICES) or "none"
        remedy = f"Use --fields {task.gold_fields[0]}=FIELD."
        raise DataError(f"{where} has {number} gold annotation ({choices}); its fields are {names}. {remedy}")
    ((name, value),) = golds.items()
    try:
        return Item(fields, task.gold(name, value))
    except DataError as error:
        raise DataError(f"{where}: '{field_by_name[name]}': {error} but is {shown_value(value)}.") from error
