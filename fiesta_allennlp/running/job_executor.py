"""The executors whose runs are jobs of a cluster, and the one table of how a job may end."""

import json
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Collection, Dict, FrozenSet, List, Literal, Mapping, Optional, Sequence, Tuple

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

Verdict = Literal["outcome", "machine", "again", "early", "timeout"]
"""What follows from the end of a job: its outcome counts as it says; it is a failure of the machine, so the run starts
again after a pause; the run starts again, as it was taken away; the same, but the job ended before the run began; or
the same, but only `MAX_TIMEOUTS` times."""

STATES, TOO_LONG, TAKEN_AWAY = (
    frozenset[str](),
    frozenset({"TIMEOUT", "DEADLINE"}),
    frozenset({"CANCELLED", "PREEMPTED", "NODE_FAIL", "REVOKED"}),
)
COMPLETED, UNKNOWN = frozenset({"COMPLETED"}), frozenset({""})

ENDINGS: Tuple[Tuple[FrozenSet[str], Optional[bool], Optional[str], Verdict], ...] = (
    (STATES, None, "any", "outcome"),
    (TOO_LONG, None, None, "timeout"),
    (TAKEN_AWAY, None, None, "again"),
    (COMPLETED, None, "killed", "outcome"),
    (STATES, None, "killed", "machine"),
    (UNKNOWN, None, None, "again"),
    (STATES, False, None, "early"),
    (STATES, True, None, "machine"),
)
"""The ends of a job by its final state (an empty set for any, an empty text for none that is known), whether the run
began (None for either), and the outcome that it left (`killed` if its process was, `any` for another, None for none or
`killed`), each with the verdict. The first one that fits holds. That a job died says nothing about a candidate, unless
its engine says that it completed: memory that ran out does not always say so."""


def verdict_on(state: str, has_begun: bool, outcome: Optional[Outcome]) -> Verdict:
    """Return what follows from the end of a job."""
    is_killed = isinstance(outcome, Failure) and outcome.kind == "killed"
    left = None if outcome is None else "killed" if is_killed else "any"
    for states, begun, wanted, verdict in ENDINGS:
        fits_outcome = wanted == left if wanted else left != "any"
        if (not states or state in states) and begun in (None, has_begun) and fits_outcome:
            return verdict
    raise AssertionError("the last two rows fit every job without an outcome")


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

    A subclass has the methods `send`, `wait_for_run`, `stop_runs` and `final_status`.

    Args:
        directory: the run directory, on the shared file system.
        common: arguments of `QueueingExecutor`.

    Raises:
        StoreError: if others can write the run directory.
    """

    gives_devices = True

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        if directory.root.exists():
            check_private(directory.root)
        self._attempts_left: Optional[Dict[str, List[Attempt]]] = None
        self._num_early, self._num_timeouts = 0, Counter[Request]()

    @abstractmethod
    def send(self, attempt: Attempt) -> None:
        """Start the job of an attempt, and hand it the task."""

    @abstractmethod
    def final_status(self, attempt: Attempt) -> JobStatus:
        """Return how the job of an attempt ended, which `wait_for_run` returned."""

    def can_adopt(self, attempt: Attempt) -> bool:
        """Return whether an attempt of an earlier session, whose task is still the same, need not be made again."""
        return attempt.read_outcome() is not None

    def queued_runs(self) -> Collection[str]:
        return {attempt.run_name for attempt in self.active_runs if not attempt.has_begun}

    def start_run(self, evaluator: Evaluator, request: Request) -> Attempt:
        attempt = Attempt.begin(self.directory.jobs, self.task_for(evaluator, request, self.directory.jobs))
        self.send(attempt)
        return attempt

    def find_run(self, evaluator: Evaluator, request: Request) -> Optional[Attempt]:
        task = task_content(self.task_for(evaluator, request, self.directory.jobs))
        task = json.loads(json.dumps(task))  # as it is read
        for attempt in reversed(self._earlier_attempts().get(request.name, [])):
            job = attempt.job
            if job is not None and attempt.task_data(job) == task and self.can_adopt(attempt):
                self._earlier_attempts()[request.name].remove(attempt)
                return attempt
        return None

    def _earlier_attempts(self) -> Dict[str, List[Attempt]]:
        """Return the attempts of earlier sessions that no run has taken over."""
        if self._attempts_left is None:
            self._attempts_left = Attempt.find_all(self.directory.jobs)
        return self._attempts_left

    def drop_earlier_attempts(self) -> None:
        """Stop the jobs of earlier sessions that nobody has asked for. Whoever waits has asked for all that is
        wanted."""
        attempts = [attempt for attempts in self._earlier_attempts().values() for attempt in attempts]
        self._attempts_left = {}
        self._drop(attempts)

    def _drop(self, attempts: Collection[Attempt]) -> None:
        self.stop_jobs(attempts)
        for attempt in attempts:
            attempt.discard()

    @abstractmethod
    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        """Stop the jobs of these attempts without waiting for their end."""

    def stop_runs(self, runs: Mapping[Any, ActiveRun]) -> None:
        self._drop([*runs])

    def abandon(self, requests: Sequence[Request]) -> None:
        self._drop([attempt for request in requests for attempt in self._earlier_attempts().pop(request.name, [])])
        super().abandon(requests)

    def shut_down(self, runs: Mapping[Any, ActiveRun]) -> None:
        """Stop the jobs of these runs, and leave the outcomes that arrived meanwhile to the next session."""
        self.stop_runs({attempt: run for attempt, run in runs.items() if attempt.read_outcome() is None})

    def read_outcome(self, attempt: Attempt, run: ActiveRun) -> Optional[Outcome]:
        status, request = self.final_status(attempt), run.start.request
        outcome = attempt.read_outcome()
        verdict = verdict_on(status.state, attempt.has_begun, outcome)
        self._num_early = self._num_early + 1 if verdict == "early" else 0
        end = f"its job {attempt.job} ended with state {status.state or 'unknown'}"
        if verdict == "early":
            self._check_early_ends(attempt, status)
            return None
        if verdict == "timeout":
            self._count_timeout(request)
        if verdict in ("again", "timeout"):
            failure = self.retry_lost(run, end)
            if failure is None:
                return None
            outcome = failure
        if verdict == "machine":
            origin = Origin(host=status.host, job=attempt.job or "", is_only_machine=False)
            outcome = replace(run.start, origin=origin).failure(
                "machine", f"{end}: {attempt.last_line() or status.reason}"
            )
        attempt.move_run(self.directory.evaluation(request.name))
        return outcome

    def _check_early_ends(self, attempt: Attempt, status: JobStatus) -> None:
        if self._num_early >= MAX_EARLY_ENDS:
            host = f" on {status.host}" if status.host else ""
            raise FiestaError(
                f"{MAX_EARLY_ENDS} jobs in a row ended before their run began, the last one{host} with state "
                f"{status.state or 'unknown'}: {attempt.last_line() or status.reason}. Nodes need the Python "
                f"environment and the file system of this machine. Log: {attempt.log}. Leave a broken node out "
                f"(Slurm: --executor-option exclude={status.host or 'NODE'}), and continue with --recover."
            )

    def _count_timeout(self, request: Request) -> None:
        self._num_timeouts[request] += 1
        if self._num_timeouts[request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{request.name} reached the time limit of {MAX_TIMEOUTS} jobs. Continue with --recover and a longer "
                "--executor-option time=..., or a shorter --time-limit, so that it counts as a failure."
            )
