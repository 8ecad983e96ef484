"""The run of a trained system: it answers about one document, or a batch, in a thread of this process. All answers are
kept in one SQLite file, so that no question is asked and paid for twice."""

import hashlib
import json
import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError, describe
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.metrics import COUNT_PREFIX, UNKNOWN_PREFIX
from fiesta_allennlp.core.records import Evaluation, Outcome, Request
from fiesta_allennlp.documents.annotated_documents import Document, Task
from fiesta_allennlp.documents.system import STOP_REASON, System, Unanswered
from fiesta_allennlp.running.executor import ActiveRun, Evaluator, Executor
from fiesta_allennlp.running.machine import origin_here
from fiesta_allennlp.running.processes import STOP_TIMEOUT_SECONDS
from fiesta_allennlp.selecting.database import connect_read_only

MAX_LABEL_LENGTH = 60  # characters

VERSION = 1
WAIT_SECONDS = 60.0
"""How long to wait for another selection that writes to the same file."""

SCHEMA = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS answers (
    system TEXT NOT NULL, question TEXT NOT NULL, run TEXT NOT NULL, asker TEXT NOT NULL, answer TEXT NOT NULL,
    cost REAL NOT NULL, seconds REAL NOT NULL, asked_at TEXT NOT NULL,
    PRIMARY KEY (system, question, run, asker)
);
CREATE INDEX IF NOT EXISTS charges ON answers (run, asker);
PRAGMA user_version = {VERSION};
"""


@dataclass(frozen=True)
class Answer:
    """An answer to a question, as plain data; `seconds` is its duration, `asked_at` ISO 8601 in UTC."""

    value: Any
    seconds: float
    asked_at: str


class AnswerStore:
    """Answers by system and question, written by any thread, and by several selections at once. `run` names the
    selection that pays for new answers, which makes none once `stopping` is set."""

    def __init__(self, path: Path, *, run: str) -> None:
        self._path, self._run = path, run
        self._lock, self.stopping = threading.Lock(), threading.Event()
        with self._translated_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=WAIT_SECONDS)
            version, num_tables = self._database.execute(
                "SELECT user_version, (SELECT COUNT(*) FROM sqlite_master) FROM pragma_user_version"
            ).fetchone()
            if version != VERSION and (version or num_tables):
                raise StoreError(f"{path} is not an answers file of this version. Pass another with --answers.")
            self._database.executescript(SCHEMA)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def find_answer(self, system: str, question: Any) -> Optional[Answer]:
        """Return the first answer of a system to a question, whoever paid for it."""
        query = "SELECT answer, seconds, asked_at FROM answers WHERE system = ? AND question = ? ORDER BY asked_at"
        row = self._execute(query, system, sha256_key(question))
        return None if row is None else Answer(json.loads(row[0]), row[1], row[2])

    def record(self, system: str, question: Any, answer: Answer, *, asker: str, cost: float) -> None:
        """Record an answer and its cost; `asker` is the selection's name for the system."""
        self._execute(
            "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(system, sha256_key(question), self._run, asker, json.dumps(answer.value)),
            *(cost, answer.seconds, answer.asked_at),
        )

    def _execute(self, statement: str, *values: Any) -> Any:
        """Execute a statement, and return its first row."""
        with self._lock, self._translated_errors():
            return self._database.execute(statement, values).fetchone()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = f"cannot use the answers file {self._path}: {error}"
            raise StoreError(f"{reason}. Fix it, or pass another with --answers.") from error


def read_charges(path: Path, *, run: str) -> Optional[Dict[str, Tuple[int, float]]]:
    """Return how many questions a selection, finished or running, asked and their cost, by asker, without changing the
    file; None if it cannot be read. Kept answers do not count."""
    if not path.is_file():
        return None
    try:
        with closing(connect_read_only(path)) as database:
            query = "SELECT asker, COUNT(*), SUM(cost) FROM answers WHERE run = ? GROUP BY asker"
            return {asker: (number, cost) for asker, number, cost in database.execute(query, (run,))}
    except sqlite3.Error:
        return None


