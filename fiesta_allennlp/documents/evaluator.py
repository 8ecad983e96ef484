"""The run of a trained system: it answers about one document, or a batch."""

import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.documents.answers import Answer, AnswerStore
from fiesta_allennlp.documents.document_file import Document
from fiesta_allennlp.documents.systems.base import STOPPED, System, Unanswered
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.executors.base import Evaluator


class Station:
    """An open system at work, with its key among the kept answers and a limit on parallel questions.

    Systems of equal identity, in this selection and in others with the same file of answers, never ask one question at
    the same time: the later one gets the kept answer.
    """

    def __init__(self, name: str, system: System, answers: AnswerStore) -> None:
        self.name = name
        self.system = system
        self.key = answers.add_system(system.identity())
        self._answers = answers
        self._slots = threading.BoundedSemaphore(system.parallel)
        self._stopped = threading.Event()

    def answer(self, question: Any) -> Answer:
        """Return the kept answer, or a new one, which is kept before it is used, because it may have been paid for."""
        if not self.system.keeps_answers:
            return self._ask(question)
        with self._answers.taking(self.key, question, stop_waiting=self._stopped.is_set) as may_ask:
            if not may_ask:
                raise Unanswered(STOPPED)
            answer = self._answers.find(self.key, question)
            if answer is None:
                answer = self._ask(question)
                self._answers.keep(self.key, question, answer, asker=self.name, cost=self.system.cost)
            return answer

    def stop(self) -> None:
        """Ask no more questions. The system decides about those under way."""
        self._stopped.set()
        self.system.stop()

    def _ask(self, question: Any) -> Answer:
        with self._slots:
            if self._stopped.is_set():
                raise Unanswered(STOPPED)
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
    stations: Mapping[str, Station]

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Ask about every document of the batch, or take the kept answer, and count."""
        station = self.stations[request.candidate]
        counts: Dict[str, float] = {}
        received: List[Answer] = []
        begin = request.replicate * self.batch_size
        for position in self.orders[request.candidate][begin : begin + self.batch_size]:
            document = self.documents[position]
            try:
                raw = [station.answer(question) for question in station.system.questions(document)]
                answers = station.system.answers([answer.value for answer in raw], document, self.task)
            except Unanswered as error:
                raise type(error)(f"system '{request.candidate}', document '{document.id}': {error}.") from error
            received += raw
            for name, number in self.task.counts([item.gold for item in document.items], answers).items():
                counts[name] = counts.get(name, 0.0) + number
        return Evaluation(
            request=request,
            score=self.task.score(counts),
            metric=self.task.metric,
            seconds=sum(answer.seconds for answer in received),
            started_at=min(answer.asked_at for answer in received),
            metrics=counts,
        )
