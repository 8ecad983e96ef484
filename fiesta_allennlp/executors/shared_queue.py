"""The executors whose runs wait in a queue on a file system that other machines share."""

import hashlib
import json
import logging
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any, Collection, Dict, Mapping, Optional, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.queueing import QueueingExecutor, Running
from fiesta_allennlp.executors.slurm_commands import cancel
from fiesta_allennlp.isolation.fork_server import SECONDS_BETWEEN_LOOKS, Begun
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue
from fiesta_allennlp.version import __version__

logger = logging.getLogger(__name__)

FORMAT = 3
"""Changes with the files of the queue, which no other version of the package can read."""


class SharedQueueExecutor(QueueingExecutor):
    """Puts runs into a queue in the run directory, from where jobs or workers take them.

    A job or worker belongs to the selection, not to a single run. A killed command therefore leaves no state behind
    that could be lost: `--recover` finds the queue, the outcomes that arrived since, and the runs that go on. If a run
    is lost with its job or worker, the executor starts it again, and that is not a failure.
    """

    _queue_directory: Path
    """The directory of the queue."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        self._shared: Optional[RunQueue] = None
        self._tickets_under_way: Dict[str, str] = {}
        self._losses: Dict[str, Any] = {}

    @property
    @abstractmethod
    def _own_terms(self) -> Dict[str, Any]:
        """The terms on which only runs of this executor are made."""

    @abstractmethod
    def _opened(self, shared: RunQueue) -> str:
        """Prepare for runs once the queue is open. Return a sentence for the user."""

    @abstractmethod
    def _closed(self, shared: RunQueue, running: Mapping[Any, Running]) -> str:
        """End the queue, or leave it to the next session with these runs. Return a sentence for the user."""

    @abstractmethod
    def _lost_tickets(self, claims: Collection[Claim]) -> Dict[str, Any]:
        """Return the lost tickets among those in `_running`, with what is known of the loss."""

    @abstractmethod
    def _loss_reason(self, loss: Any, running: Running) -> Union[str, Failure]:
        """Return how a run was lost, or the failure that it is."""

    def _note_claims(self, claims: Collection[Claim]) -> None:
        """Record that these runs have been taken."""

    def _submit_jobs(self) -> None:
        """Do what is to be done between two looks at the queue."""

    @property
    def queue_name(self) -> str:
        """The name of the queue and its jobs, which follows from their terms and their place."""
        return f"fiesta-{hashlib.sha256(json.dumps(self._terms).encode()).hexdigest()[:10]}"

    @property
    def _terms(self) -> Dict[str, Any]:
        """All that a session must share with an earlier one to take over its queue, and workers with the session."""
        return {
            "version": __version__,
            "format": FORMAT,
            "place": str(self._queue_directory.absolute()),
            "num_threads": self._num_threads,
            "packages": self._packages,
            "time_limit": self._time_limit,
            **self._own_terms,
        }

    def resume(self) -> str:
        """Take over the queue that a killed command left on the same terms, or make a new one. Move runs that have
        ended to where the selection looks for them. Return a sentence for the user."""
        shared = RunQueue(self._queue_directory.absolute() / self.queue_name)
        shared.open(self._terms)
        shared.withdraw_waiting()
        claims = shared.taken()  # read first: a run goes from taken to done
        ended_tickets = shared.take_in(self._directory)
        self._tickets_under_way = {claim.run: ticket for ticket, claim in claims.items() if ticket not in ended_tickets}
        self._shared = shared
        return self._opened(shared)

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._open()
        ticket = self._tickets_under_way.pop(request.name, None)
        if ticket is None:
            super().submit(evaluator, request)
        else:
            logger.info("%s is already under way", request.name)
            self._running[ticket] = Running(evaluator, Begun.now(request))

    def _open(self) -> RunQueue:
        if self._shared is None:
            self.resume()
        assert self._shared is not None
        return self._shared

    def _start(self, evaluator: Evaluator, request: Request) -> None:
        shared = self._open()
        ticket = shared.ticket_for(request)
        shared.put(ticket, self._work(evaluator, request, shared.directory(ticket)))
        self._running[ticket] = Running(evaluator, Begun.now(request))

    def _wait(self, timeout: Optional[float]) -> Optional[Any]:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        for ticket in self._tickets_under_way.values():  # whoever waits has asked for all that is wanted
            self._open().drop(ticket)
        self._tickets_under_way = {}
        while True:
            ended_ticket = self._ended(self._open())
            if ended_ticket is not None:
                return ended_ticket
            self._submit_jobs()
            if time.monotonic() >= end:
                return None
            time.sleep(min(SECONDS_BETWEEN_LOOKS, max(0.0, end - time.monotonic())))

    def _ended(self, shared: RunQueue) -> Optional[str]:
        taken_claims, done_claims = shared.taken(), shared.done()
        self._note_claims([*taken_claims.values(), *done_claims.values()])
        ended_ticket = next((ticket for ticket in done_claims if ticket in self._running), None)
        if ended_ticket is not None:
            return ended_ticket
        self._losses = {ticket: loss for ticket, loss in self._losses.items() if ticket in self._running}
        if not self._losses:
            self._losses = self._lost_tickets(taken_claims.values())
        return next(iter(self._losses), None)

    def _outcome(self, ticket: Any, running: Running) -> Optional[Outcome]:
        shared, request = self._open(), running.begun.request
        claim = shared.done().get(ticket)
        if claim is None:
            shared.drop(ticket)  # a job that goes on all the same, as on a node without a network, stops
            shared.refresh()
            claim = shared.done().get(ticket)  # it may have ended until then
        loss = self._losses.pop(ticket, None)
        outcome = self._lost_outcome(ticket, running, loss) if claim is None else shared.outcome(claim)
        if outcome is None:
            return None
        shared.keep(ticket, self._directory.evaluation(request.name))
        if claim is not None:
            shared.forget(claim)  # the next session takes the run over from its directory
        return self._with_log(outcome)

    def _lost_outcome(self, ticket: str, running: Running, loss: Any) -> Optional[Outcome]:
        """Return the outcome of a lost run; None to start it again."""
        salvaged = running.evaluator.salvage(running.begun.request, self._open().directory(ticket))
        if salvaged is not None:
            return salvaged
        explanation = self._loss_reason(loss, running)
        return explanation if isinstance(explanation, Failure) else self._lost(running, explanation)

    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        """Drop these runs. Their jobs or workers notice, and take others."""
        for ticket in unwanted:
            self._open().drop(ticket)

    def _end(self, running: Mapping[Any, Running]) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            self.last_words = self._closed(shared, running)


def end_queues_left(directory: RunDirectory, *, but: str = "") -> str:
    """End the queues of earlier sessions, except the queue `but`. Return a sentence about their Slurm jobs."""
    queues = [*RunQueue.all_in(directory.queue), *RunQueue.all_in(directory.slurm)]
    sentences = [end_queue(queue, directory) for queue in queues if queue.root.name != but]
    return " ".join(filter(None, sentences))


def end_queue(queue: RunQueue, directory: RunDirectory, *, keep_logs: bool = False) -> str:
    """Make all workers or jobs of a queue stop, keep its ended runs, and delete it. Return a sentence about its Slurm
    jobs."""
    queue.take_in(directory)
    queue.close()
    sentence = cancel(queue.root.name) if queue.root.parent.name == directory.slurm.name else ""
    if not keep_logs:
        queue.delete()
    return sentence
