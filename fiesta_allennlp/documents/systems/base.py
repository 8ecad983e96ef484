import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from allennlp.common import Registrable

from fiesta_allennlp.documents.document_file import Document, DocumentFile
from fiesta_allennlp.documents.systems.body import check_body, render
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.errors import ConfigError, DataError, FiestaError
from fiesta_allennlp.files import shortened

EACH = ("document", "item")

STOPPED = "it was stopped before it answered"


class Unanswered(FiestaError):
    """A system gave no answer, or one that cannot be used. The message says what came."""


class Died(Unanswered):
    """The process ended over a question, so that it may be asked again."""


class OutOfTime(Unanswered, TimeoutError):
    """No answer came within the time limit."""


class Unavailable(Unanswered, ConnectionError):
    """The system is down, whatever the question. It may answer the same question later."""


@dataclass(frozen=True)
class Workplace:
    """What a system gets when it is opened.

    `name` is the system's, `log` a file for what it prints, `time_limit` the seconds an answer may take where the
    system's own config says nothing, `packages` are to be imported where models are loaded.
    """

    name: str
    log: Path
    time_limit: float
    packages: Sequence[str] = ()


class System(Registrable):
    """Something that was trained already and answers questions about documents.

    Args:
        each: what one query is about: a whole `document` (default), or one `item` of it.
        body: what is sent, where it is not all fields without the gold annotation: any JSON, in which `${name}` stands
            for a field. A text that is nothing but `${name}` becomes the field's value, a list or a number too.
        answer: where in the answer the annotation is, as keys and positions with dots, such as `choices.0.text`.
        labels: what the system calls the labels, with the gold labels as values.
        cost: of one query, in whatever unit.
        version: any text. A new one tells that the system answers differently now, so that kept answers are not used.
        time_limit: seconds that an answer may take, in place of `--time-limit`.
        parallel: how many queries it takes at once.
    """

    keeps_answers = True
    """Whether answers are worth keeping. Not where they are in a file already."""

    def __init__(
        self,
        *,
        each: str = "document",
        body: Any = None,
        answer: Optional[str] = None,
        labels: Optional[Dict[str, str]] = None,
        cost: float = 0.0,
        version: str = "",
        time_limit: Optional[float] = None,
        parallel: int = 1,
    ) -> None:
        if each not in EACH:
            raise ConfigError(f"'each' must be {' or '.join(EACH)} but is {shortened(each)}.")
        _check_number("cost", cost, least=0)
        _check_number("parallel", parallel, least=1)
        if time_limit is not None:
            _check_number("time_limit", time_limit, least=0, above=True)
        self.each, self.body, self.cost, self.version = each, body, float(cost), version
        self.time_limit, self.parallel = time_limit, parallel
        self._answer = answer.split(".") if answer else []
        self._labels = labels or {}

    def identity(self) -> Dict[str, Any]:
        """All that decides what is answered, as plain data without secrets: kept answers belong to it."""
        return {"version": self.version}

    def fingerprint(self) -> str:
        """Equal for systems that get the same scores: those that answer alike, and are asked and read alike."""
        about = [self.identity(), self.body, self.each, self._answer, self._labels]
        text = json.dumps(about, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def check(self, documents: DocumentFile) -> None:
        """Refuse what cannot work with these documents. Asks nothing, costs nothing.

        Raises:
            FiestaError: with the key and the remedy.
        """
        if self.each == "document" and self.body is None:
            return
        for document in documents.documents:
            for question in self._fields(document):
                try:
                    check_body(self.body, question)
                except DataError as error:
                    raise DataError(f"{documents.path}, line {document.line}: {error}") from error

    def check_answers(self, documents: DocumentFile, task: Task) -> None:
        """Refuse answers that exist before anything is asked and that `answers` cannot read. Most systems have none.

        Raises:
            DataError: with the first document, what its answer is, and the remedy.
        """

    def open(self, workplace: Workplace) -> None:
        """Make ready for questions: start what has to run, and find out whether it does.

        Raises:
            FiestaError: where it does not.
        """

    def ask(self, question: Any) -> Any:
        """One answer, as plain data. At most `parallel` threads call it at once.

        Raises:
            Unanswered: where none came.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Begin nothing again: the selection ends. Called from another thread; idempotent."""

    def close(self) -> None:
        """End what was opened. Idempotent."""

    def questions(self, document: Document) -> List[Any]:
        """What is sent for a document: one body, or one for each item."""
        return [render(self.body, fields) for fields in self._fields(document)]

    def answers(self, raw: Sequence[Any], document: Document, task: Task) -> List[Any]:
        """The answers for a document's items in the task's form, from what came for its questions.

        Raises:
            Unanswered: where something else came.
        """
        found = [self._located(answer) for answer in raw]
        if self.each == "document" and document.has_items:
            found = _listed(found[0], task, len(document.items))
        return [self._read(value, item.gold, task) for value, item in zip(found, document.items, strict=True)]

    def _fields(self, document: Document) -> List[Dict[str, Any]]:
        if self.each == "item":
            return [dict(item.fields) for item in document.items]
        return [dict(document.fields)] if self.body is None else [{"id": document.id, **document.fields}]

    def _located(self, answer: Any) -> Any:
        value = answer
        for step in self._answer:
            try:
                value = value[int(step)] if isinstance(value, list) else value[step]
            except (KeyError, IndexError, TypeError, ValueError):
                raise Unanswered(f"there is no '{'.'.join(self._answer)}' in {shortened(answer)}") from None
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value

    def _read(self, value: Any, gold: Any, task: Task) -> Any:
        if isinstance(value, dict):
            keys = [key for key in task.gold_fields if key in value]
            if not keys:
                raise Unanswered(f"expected an object with '{task.gold_fields[0]}' but it answered {shortened(value)}")
            value = value[keys[0]]
        if isinstance(value, str):
            value = self._labels.get(value.strip(), value)
        try:
            return task.answer(value, gold)
        except DataError as error:
            raise Unanswered(f"{error}, but it answered {shortened(value)}") from error


def _listed(value: Any, task: Task, num_items: int) -> List[Any]:
    if isinstance(value, dict):
        keys = ["items", *(f"{field}s" for field in task.gold_fields), *task.gold_fields]
        value = next((value[key] for key in keys if isinstance(value.get(key), list)), value)
    if not isinstance(value, list) or len(value) != num_items:
        raise Unanswered(
            f"expected a list of {num_items} answers, one for each item, but it answered {shortened(value)}"
        )
    return value


def _check_number(key: str, value: Any, *, least: float, above: bool = False) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not (value > least if above else value >= least) or value == float("inf"):
        raise ConfigError(f"'{key}' must be {'above' if above else 'at least'} {least:g} but is {shortened(value)}.")
