"""Trained systems that answer questions about documents: their base class, answers that exist in a file, and programs,
to which a line of JSON is sent for each question."""

import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import threading
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError, did_you_mean, join_some
from fiesta_allennlp.core.files import file_digest, last_line, shorten, shown_value
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.documents.annotated_documents import Document, DocumentFile, Task, read_by_id
from fiesta_allennlp.running import process_tree
from fiesta_allennlp.running.machine import with_interpreter

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
        return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=False).encode("utf-8")).hexdigest()

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


MAX_LINE_BYTES = 2**26  # bytes
KILL_TIMEOUT_SECONDS = 5.0


class LineProcess:
    """Starts a program that reads one line and prints one line, again and again.

    The program dies with this process, however this process ends (`process_tree`). Only one thread may ask at a time;
    any thread may call `kill`. The program's standard error is appended to `log`.
    """

    def __init__(self, command: Sequence[str], *, directory: Optional[str], log: Path) -> None:
        self.is_new = True  # until its first answer
        self._log, self._lock, self._unread = log, threading.Lock(), b""
        log.parent.mkdir(parents=True, exist_ok=True)
        read_end, self._guard_pipe = os.pipe()
        guarded_command = [sys.executable, process_tree.__file__, str(read_end), *command]
        try:
            with log.open("ab") as error_log:
                self._process = subprocess.Popen(
                    guarded_command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=error_log,
                    bufsize=0,
                    cwd=directory,
                    pass_fds=[read_end],
                    start_new_session=True,
                )
        finally:
            os.close(read_end)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def is_running(self) -> bool:
        """Whether the program runs and its output is open. Output that was read to find out is kept."""
        if self._guard_pipe >= 0 and not self._unread and select.select([self._output], [], [], 0)[0]:
            self._unread = self._read_chunk()
            return bool(self._unread)
        return self._guard_pipe >= 0

    def ask(self, line: str, *, time_limit: float) -> str:
        """Send a line, and return the next line of the program.

        Raise `OutOfTime` if no line came in time, after killing the program so that no later question gets the late
        answer; `ProcessDied` if the program ended; and `Unanswered` if it printed a line without a question.
        """
        deadline = time.monotonic() + time_limit
        timer = threading.Timer(time_limit, self.kill)
        timer.daemon = True
        timer.start()
        try:
            if not self.is_running:
                raise EOFError
            if self._unread:
                self.kill()
                text = shorten(self._unread.decode(errors="replace").strip())
                raise Unanswered(f"it printed an unexpected line: {text}. It must print one line of JSON for each line")
            unsent = memoryview(line.encode("utf-8") + b"\n")
            while unsent:
                unsent = unsent[self._input.write(unsent) or 0 :]
            return self._read_line()
        except (OSError, EOFError) as error:
            if time.monotonic() >= deadline:
                raise OutOfTime(f"no answer within {time_limit:g} seconds, so it was killed") from error
            text = last_line(self._log)
            ending = f"The last line of {self._log} is: {shorten(text)}" if text else f"See {self._log}"
            raise ProcessDied(f"it exited without an answer. {ending}") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the program and its children. Its streams stay open, because another thread may be reading."""
        with self._lock:
            if self._guard_pipe < 0:
                return
            os.close(self._guard_pipe)  # the guard then ends the program with its children
            self._guard_pipe = -1
            try:
                self._process.wait(timeout=KILL_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        """End the program and close its streams, once no thread asks any more."""
        self.kill()
        self._input.close()
        self._output.close()

    def _read_line(self) -> str:
        received, chunk = bytearray(), b""
        while b"\n" not in chunk:
            chunk = self._read_chunk()
            if not chunk:
                raise EOFError
            received += chunk
            if len(received) > MAX_LINE_BYTES:
                self.kill()
                raise Unanswered(f"its answer is longer than {MAX_LINE_BYTES} bytes")
        line, _, self._unread = bytes(received).partition(b"\n")
        return line.decode("utf-8", errors="replace")

    def _read_chunk(self) -> bytes:
        return os.read(self._output.fileno(), 2**16)


@System.register("command")
@dataclass(kw_only=True, eq=False)
class Command(System):
    """Asks a program that reads each question as a line of JSON on its standard input and prints each answer as a line.

    The selection starts the program once and keeps it running. It starts the program again if the program died or was
    too slow. A log keeps the program's standard error. The program must send each answer at once: in Python,
    `print(..., flush=True)`.

    `System` documents the remaining arguments.

    Args:
        command: the program and its arguments, as a list; a plain `python` is this interpreter. The content of those
            that are files is part of the identity.
        directory: the working directory of the program (default: the current directory).
        start_time_limit: the extra seconds that the first answer after a start may take, beyond the time limit.
        tries: the total number of times that a question is asked if the process dies over it.
    """

    command: List[str] = field(kw_only=False)
    directory: Optional[str] = None
    start_time_limit: float = 60.0
    tries: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        command = with_interpreter(self.command)
        if self.directory is not None and not Path(self.directory).is_dir():
            raise ConfigError(f"'directory' {self.directory} does not exist.")
        if not command or (shutil.which(command[0]) is None and not self._argument_path(command[0]).is_file()):
            raise ConfigError(f"'command' must start with an executable file or a program but is {command}.")
        self._words, self._is_closed = command, False
        self._process: Optional[LineProcess] = None

    def identity(self) -> Dict[str, Any]:
        files = map(self._argument_path, self.command)
        return {
            **super().identity(),
            "type": "command",
            "command": self.command,
            "directory": self.directory,
            "files": {str(path): file_digest(path) for path in files if path.is_file()},
        }

    def _argument_path(self, argument: str) -> Path:
        return Path(self.directory or ".") / argument

    def open(self, log: Path, *, time_limit: float) -> None:
        self._log = log
        self._time_limit = time_limit if self.time_limit is None else self.time_limit
        self._start()

    def ask(self, question: Any) -> Any:
        line = json.dumps(question, ensure_ascii=False)
        for _ in range(self.tries - 1):
            with suppress(ProcessDied):
                return self._ask_once(line)
        return self._ask_once(line)

    def close(self) -> None:
        self._is_closed = True
        if self._process is not None:
            self._process.close()

    def _ask_once(self, line: str) -> Any:
        process = self._process
        if process is None or not process.is_running:
            process = self._start()
        start_seconds = self.start_time_limit if process.is_new else 0.0
        answer = process.ask(line, time_limit=self._time_limit + start_seconds)
        process.is_new = False
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            process.kill()  # what it prints next may still belong to this question
            raise Unanswered(f"its answer is not JSON: {shorten(answer)}") from error

    def _start(self) -> LineProcess:
        if self._is_closed:
            raise Unanswered(STOP_REASON)
        if self._process is not None:
            self._process.close()
        self._process = LineProcess(self._words, directory=self.directory, log=self._log)
        return self._process
