"""The executors whose runs wait in a queue on a file system that other machines share."""

import hashlib
import json
import logging
import os
import time
from abc import abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any, Collection, Dict, Mapping, Optional, Set, Union

from fiesta_allennlp.core.blame import MAX_FAILURES_BEFORE_FINISH, MachineFacts
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.files import check_private
from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.queueing import ActiveRun, QueueingExecutor
from fiesta_allennlp.executors.slurm_commands import cancel_jobs
from fiesta_allennlp.isolation.fork_server import POLL_SECONDS
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue, Terms

logger = logging.getLogger(__name__)


class SharedQueueExecutor(QueueingExecutor):
    """Puts runs into a queue in the run directory, from where jobs or workers take them.

    A job or worker belongs to the selection, not to a single run. A killed command therefore leaves no state behind
    that could be lost: `--recover` finds the queue, the outcomes that arrived since, and the runs that go on. If a run
    is lost with its job or worker, the executor starts it again, and that is not a failure.

    A subclass sets `queue_directory`, and has the methods `queue_terms`, `open_jobs`, `find_lost_runs` and
    `close_jobs`. It may use the property `queue`. The handle of a run is its ticket in the queue.

    Args:
        directory: the run directory, on the shared file system.
        common: arguments of `QueueingExecutor`.

    Raises:
        StoreError: if others can write the run directory.
    """

    queue_directory: Path
    """The directory of the queue. The constructor of a subclass sets it."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        if directory.root.exists():
            check_private(directory.root, directory.root)
        self._open_queue: Optional[RunQueue] = None
        self._tickets_under_way: Dict[str, str] = {}
        self._losses: Dict[str, Union[str, Failure]] = {}
        self._jobs_by_machine: Dict[Machine, Set[str]] = {}

    can_choose_machines = True

    @abstractmethod
    def queue_terms(self) -> Dict[str, Any]:
        """Return facts about the jobs or workers, as plain data. An earlier session must have them and the other terms
        in common with this one, so that this one takes over its queue and jobs. Called before the queue is opened."""

    @abstractmethod
    def open_jobs(self) -> str:
        """Prepare for runs. Return a sentence for the user, or an empty text. Called once the queue is open."""

    @abstractmethod
    def find_lost_runs(self, taken: Collection[Claim], done: Collection[Claim]) -> Mapping[str, Union[str, Failure]]:
        """Return the tickets of `active_runs` that no job or worker has any more, each with the end of a sentence about
        the loss, after which the run starts again; or with the `Failure` that it is.

        Called about twice a second while the executor waits, so submit the jobs that the queue needs here too. `taken`
        are the claims of all runs that jobs have, `done` those of runs that have ended. Both were read just before.
        """

    @abstractmethod
    def close_jobs(self, runs: Mapping[str, ActiveRun]) -> str:
        """End the queue with its jobs, or leave it to the next session with these runs, which have not ended. Return a
        sentence for the user, or an empty text. Called when the executor is closed, if the queue is open."""

    @property
    def queue_name(self) -> str:
        """The name of the queue and its jobs, which follows from their terms and their place."""
        return f"fiesta-{hashlib.sha256(json.dumps(asdict(self._terms())).encode()).hexdigest()[:10]}"

    def _terms(self) -> Terms:
        return Terms(
            place=str(self.queue_directory.absolute()),
            current_directory=os.getcwd(),
            num_threads=self.num_threads,
            packages=self.packages,
            time_limit=self.time_limit,
            device="" if self.hides_gpus else None,
            jobs=self.queue_terms(),
        )

    @property
    def queue(self) -> RunQueue:
        """The queue, which the first use opens."""
        if self._open_queue is None:
            self.resume()
        assert self._open_queue is not None
        return self._open_queue

    def resume(self) -> str:
        """Take over the queue that a killed command left on the same terms, or make a new one. Move runs that have
        ended to where the selection looks for them. Return a sentence for the user."""
        queue = RunQueue(self.queue_directory.absolute() / self.queue_name)
        queue.open(self._terms())
        queue.withdraw_waiting()
        claims = queue.taken_claims()  # read first: a run goes from taken to done
        ended_tickets = queue.collect_finished(self.directory)
        self._tickets_under_way = {claim.run: ticket for ticket, claim in claims.items() if ticket not in ended_tickets}
        self._open_queue = queue
        return self.open_jobs()

    def queued_runs(self) -> Collection[str]:
        return () if self._open_queue is None else self._open_queue.waiting_runs()

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        if self._open_queue is None:
            self.resume()
        ticket = self._tickets_under_way.pop(request.name, None)
        if ticket is None:
            super().submit(evaluator, request)
        else:
            logger.info("%s is already under way", request.name)
            self.adopt_run(ticket, evaluator, request)

    def start_run(self, evaluator: Evaluator, request: Request) -> str:
        ticket = self.queue.new_ticket(request)
        task = self.task_for(evaluator, request, self.queue.attempt_directory(ticket))
        self.queue.put(ticket, task, failed_on=[*map(str, self.machines.failed_on.get(request.key, ()))])
        return ticket

    def use_machines(self, machines: MachineFacts) -> None:
        """Dismiss the jobs or workers that have failed on broken machines."""
        super().use_machines(machines)
        for machine, error in machines.broken.items():
            for job in self._jobs_by_machine.pop(machine, ()):
                self.queue.dismiss(
                    job,
                    f"{machine} takes no more runs, because {MAX_FAILURES_BEFORE_FINISH} or more failed there before "
                    f"one finished. Fix it, then start the worker again. The last error: {error}",
                )

    def wait_for_run(self, timeout: Optional[float]) -> Optional[str]:
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        for ticket in self._tickets_under_way.values():  # whoever waits has asked for all that is wanted
            self.queue.withdraw(ticket)
        self._tickets_under_way = {}
        while True:
            ended_ticket = self._find_ended_run()
            if ended_ticket is not None or time.monotonic() >= deadline:
                return ended_ticket
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))

    def _find_ended_run(self) -> Optional[str]:
        taken_claims, done_claims = self.queue.taken_claims(), self.queue.done_claims()
        self._losses = {ticket: loss for ticket, loss in self._losses.items() if ticket in self.active_runs}
        if not self._losses:
            self._losses = dict(self.find_lost_runs(taken_claims.values(), done_claims.values()))
        return next((ticket for ticket in (*self._losses, *done_claims) if ticket in self.active_runs), None)

    def read_outcome(self, ticket: str, run: ActiveRun) -> Optional[Outcome]:
        queue = self.queue
        claim = queue.done_claims().get(ticket)
        if claim is None:
            queue.withdraw(ticket)  # a job that goes on all the same, as on a node without a network, stops
            queue.refresh_listings()
            claim = queue.done_claims().get(ticket)  # it may have ended until then
        loss = self._losses.pop(ticket, "")
        outcome = self._lost_outcome(ticket, run, loss) if claim is None else queue.read_outcome(claim)
        if outcome is None:
            return None
        if claim is not None and isinstance(outcome, Failure):
            self._jobs_by_machine.setdefault(outcome.origin.machine, set()).add(claim.job)
        queue.move_attempt(ticket, self.directory.evaluation(run.start.request.name))
        if claim is not None:
            queue.delete_outcome(claim)  # the next session takes the run over from its directory
        return outcome

    def _lost_outcome(self, ticket: str, run: ActiveRun, loss: Union[str, Failure]) -> Optional[Outcome]:
        """Return the outcome of a lost run; None to start it again."""
        evaluation = run.evaluator.salvage(run.start.request, self.queue.attempt_directory(ticket))
        return evaluation or (loss if isinstance(loss, Failure) else self.retry_lost(run, loss))

    def stop_runs(self, runs: Mapping[str, ActiveRun]) -> None:
        """Withdraw these runs. Their jobs or workers notice, and take others."""
        for ticket in runs:
            self.queue.withdraw(ticket)

    def shut_down(self, runs: Mapping[str, ActiveRun]) -> None:
        if self._open_queue is not None:
            try:
                self.last_words = self.close_jobs(runs)
            finally:
                self._open_queue = None


def end_earlier_queues(directory: RunDirectory, *, kept_queue: str = "") -> str:
    """End the queues of earlier sessions, except the queue `kept_queue`. Return a sentence about their Slurm jobs."""
    queues = [*RunQueue.open_queues(directory.queue), *RunQueue.open_queues(directory.slurm)]
    sentences = [end_queue(queue, directory) for queue in queues if queue.root.name != kept_queue]
    return " ".join(filter(None, sentences))


def end_queue(queue: RunQueue, directory: RunDirectory, *, keep_logs: bool = False) -> str:
    """Make all workers or jobs of a queue stop, keep its ended runs, and delete it. Return a sentence about its Slurm
    jobs."""
    queue.collect_finished(directory)
    queue.close()
    sentence = cancel_jobs(queue.root.name) if queue.root.parent.name == directory.slurm.name else ""
    if not keep_logs:
        queue.delete()
    return sentence