def sha256_key(identity_or_question: Any) -> str:
    text = json.dumps(identity_or_question, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(eq=False)
class CachedSystem:
    """An open system at work, with its key among the kept answers. It is asked one question at a time, and none once
    `answers.stopping` is set; a question under way continues, because it may be paid for."""

    name: str
    system: System
    answers: AnswerStore

    def __post_init__(self) -> None:
        self._key = sha256_key(self.system.identity())
        self._lock = threading.Lock()

    def answer(self, question: Any) -> Answer:
        """Return the kept answer, or a new one, which is kept before it is used, because it may have been paid for."""
        keeps = self.system.keeps_answers
        with self._lock:
            if keeps and (kept_answer := self.answers.find_answer(self._key, question)) is not None:
                return kept_answer
            if self.answers.stopping.is_set():
                raise Unanswered(STOP_REASON)
            asked_at, start = datetime.now(timezone.utc), time.monotonic()
            value = self.system.ask(question)
            answer = Answer(value, time.monotonic() - start, asked_at.isoformat(timespec="milliseconds"))
            if keeps:
                self.answers.record(self._key, question, answer, asker=self.name, cost=self.system.cost)
            return answer


@dataclass(frozen=True)
class DocumentQueries(Evaluator):
    """Asks a system about a batch of documents: replicate k is the k-th batch of the system's order.

    It is called from threads of one process: unlike other evaluators it holds connections, and is not sent anywhere.
    `orders` has the positions of the documents for each system; shape of each: `(num_documents,)`. The last batch may
    have fewer documents than `batch_size`.
    """

    documents: Sequence[Document]
    task: Task
    orders: Mapping[str, np.ndarray]
    batch_size: int
    cached_systems: Mapping[str, CachedSystem]

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Ask about every document of the batch, or take the kept answer, and count."""
        system = self.cached_systems[request.candidate]
        counts: "Counter[str]" = Counter()
        unknown: "Counter[str]" = Counter()
        received: List[Answer] = []
        start = request.replicate * self.batch_size
        for position in self.orders[request.candidate][start : start + self.batch_size]:
            document = self.documents[position]
            try:
                raw_answers = [system.answer(question) for question in system.system.questions(document)]
                answers = system.system.answers([answer.value for answer in raw_answers], document, self.task)
            except Unanswered as error:
                raise type(error)(f"system '{request.candidate}', document '{document.id}': {error}.") from error
            received += raw_answers
            unknown.update(shorten(label, MAX_LABEL_LENGTH) for label in self.task.unknown_labels(answers))
            counts.update(self.task.counts([item.gold for item in document.items], answers))
        metrics = {COUNT_PREFIX + cell: float(number) for cell, number in counts.items()}
        return Evaluation(
            request=request,
            score=self.task.score(counts),
            metric=self.task.metric,
            seconds=sum(answer.seconds for answer in received),
            started_at=min(answer.asked_at for answer in received),
            metrics={**metrics, **{UNKNOWN_PREFIX + label: float(number) for label, number in unknown.items()}},
        )


class ThreadExecutor(Executor):
    """Makes runs in threads of this process, for evaluators that hold connections to other programs and wait for
    answers.

    Do not use it to train models: that needs processes. It is not registered for that reason. A thread cannot be
    killed: an abandoned run continues, and its outcome is dropped. The evaluator must enforce time limits itself.
    `close` calls `on_stop`, which makes the current runs end soon.
    """

    def __init__(self, directory: RunDirectory, *, workers: int, on_stop: Callable[[], None] = lambda: None) -> None:
        self.slots, self._directory, self._on_stop = workers, directory, on_stop
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="fiesta-query")
        self._futures: Dict[Request, "Future[Outcome]"] = {}
        self._abandoned: "List[Future[Outcome]]" = []

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._futures[request] = self._pool.submit(self._evaluate, evaluator, request)

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._futures:
            done, _ = wait(self._futures.values(), timeout=timeout, return_when=FIRST_COMPLETED)
            if not done:
                return
            for request in [request for request, future in self._futures.items() if future in done]:
                if (future := self._futures.pop(request, None)) is not None:  # unless it was abandoned meanwhile
                    yield future.result()

    def abandon(self, requests: Sequence[Request]) -> None:
        for request in requests:
            future = self._futures.pop(request, None)
            if future is not None and not future.cancel():
                self._abandoned.append(future)

    def close(self) -> None:
        """Wait briefly for the current and the abandoned runs, because an answer that arrives is kept and not paid for
        again."""
        futures = [*self._futures.values(), *self._abandoned]
        self._futures.clear()
        self._on_stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in futures if not future.cancelled()], timeout=STOP_TIMEOUT_SECONDS)

    def _evaluate(self, evaluator: Evaluator, request: Request) -> Outcome:
        """Return the outcome. A `StoreError` ends the selection, because nothing can be written down any more."""
        run = ActiveRun(request, origin_here())
        try:
            return replace(evaluator.evaluate(request, self._directory.evaluation(request.name)), origin=run.origin)
        except StoreError:
            raise
        except Exception as error:
            return run.failure("timeout" if isinstance(error, TimeoutError) else "error", describe(error))
