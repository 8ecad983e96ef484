"""The interface of executors, which make runs, and the queue of those that start each run in a fresh process."""

import json
import logging
import shutil
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import Any, Collection, Deque, Dict, Iterator, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError, describe
from fiesta_allennlp.core.files import atomic_replacement, delete, shorten_log
from fiesta_allennlp.core.records import UNKNOWN_ORIGIN, Failure, Origin, Outcome, Request
from fiesta_allennlp.core.registry import Registrable, to_plain_data
from fiesta_allennlp.running.worker import Evaluator, RunTask, WorkerSettings

logger = logging.getLogger(__name__)

MAX_LOSSES = 10
"""Ends the retries of a run that takes its node along, or of a cluster on which nothing works."""


def option_value(text: str) -> Any:
    """Return the JSON value that the text of an option has, such as a number; or the text itself."""
    with suppress(ValueError):
        return json.loads(text)
    return text


class Executor(Registrable):
    """Runs evaluators somewhere, several in parallel."""

    slots: int = 1
    """Limit on the runs in parallel. It may change while the executor is at work."""

    is_local: bool = False
    """True if all runs are made on this machine."""

    gives_devices: bool = False
    """True if each run sees only the devices that it is assigned, whatever its config says."""

    hides_gpus: bool = False
    """True if no run sees a GPU, whatever its config says."""

    num_threads: int = 1
    """The number of CPU threads of each run."""

    def queued_runs(self) -> Collection[str]:
        """Return the names of submitted runs that wait for a job to begin; none if that is unknown."""
        return ()

    @abstractmethod
    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start a run, or queue it if all slots are busy. Does not wait for it.

        Raises:
            FiestaError: if it cannot run anywhere, for example because a cluster refuses it.
        """

    @abstractmethod
    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        """Yield outcomes in the order in which runs finish, and block until the next one.

        Ends when nothing is running or queued, or when nothing has finished for `timeout` seconds. Never raises for a
        run that failed: its outcome is a `Failure`.

        Raises:
            FiestaError: if nothing can run any more, for example because a cluster is gone.
        """

    @abstractmethod
    def abandon(self, requests: Sequence[Request]) -> None:
        """Stop these runs, running or queued, and free their slots. They yield no outcome.

        Must not be called while another thread waits in `completed`.
        """

    def describe(self) -> str:
        """Describe in words what runs where, to be shown before the first run."""
        return f"{self.slots} at a time"

    @abstractmethod
    def close(self) -> None:
        """Stop everything that is running, with its child processes. Idempotent."""


@dataclass(frozen=True)
class ActiveRun:
    """A run under way. `started_at` is ISO 8601 in UTC, `monotonic_start` is on the monotonic clock. `origin` is empty
    where another machine makes the run."""

    request: Request
    origin: Origin = UNKNOWN_ORIGIN
    started_at: str = field(default_factory=lambda: datetime.now(timezone.utc).isoformat(timespec="seconds"))
    monotonic_start: float = field(default_factory=time.monotonic)

    def failure(self, kind: str, error: str) -> Failure:
        """Return the failure of a run that ends at this moment."""
        seconds = time.monotonic() - self.monotonic_start
        return Failure(self.request, kind, error, seconds=seconds, started_at=self.started_at, origin=self.origin)


class QueueingExecutor(Executor, ABC):
    """Starts runs in the order in which they were submitted, `slots` at once; the others wait in a queue.

    A subclass sets `slots`, and has the methods `start_run`, `wait_for_run`, `read_outcome` and `stop_runs`. It may use
    the arguments as attributes, and `active_runs`, which has the runs under way by handle.

    Args:
        directory: the run directory, on this machine. With Slurm it is on the shared file system.
        workers: number of runs in parallel. The subclasses document `auto`.
        time_limit: seconds after which a run is killed and counts as a failure; None for no limit. The time that a run
            waits for a node does not count.
        num_threads: torch threads of each run. More than one makes busy cores much slower, not faster.
        packages: packages to import for each run, for the models and readers that they register.

    Raises:
        ConfigError: if a number is below its least value.
    """

    def __init__(
        self,
        directory: RunDirectory,
        *,
        workers: Union[int, str] = 1,
        time_limit: Optional[float] = None,
        num_threads: int = 1,
        packages: Tuple[str, ...] = (),
    ) -> None:
        numbers = {"--workers": workers, "--executor-option num_threads": num_threads, "--time-limit": time_limit}
        for name, value in numbers.items():
            if isinstance(value, (int, float)) and not value > 0:
                raise ConfigError(f"{name} must be above 0 but got {value}.")
        self.directory, self.workers = directory, workers
        self.time_limit, self.num_threads, self.packages = time_limit, num_threads, packages
        self._queue: Deque[Request] = deque()
        self._evaluators: Dict[Request, Evaluator] = {}
        self.active_runs: Dict[Any, ActiveRun] = {}
        self._num_losses: Counter[Request] = Counter()

    @abstractmethod
    def start_run(self, evaluator: Evaluator, request: Request) -> Any:
        """Start a run without waiting for it. Return its handle: a hashable object by which the other methods know it.

        Called when a slot is free. The directory of an earlier attempt is deleted before.
        """

    @abstractmethod
    def wait_for_run(self, timeout: Optional[float]) -> Optional[Any]:
        """Wait for one of the `active_runs`, of which there is at least one. Return its handle once it has ended, or
        None after `timeout` seconds."""

    @abstractmethod
    def read_outcome(self, handle: Any, run: ActiveRun) -> Optional[Outcome]:
        """Return the outcome of a run that has ended; None to start it again.

        Called once, with the handle that `wait_for_run` returned, when the run is not among the `active_runs` any more.
        `run.failure` makes the `Failure` of a run that left no outcome. `retry_lost` decides about a run that ended
        with its machine. A failure's log is kept afterwards.
        """

    @abstractmethod
    def stop_runs(self, handles: Collection[Any]) -> None:
        """Stop these runs with all that they have started. They are not among the `active_runs` any more.

        Called for runs that are not wanted any more, and by `close`.
        """

    def find_run(self, evaluator: Evaluator, request: Request) -> Optional[Any]:
        """Return the handle of a run that an earlier session started, and that goes on or left an outcome; None if
        there is none."""
        return None

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._evaluators[request] = evaluator
        handle = self.find_run(evaluator, request)
        if handle is None:
            self._queue.append(request)
            self.fill_slots()
        else:
            logger.info("%s is already under way", request.name)
            self.active_runs[handle] = ActiveRun(request)

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self.active_runs:
            handle = self.wait_for_run(timeout)
            if handle is None:
                return
            run = self.active_runs.pop(handle)
            outcome = self.read_outcome(handle, run)
            if outcome is None:
                self._queue.appendleft(run.request)
            self.fill_slots()
            if outcome is not None:
                yield self._with_log(outcome)

    def abandon(self, requests: Sequence[Request]) -> None:
        self._queue = deque(request for request in self._queue if request not in requests)
        handles = [handle for handle, run in self.active_runs.items() if run.request in requests]
        for handle in handles:
            del self.active_runs[handle]
        self.stop_runs(handles)
        self.fill_slots()

    def close(self) -> None:
        self._queue.clear()
        handles = list(self.active_runs)
        self.active_runs = {}
        self.stop_runs(handles)

    def fill_slots(self) -> None:
        """Start runs of the queue while slots are free. Call it when `slots` has become larger."""
        while self._queue and len(self.active_runs) < self.slots:
            request = self._queue.popleft()
            try:
                delete(self.directory.evaluation(request.name))
                handle = self.start_run(self._evaluators[request], request)
            except OSError as error:
                reason = f"{request.name} cannot be started: {describe(error)}"
                raise StoreError(f"{reason}. Finished runs are safe. Fix it, then continue with --recover.") from error
            self.active_runs[handle] = ActiveRun(request)

    def task_for(
        self, evaluator: Evaluator, request: Request, directory: Path, *, device: Optional[str] = None
    ) -> RunTask:
        """Return the task of a run in `directory`, which `evaluate_task` makes in a fresh process on a machine with the
        files in the same places. `device` is the CUDA device that it sees; None for all."""
        settings = WorkerSettings(self.num_threads, self.packages, device="" if self.hides_gpus else device)
        return RunTask(to_plain_data(evaluator), request, directory, settings, self.time_limit)

    def retry_lost(self, run: ActiveRun, reason: str) -> Optional[Failure]:
        """Return None to start a run again that was lost with its machine or job, because that says nothing about its
        candidate; but a failure if it is lost time and again. `read_outcome` may return the result."""
        self._num_losses[run.request] += 1
        if self._num_losses[run.request] % MAX_LOSSES == 0:
            return run.failure("killed", f"lost {MAX_LOSSES} times: {reason}")
        logger.warning("%s was lost: %s; starting it again", run.request.name, reason)
        return None

    def _with_log(self, outcome: Outcome) -> Outcome:
        """Keep the log of a failure, if possible, where the next attempt does not overwrite it, and delete large files
        of the run."""
        if not isinstance(outcome, Failure):
            return outcome
        name = outcome.request.name
        log = self.directory.evaluation_log(name)
        try:
            for path in self.directory.large_files(name):
                delete(path)
            logs = (self.directory.failure_log(name, attempt) for attempt in count(1))
            log_copy = next(path for path in logs if not path.exists())
            log_copy.parent.mkdir(exist_ok=True)  # not the run directory too, which the user may have deleted
            shorten_log(log)
            with atomic_replacement(log_copy) as temporary_path:
                shutil.copyfile(log, temporary_path)
        except OSError as error:
            logger.warning("cannot keep the log of %s: %s", name, error)
            return outcome
        return replace(outcome, log_path=str(log_copy.relative_to(self.directory.root)))
