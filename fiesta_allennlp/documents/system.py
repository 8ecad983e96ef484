"""Trained systems that answer questions about documents: their base class, and answers that exist in a file."""

import hashlib
import json
import re
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError, did_you_mean, join_some
from fiesta_allennlp.core.files import shorten, shown_value
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.documents.annotated_documents import Document, DocumentFile, Task, read_by_id

QUERY_UNITS = ("document", "item")

MIN_VALUES = {"tries": 1, "time_limit": 0.001, "cost": 0, "start_time_limit": 0}
"""The smallest values of options of systems."""

FIELD_MARKER = re.compile(r"\$\{(\w+)\}")
"""The marker of a field in the body of a query."""

STOP_REASON = "it was stopped before it answered"


class Unanswered(FiestaError):
    """A system returned no answer, or an unusable one. The message contains the output of the system."""


class ProcessDied(Unanswered):
    """The process died over a question. The caller may ask the question again."""


class OutOfTime(Unanswered, TimeoutError):
    """No answer came within the time limit."""


@dataclass(kw_only=True, eq=False)
class System(Registrable):
    """A trained system that answers questions about documents.

    Args:
        each: the unit of one query: a whole `document` (default), or one `item` of it.
        body: the content of a query (default: all fields without the gold annotation). It is any JSON, in which
            `${name}` is replaced by a field. A text that is only `${name}` becomes the field's value, even a list or a
            number.
        answer: the place of the annotation in the answer, as keys and positions with dots, such as `choices.0.text`.
        labels: a mapping from the system's labels to the gold labels.
        cost: the cost of one query, in any unit.
        version: any text. Change it if the system now answers differently, so that the selection ignores kept answers.
        time_limit: the number of seconds that an answer may take. It replaces `--time-limit`.
    """

    keeps_answers: ClassVar[bool] = True
    """False where the answers are in a file already."""

    each: str = "document"
    body: Any = None
    answer: Optional[str] = None
    labels: Optional[Dict[str, str]] = None
    cost: float = 0.0
    version: str = ""
    time_limit: Optional[float] = None

    def __post_init__(self) -> None:
        if self.each not in QUERY_UNITS:
            raise ConfigError(f"'each' must be {' or '.join(QUERY_UNITS)} but is '{self.each}'.")
        for name, min_value in MIN_VALUES.items():
            value = getattr(self, name, None)
            if value is not None and value < min_value:
                raise ConfigError(f"'{name}' must be at least {min_value} but is {value}.")

    def identity(self) -> Dict[str, Any]:
        """Return all settings that determine the answers, as plain data.

        Kept answers belong to this identity.
        """
        return {"version": self.version}

    def fingerprint(self) -> str:
        """Return a text that is equal for systems with equal scores.

        Such systems answer alike, get the same questions, and have their answers read in the same way.
        """
        facts = [self.identity(), self.body, self.each, self.answer or "", self.labels or {}]
        text = json.dumps(facts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def check(self, documents: DocumentFile, task: Task) -> None:
        """Check that the system can work with these documents. The check sends no query and costs nothing. Answers that
        exist already must be readable by `answers`.

        Raises:
            FiestaError: if it cannot. The message gives the key and the remedy.
        """
        for document in documents.documents:
            try:
                self.questions(document)
            except DataError as error:
                raise DataError(f"{documents.path}, line {document.line}: {error}") from error

    def open(self, log: Path, *, time_limit: float) -> None:
        """Start the processes that the system needs, and check that they run.

        Args:
            log: a file for the output of the system.
            time_limit: the seconds that an answer may take, unless the config of the system sets a limit.

        Raises:
            FiestaError: if the system does not run.
        """

    @abstractmethod
    def ask(self, question: Any) -> Any:
        """Send one question and return its answer as plain data. One thread at a time calls it.

        Raises:
            Unanswered: if no answer came.
        """

    def close(self) -> None:
        """Release all resources that `open` acquired. It is idempotent."""

    def questions(self, document: Document) -> List[Any]:
        """Return the queries for a document: one body, or one body for each item."""
        if self.each == "item":
            queries = [dict(item.fields) for item in document.items]
        else:
            queries = [dict(document.fields) if self.body is None else {"id": document.id, **document.fields}]
        return queries if self.body is None else [render_body(self.body, fields) for fields in queries]

    def answers(self, raw: Sequence[Any], document: Document, task: Task) -> List[Any]:
        """Convert the replies to a document's questions into one answer for each item, in the task's form.

        Raises:
            Unanswered: if a reply has another form.
        """
        values = [self._extract_annotation(answer) for answer in raw]
        if self.each == "document" and document.has_items:
            (value,), num_items = values, len(document.items)
            if isinstance(value, dict):
                keys = ["items", *(f"{field}s" for field in task.gold_fields), *task.gold_fields]
                value = next((value[key] for key in keys if isinstance(value.get(key), list)), value)
            if not isinstance(value, list) or len(value) != num_items:
                rule = f"expected a list of {num_items} answers, one per item, but"
                raise Unanswered(f"{rule} it answered {shorten(value)}")
            values = value
        return [self._convert(value, item.gold, task) for value, item in zip(values, document.items, strict=True)]

    def _extract_annotation(self, answer: Any) -> Any:
        value = answer
        for step in self.answer.split(".") if self.answer else ():
            try:
                value = value[int(step)] if isinstance(value, list) else value[step]
            except (KeyError, IndexError, TypeError, ValueError):
                raise Unanswered(f"'{self.answer}' not found in {shorten(answer)}") from None
        with suppress(ValueError):
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                return json.loads(value)
        return value

    def _convert(self, value: Any, gold: Any, task: Task) -> Any:
        if isinstance(value, dict):
            keys = [key for key in task.gold_fields if key in value]
            if not keys:
                raise Unanswered(f"expected an object with '{task.gold_fields[0]}' but it answered {shorten(value)}")
            value = value[keys[0]]
        if isinstance(value, str):
            value = (self.labels or {}).get(value.strip(), value)
        try:
            return task.answer(value, gold)
        except DataError as error:
            raise Unanswered(f"{error} but is {shown_value(value)}") from error


def render_body(body: Any, fields: Mapping[str, Any]) -> Any:
    """Replace every `${name}` in the body by the field's value. Raise a `DataError` if a field is missing."""
    if isinstance(body, dict):
        return {key: render_body(value, fields) for key, value in body.items()}
    if isinstance(body, list):
        return [render_body(value, fields) for value in body]
    if not isinstance(body, str):
        return body
    for name in FIELD_MARKER.findall(body):
        if name not in fields:
            hint = did_you_mean(name, fields)
            raise DataError(f"no field '{name}' for 'body'; the fields are {join_some(fields)}.{hint}")
    if whole := FIELD_MARKER.fullmatch(body):
        return fields[whole[1]]
    texts = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in fields.items()}
    return FIELD_MARKER.sub(lambda match: texts[match[1]], body)


