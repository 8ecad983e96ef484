import logging
import shutil
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from joblib import cpu_count

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.isolation.fork_server import (
    Begun,
    in_process,
    outcome_of,
    start_fork_server,
    stop_all,
    worker_name,
)
from fiesta_allennlp.isolation.worker import WorkerSettings, run_evaluation, run_logged
from fiesta_allennlp.records import Failure, Outcome, Request

logger = logging.getLogger(__name__)


def keep_log(directory: RunDirectory, request: Request) -> Optional[str]:
    """Copy the log of a failed attempt to where the next attempt does not overwrite it; delete what is large.

    Returns its path below the run directory; None where it could not be kept.
    """
    evaluation = directory.evaluation(request.name)
    try:
        for path in [*evaluation.glob("*.th"), *evaluation.glob("*.tar.gz")]:
            path.unlink()
        attempt = 1
        while directory.failure_log(request.name, attempt).exists():
            attempt += 1
        kept = directory.failure_log(request.name, attempt)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory.evaluation_log(request.name), kept)
    except OSError as error:
        logger.warning("the log of %s could not be kept: %s", request.name, error)
        return None
    return str(kept.relative_to(directory.root))


@dataclass(frozen=True)
class _Running:
    begun: Begun
    device: Optional[str]


@Executor.register("processes")
class ProcessExecutor(Executor):
    """Runs every evaluation in a fresh process on this machine, forked from a server that has AllenNLP loaded.

    # Parameters

    directory : the run directory; workers write logs and evaluations below it.
    workers : how many evaluations run at once; `auto` for as many as this machine's cores have room for, but no more
        than `cuda_devices` where these are given.
    time_limit : seconds after which an evaluation is killed and counts as a failure; None for no limit.
    num_threads : torch threads of each worker. More than one makes busy cores much slower, not faster.
    cuda_devices : devices to hand out to the workers; each worker sees one, the one with the fewest workers when it
        begins. None leaves all visible.
    packages : packages to import in the workers, for the models and readers that they register.

    # Raises

    `ConfigError` : where a number is below its least value.
    """

    def __init__(
        self,
        directory: RunDirectory,
        *,
        workers: Union[int, str] = 1,
        time_limit: Optional[float] = None,
        num_threads: int = 1,
        cuda_devices: Optional[List[str]] = None,
        packages: Tuple[str, ...] = (),
    ) -> None:
        check_numbers(workers, num_threads, time_limit)
        self.slots = num_workers(workers, num_threads, len(cuda_devices) if cuda_devices else None)
        self.gives_devices = bool(cuda_devices)
        self._directory = directory
        self._time_limit = time_limit
        self._num_threads = num_threads
        self._packages = packages
        self._devices = cuda_devices or []
        self._queue: Deque[Tuple[Evaluator, Request]] = deque()
        self._running: Dict[Any, _Running] = {}
        self._context = start_fork_server(num_threads)

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._queue.append((evaluator, request))
        self._start_queued()

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._running:
            done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
            if not done:
                return
            for future in done:
                running = self._running.pop(future)
                outcome = self._outcome(future, running.begun)
                self._start_queued()
                yield outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        unwanted = set(requests)
        self._queue = deque((evaluator, request) for evaluator, request in self._queue if request not in unwanted)
        stopped = {future: running.begun.request for future, running in self._running.items()}
        stopped = {future: request for future, request in stopped.items() if request in unwanted}
        for future in stopped:
            del self._running[future]
        stop_all(list(stopped), names=[worker_name(request) for request in stopped.values()])
        self._start_queued()

    def describe(self) -> str:
        devices = f" and one of the CUDA devices {', '.join(self._devices)}" if self._devices else ""
        return f"{self.slots} at once on this machine, each with {self._num_threads} CPU thread(s){devices}"

    def close(self) -> None:
        self._queue.clear()
        futures = list(self._running)
        self._running.clear()
        stop_all(futures)

    def _start_queued(self) -> None:
        while self._queue and len(self._running) < self.slots:
            evaluator, request = self._queue.popleft()
            device = self._least_loaded()
            directory = self._directory.evaluation(request.name)
            shutil.rmtree(directory, ignore_errors=True)
            name = worker_name(request)
            work = in_process(run_evaluation, self._context, name=name, timeout=self._time_limit)
            log = self._directory.evaluation_log(request.name)
            future = work(evaluator.evaluate, request, directory, log, self._settings(device))
            self._running[future] = _Running(Begun.now(request), device)

    def _least_loaded(self) -> Optional[str]:
        """The device with the fewest evaluations, the first of equals; None where none were given."""
        load = Counter(running.device for running in self._running.values())
        return min(self._devices, key=lambda device: load[device], default=None)

    def _settings(self, device: Optional[str]) -> WorkerSettings:
        return WorkerSettings(num_threads=self._num_threads, packages=self._packages, device=device)

    def _outcome(self, future: Any, begun: Begun) -> Outcome:
        outcome = outcome_of(future, begun, time_limit=self._time_limit)
        if isinstance(outcome, Failure):
            return replace(outcome, log_path=keep_log(self._directory, begun.request))
        return outcome


def check_numbers(workers: Union[int, str], num_threads: int, time_limit: Optional[float]) -> None:
    """Refuse numbers below their least value.

    # Raises

    `ConfigError` : with the option and the value.
    """
    for name, value in (("workers", workers), ("threads-per-worker", num_threads), ("time-limit", time_limit)):
        if isinstance(value, (int, float)) and not value > 0:
            raise ConfigError(f"--{name} must be above 0 but got {value}.")


def num_workers(workers: Union[int, str], num_threads: int, num_devices: Optional[int] = None) -> int:
    """How many evaluations run at once on this machine; for `auto` what its cores have room for: those that this
    process may use, by affinity and by the container's share, but no more than `num_devices`."""
    if isinstance(workers, int):
        return workers
    room = max(1, cpu_count() // num_threads)
    return room if num_devices is None else min(room, num_devices)


def run_apart(
    work: Callable[..., Any],
    tasks: Dict[str, Tuple[Any, ...]],
    *,
    logs: Dict[str, Path],
    settings: WorkerSettings,
    at_once: int = 1,
    on_done: Callable[[str], None] = lambda name: None,
) -> Dict[str, Any]:
    """Call `work` once for each task in a process of its own, `at_once` at a time.

    Returns results, or exceptions, by name in the order of the tasks. `on_done` is called with each name.
    """
    context = start_fork_server(settings.num_threads)
    results: Dict[str, Any] = {}
    waiting = deque(tasks)
    running: Dict[Any, str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                name = waiting.popleft()
                call = in_process(run_logged, context)
                running[call(work, *tasks[name], log=logs[name], settings=settings)] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                results[name] = future.exception() or future.result()
                on_done(name)
    finally:
        stop_all(list(running))
    return {name: results[name] for name in tasks}
