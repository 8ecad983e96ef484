"""Documents with their gold annotation, from a JSONL file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from fiesta_allennlp.core.errors import MAX_CHOICES, ConfigError, DataError, join_some
from fiesta_allennlp.core.files import read_jsonl, shorten, shown_value
from fiesta_allennlp.documents.tasks import Task

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


def read_documents(path: Path, task: Task, aliases: Aliases) -> DocumentFile:
    """Read and check a file. Raise a `DataError` with the line."""
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