@System.register("predictions")
@dataclass(kw_only=True, eq=False)
class Predictions(System):
    """Existing answers from a JSONL file: one object in each line, with the document's `id`.

    `System` documents the remaining arguments. A file of predictions does not use `each` and `body`.

    Args:
        path: the file.
        id: the name of the file's field that holds the id.
    """

    keeps_answers = False

    path: str = field(kw_only=False)
    id: str = "id"

    def __post_init__(self) -> None:
        super().__post_init__()
        records = read_by_id(Path(self.path), self.id, "set 'id' to the field that has it")
        self._answers = {key: record for key, (_, record) in records.items()}

    def identity(self) -> Dict[str, Any]:
        return {**super().identity(), "type": "predictions", "answers": self._answers}

    def check(self, documents: DocumentFile, task: Task) -> None:
        missing = [document.id for document in documents.documents if document.id not in self._answers]
        if missing:
            number = f"{len(missing)} of {len(documents.documents)} documents in {documents.path}"
            raise DataError(f"{self.path} has no prediction for {number}, such as '{missing[0]}'. Add the predictions.")
        for document in documents.documents:
            try:
                self.answers([self.ask(document.id)], document, task)
            except Unanswered as error:
                remedy = 'For another key, use {"type": "predictions", "path": "...", "answer": "KEY"}.'
                raise DataError(f"{self.path}, document '{document.id}': {error}. {remedy}") from error

    def questions(self, document: Document) -> List[Any]:
        return [document.id]

    def ask(self, question: Any) -> Any:
        return self._answers[question]
