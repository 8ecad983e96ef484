"""The executors whose runs are jobs of a cluster, and what follows from the end of a job."""

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Collection, Iterator, Literal, Optional, Sequence

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.files import check_private
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.running.attempt import Attempt, task_content
from fiesta_allennlp.running.executor import ActiveRun, QueueingExecutor
from fiesta_allennlp.running.worker import Evaluator

MAX_EARLY_ENDS, MAX_TIMEOUTS = 3, 2
"""The jobs in a row that may end before their run began, and the jobs of one run that may reach their time limit."""

TOO_LONG, TAKEN_AWAY = ("TIMEOUT", "DEADLINE"), ("CANCELLED", "PREEMPTED", "NODE_FAIL", "REVOKED")
"""The final states of jobs that reached their time limit, and of those that were taken away."""

Verdict = Literal["outcome", "machine", "again", "early", "timeout"]
"""What follows from the end of a job: its outcome counts as it says; it is a failure of the machine, so the run starts
again after a pause; the run starts again, as it was taken away; the same, but the job ended before the run began; or
the same, but only `MAX_TIMEOUTS` times."""


def verdict_on(state: str, has_begun: bool, outcome: Optional[Outcome]) -> Verdict:
    """Return what follows from the end of a job: its final state, empty if unknown, whether its run began, and the
    outcome that it left. That a job or its process died says nothing about a candidate, unless the engine says that
    the job completed: memory that ran out does not always say so."""
    is_killed = isinstance(outcome, Failure) and outcome.kind == "killed"
    if outcome is not None and (not is_killed or state == "COMPLETED"):
        return "outcome"
    if state in TOO_LONG:
        return "timeout"
    if state in TAKEN_AWAY or (not state and not is_killed):
        return "again"
    return "machine" if has_begun or is_killed else "early"


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, by Slurm's names, and empty if it is unknown; its node, and why it waits."""

    state: str = ""
    host: str = ""
    reason: str = ""


class JobExecutor(QueueingExecutor):
    """Makes each run in a job of its own, on a cluster whose nodes share the run directory with this machine.

    The folder of an attempt, which is the handle of its run, is all that is remembered. After a kill of the command
    `--recover` finds the jobs that go on, and the outcomes that arrived since. A run is judged by the outcome that it
    leaves. If there is none, its job was lost, which counts against no candidate: the run starts again.

    A subclass has the methods `send`, `wait_for_run`, `final_status` and `stop_jobs`.

    Args:
        directory: the run directory, on the shared file system.
        common: arguments of `QueueingExecutor`.

    Raises:
        StoreError: if others can write the run directory.
    """

    gives_devices = True

    jobs_go_on: bool = True
    """True if jobs outlive the command that sent them."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        if directory.root.exists():
            check_private(directory.root)
        self._earlier_attempts = Attempt.find_all(directory.jobs)  # those that no run has taken over
        self._num_early, self._num_timeouts = 0, Counter[Request]()

    @abstractmethod
    def send(self, attempt: Attempt) -> None:
        """Start the job of an attempt, and hand it the task."""

    @abstractmethod
    def final_status(self, attempt: Attempt) -> JobStatus:
        """Return how the job of an attempt ended, which `wait_for_run` returned."""

    @abstractmethod
    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        """Stop the jobs of these attempts without waiting for their end."""

    def queued_runs(self) -> Collection[str]:
        return {attempt.run_name for attempt in self.active_runs if not attempt.has_begun}

    def start_run(self, evaluator: Evaluator, request: Request) -> Attempt:
        attempt = Attempt.begin(self.directory.jobs, self.task_for(evaluator, request, self.directory.jobs))
        self.send(attempt)
        return attempt

    def find_run(self, evaluator: Evaluator, request: Request) -> Optional[Attempt]:
        task = task_content(self.task_for(evaluator, request, self.directory.jobs))
        for attempt in reversed(self._earlier_attempts.get(request.name, [])):
            is_same = attempt.job is not None and attempt.task_data(attempt.job) == task
            if is_same and (self.jobs_go_on or attempt.read_outcome() is not None):
                self._earlier_attempts[request.name].remove(attempt)
                return attempt
        return None

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        """Stop the jobs of earlier sessions that nobody has asked for: whoever waits has asked for all that is wanted.
        Then wait."""
        earlier_attempts, self._earlier_attempts = self._earlier_attempts, {}
        self.stop_runs([attempt for attempts in earlier_attempts.values() for attempt in attempts])
        yield from super().completed(timeout=timeout)

    def stop_runs(self, attempts: Collection[Attempt]) -> None:
        self.stop_jobs(attempts)
        for attempt in attempts:
            attempt.discard()

    def abandon(self, requests: Sequence[Request]) -> None:
        self.stop_runs([attempt for request in requests for attempt in self._earlier_attempts.pop(request.name, [])])
        super().abandon(requests)

    def close(self) -> None:
        """Stop all jobs, but leave the outcomes that arrived meanwhile to the next session."""
        runs = self.active_runs.items()
        self.active_runs = {attempt: run for attempt, run in runs if attempt.read_outcome() is None}
        super().close()

    def read_outcome(self, attempt: Attempt, run: ActiveRun) -> Optional[Outcome]:
        status = self.final_status(attempt)
        outcome = attempt.read_outcome()
        verdict = verdict_on(status.state, attempt.has_begun, outcome)
        end = f"its job {attempt.job} ended with state {status.state or 'unknown'}"
        reason = attempt.last_line() or status.reason
        self._num_early = self._num_early + 1 if verdict == "early" else 0
        self._num_timeouts[run.request] += verdict == "timeout"
        if self._num_early >= MAX_EARLY_ENDS:
            host = f" on {status.host}" if status.host else ""
            raise FiestaError(
                f"{MAX_EARLY_ENDS} jobs in a row ended before their run began, the last one{host} with state "
                f"{status.state or 'unknown'}: {reason}. Nodes need the Python environment and the file system of this "
                f"machine. Log: {attempt.log}. Leave a broken node out (Slurm: --executor-option exclude="
                f"{status.host or 'NODE'}), and continue with --recover."
            )
        if self._num_timeouts[run.request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{run.request.name} reached the time limit of {MAX_TIMEOUTS} jobs. Continue with --recover and a "
                "longer --executor-option time=..., or a shorter --time-limit, so that it counts as a failure."
            )
        if verdict == "machine":
            origin = Origin(host=status.host, job=attempt.job or "", is_only_machine=False)
            outcome = replace(run, origin=origin).failure("machine", f"{end}: {reason}")
        elif verdict != "outcome":
            outcome = None if verdict == "early" else self.retry_lost(run, end)
        if outcome is not None:
            attempt.move_run(self.directory.evaluation(run.request.name))
        return outcome
