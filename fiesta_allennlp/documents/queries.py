"""The run of a trained system: it answers about one document, or a batch, in a thread of this process."""

import queue
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError, describe
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import Evaluation, Outcome, Request
from fiesta_allennlp.documents.answers import Answer, AnswerStore, sha256_key
from fiesta_allennlp.documents.document_file import Document
from fiesta_allennlp.documents.systems.system import STOP_REASON, System, Unanswered
from fiesta_allennlp.documents.tasks import UNKNOWN_PREFIX, Task
from fiesta_allennlp.running.executor import ActiveRun, Evaluator, Executor
from fiesta_allennlp.running.fork_server import STOP_TIMEOUT_SECONDS
from fiesta_allennlp.running.machine import origin_here

MAX_LABEL_LENGTH = 60  # characters


class CachedSystem:
    """An open system at work, with its key among the kept answers. It is asked one question at a time."""

    def __init__(self, name: str, system: System, answers: AnswerStore) -> None:
        self.name = name
        self.system = system
        self.key = sha256_key(system.identity())
        self._answers = answers
        self._lock = threading.Lock()
        self._stop_event = threading.Event()

    def answer(self, question: Any) -> Answer:
        """Return the kept answer, or a new one, which is kept before it is used, because it may have been paid for."""
        with self._lock:
            answer = self._answers.find_answer(self.key, question) if self.system.keeps_answers else None
            if answer is None:
                answer = self._ask(question)
                if self.system.keeps_answers:
                    self._answers.record(self.key, question, answer, asker=self.name, cost=self.system.cost)
            return answer

    def stop(self) -> None:
        """Ask no more questions. One under way continues, because it may be paid for."""
        self._stop_event.set()

    def _ask(self, question: Any) -> Answer:
        if self._stop_event.is_set():
            raise Unanswered(STOP_REASON)
        asked_at, start = datetime.now(timezone.utc), time.monotonic()
        value = self.system.ask(question)
        return Answer(value, time.monotonic() - start, asked_at.isoformat(timespec="milliseconds"))


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
        counts: Dict[str, float] = {}
        received: List[Answer] = []
        unknown: "Counter[str]" = Counter()
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
            for name, number in self.task.counts([item.gold for item in document.items], answers).items():
                counts[name] = counts.get(name, 0.0) + number
        return Evaluation(
            request=request,
            score=self.task.score(counts),
            metric=self.task.metric,
            seconds=sum(answer.seconds for answer in received),
            started_at=min(answer.asked_at for answer in received),
            metrics={**counts, **{UNKNOWN_PREFIX + label: float(number) for label, number in unknown.items()}},
        )


class ThreadExecutor(Executor):
    """Makes runs in threads of this process, for evaluators that hold connections to other programs and wait for
    answers.

    Do not use it to train models: that needs processes. It is not registered for that reason. A thread cannot be
    killed: an abandoned run continues, and its outcome is dropped. The evaluator must enforce time limits itself.
    `close` calls `on_stop`, which makes the current runs end soon.
    """

    def __init__(
        self, directory: RunDirectory, *, workers: int = 1, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        self.slots = workers
        self._directory = directory
        self._on_stop = on_stop
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="fiesta-query")
        self._outcomes: "queue.SimpleQueue[Future[Outcome]]" = queue.SimpleQueue()
        self._futures: Dict[Request, "Future[Outcome]"] = {}
        self._abandoned: "List[Future[Outcome]]" = []

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        future = self._futures[request] = self._pool.submit(self._evaluate, evaluator, request)
        future.add_done_callback(self._outcomes.put)

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._futures:
            try:
                future = self._outcomes.get(timeout=timeout)
            except queue.Empty:
                return
            if not future.cancelled():
                outcome = future.result()
                if self._futures.pop(outcome.request, None) is not None:
                    yield outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        for request in requests:
            future = self._futures.pop(request, None)
            if future is not None and not future.cancel():
                self._abandoned.append(future)

    def describe(self) -> str:
        return f"{self.slots} at a time in this process"

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
        started_run = ActiveRun(request, origin_here())
        try:
            evaluation = evaluator.evaluate(request, self._directory.evaluation(request.name))
            return replace(evaluation, origin=started_run.origin)
        except StoreError:
            raise
        except Exception as error:
            return started_run.failure("timeout" if isinstance(error, TimeoutError) else "error", describe(error))
