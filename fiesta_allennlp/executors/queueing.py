"""The queue of the executors that start runs in fresh processes, here or on a cluster."""

import logging
import pickle
import shutil
from abc import ABC, abstractmethod
from collections import Counter, deque
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Deque, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import atomic_replacement, delete, shorten_log
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.isolation.fork_server import Begun
from fiesta_allennlp.isolation.worker import Work, WorkerSettings

logger = logging.getLogger(__name__)

MAX_LOSSES = 10
"""Ends the retries of a run that takes its node along, or of a cluster on which nothing works."""


@dataclass(frozen=True)
class Running:
    """A run under way, and the CUDA device that it was given, if any."""

    evaluator: Evaluator
    begun: Begun
    device: Optional[str] = None


class QueueingExecutor(Executor, ABC):
    """Starts runs in the order in which they were submitted, `slots` at once; the others wait in a queue.

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
        check_above_zero(workers=workers, threads_per_worker=num_threads, time_limit=time_limit)
        self._directory, self._workers = directory, workers
        self._time_limit, self._num_threads, self._packages = time_limit, num_threads, packages
        self._queue: Deque[Tuple[Evaluator, Request]] = deque()
        self._running: Dict[Any, Running] = {}
        self._num_losses: Counter[Request] = Counter()

    @abstractmethod
    def _start(self, evaluator: Evaluator, request: Request) -> None:
        """Start a run and add it to `_running`, by a key that `_wait` can wait for."""

    @abstractmethod
    def _wait(self, timeout: Optional[float]) -> Optional[Any]:
        """Return a key of `_running` that is done; None after `timeout` seconds."""

    @abstractmethod
    def _outcome(self, key: Any, running: Running) -> Optional[Outcome]:
        """Return the outcome of a run; None to start it again."""

    @abstractmethod
    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        """End runs that have left `_running`."""

    def _end(self, running: Mapping[Any, Running]) -> None:
        """End these runs, and all that the executor has started."""
        self._stop(running)

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._queue.append((evaluator, request))
        self._start_queued()

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._running:
            key = self._wait(timeout)
            if key is None:
                return
            running = self._running.pop(key)
            outcome = self._outcome(key, running)
            if outcome is None:
                self._queue.appendleft((running.evaluator, running.begun.request))
            self._start_queued()
            if outcome is not None:
                yield outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        unwanted = set(requests)
        self._queue = deque((evaluator, request) for evaluator, request in self._queue if request not in unwanted)
        stopped = {key: running for key, running in self._running.items() if running.begun.request in unwanted}
        for key in stopped:
            del self._running[key]
        self._stop(stopped)
        self._start_queued()

    def close(self) -> None:
        self._queue.clear()
        running, self._running = self._running, {}
        self._end(running)

    def _start_queued(self) -> None:
        while self._queue and len(self._running) < self.slots:
            evaluator, request = self._queue.popleft()
            shutil.rmtree(self._directory.evaluation(request.name), ignore_errors=True)
            self._start(evaluator, request)

    def _work(self, evaluator: Evaluator, request: Request, directory: Path, device: Optional[str] = None) -> Work:
        """Describe a run that is made in `directory`, on a machine with the files in the same places."""
        return Work(
            evaluator=pickle.dumps(evaluator),
            places={},
            request=request,
            directory=directory,
            log=directory / self._directory.evaluation_log(request.name).name,
            settings=WorkerSettings(self._num_threads, self._packages, device="" if self.hides_gpus else device),
            time_limit=self._time_limit,
        )

    def _lost(self, running: Running, reason: str) -> Optional[Failure]:
        """Return None to start a run again that was lost with its machine or job, because that says nothing about its
        candidate; but a failure if it is lost time and again."""
        request = running.begun.request
        self._num_losses[request] += 1
        if self._num_losses[request] % MAX_LOSSES == 0:
            return running.begun.failed("killed", f"lost {MAX_LOSSES} times: {reason}")
        logger.warning("%s was lost: %s; starting it again", request.name, reason)
        return None

    def _with_log(self, outcome: Outcome) -> Outcome:
        """Keep the log of a failure, if possible, where the next attempt does not overwrite it, and delete large files
        of the run."""
        if not isinstance(outcome, Failure):
            return outcome
        name = outcome.request.name
        try:
            for path in self._directory.large_files(name):
                delete(path)
            logs = (self._directory.failure_log(name, attempt) for attempt in count(1))
            log_copy = next(log for log in logs if not log.exists())
            log_copy.parent.mkdir(exist_ok=True)  # not the run directory too, which the user may have deleted
            shorten_log(self._directory.evaluation_log(name))
            with atomic_replacement(log_copy) as temporary_path:
                shutil.copyfile(self._directory.evaluation_log(name), temporary_path)
        except OSError as error:
            logger.warning("cannot keep the log of %s: %s", name, error)
            return outcome
        return replace(outcome, log_path=str(log_copy.relative_to(self._directory.root)))


def check_above_zero(**numbers: Any) -> None:
    """Refuse values of options that are numbers, but not above 0."""
    for name, value in numbers.items():
        if isinstance(value, (int, float)) and not value > 0:
            raise ConfigError(f"--{name.replace('_', '-')} must be above 0 but got {value}.")


def import_for(executor: str, library: str) -> Any:
    """Import an optional library that an executor needs."""
    try:
        return import_module(library)
    except ImportError as error:
        raise ConfigError(
            f"--executor {executor} requires {library}, which is not installed. Install it with: pip install {library}"
        ) from error
