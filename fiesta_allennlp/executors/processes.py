import logging
import multiprocessing
import os
import shutil
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, TimeoutError, wait
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

from pebble import ProcessExpired, concurrent

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.evaluators.base import Evaluator
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.worker import WorkerSettings, describe, run_evaluation, run_logged
from fiesta_allennlp.records import Failure, Outcome, Request
from fiesta_allennlp.run_directory import RunDirectory

logger = logging.getLogger(__name__)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

WORKER_NAME = "fiesta-worker"
SECONDS_TO_STOP = 10.0

QUIET_TRACKER = "ignore:resource_tracker:UserWarning"
"""Python's resource tracker complains on the terminal of every semaphore that a worker was killed with."""


@dataclass(frozen=True)
class _Running:
    request: Request
    device: Optional[str]
    started_at: str
    start: float


@Executor.register("processes")
class ProcessExecutor(Executor):
    """Runs every evaluation in a fresh process on this machine, forked from a server that has AllenNLP loaded.

    # Parameters

    directory : the run directory; workers write logs and evaluations below it.
    workers : how many evaluations run at once.
    time_limit : seconds after which an evaluation is killed and counts as a failure; None for no limit.
    num_threads : torch threads of each worker. More than one makes busy cores much slower, not faster.
    cuda_devices : devices to hand out to the workers in turn; each worker sees one. None leaves all visible.
    packages : packages to import in the workers, for the models and readers that they register.

    # Raises

    `ConfigError` : where a number is below its least value.
    """

    def __init__(
        self,
        directory: RunDirectory,
        *,
        workers: int = 1,
        time_limit: Optional[float] = None,
        num_threads: int = 1,
        cuda_devices: Optional[List[str]] = None,
        packages: Tuple[str, ...] = (),
    ) -> None:
        for name, value in (("workers", workers), ("threads-per-worker", num_threads), ("time-limit", time_limit)):
            if value is not None and not value > 0:
                raise ConfigError(f"--{name} must be above 0 but got {value}.")
        self.slots = workers
        self._directory = directory
        self._time_limit = time_limit
        self._num_threads = num_threads
        self._packages = packages
        self._devices: Deque[Optional[str]] = deque(
            [cuda_devices[i % len(cuda_devices)] if cuda_devices else None for i in range(workers)]
        )
        self._queue: Deque[Tuple[Evaluator, Request]] = deque()
        self._running: Dict[Any, _Running] = {}
        self._context = start_fork_server(num_threads)

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._queue.append((evaluator, request))
        self._start_queued()

    def completed(self) -> Iterator[Outcome]:
        while self._running:
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                running = self._running.pop(future)
                self._devices.append(running.device)
                outcome = self._outcome(future, running)
                self._start_queued()
                yield outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        unwanted = set(requests)
        self._queue = deque((evaluator, request) for evaluator, request in self._queue if request not in unwanted)
        stopped = {future: running for future, running in self._running.items() if running.request in unwanted}
        for future, running in stopped.items():
            del self._running[future]
            self._devices.append(running.device)
        stop_all(list(stopped), names=[_worker_name(running.request) for running in stopped.values()])
        self._start_queued()

    def close(self) -> None:
        self._queue.clear()
        futures = list(self._running)
        self._running.clear()
        stop_all(futures)

    def _start_queued(self) -> None:
        while self._queue and len(self._running) < self.slots:
            evaluator, request = self._queue.popleft()
            device = self._devices.popleft()
            directory = self._directory.evaluation(request.name)
            shutil.rmtree(directory, ignore_errors=True)
            name = _worker_name(request)
            work = _in_process(run_evaluation, self._context, name=name, timeout=self._time_limit)
            future = work(
                evaluator, request, directory, self._directory.evaluation_log(request.name), self._settings(device)
            )
            started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self._running[future] = _Running(request, device, started_at, time.monotonic())

    def _settings(self, device: Optional[str]) -> WorkerSettings:
        return WorkerSettings(num_threads=self._num_threads, packages=self._packages, device=device)

    def _outcome(self, future: Any, running: _Running) -> Outcome:
        raised = future.exception()
        outcome = None if raised is not None else future.result()
        if outcome is not None and not isinstance(outcome, Failure):
            return outcome
        if outcome is not None:
            kind, error = outcome.kind, outcome.error
        elif isinstance(raised, TimeoutError):
            kind, error = "timeout", f"out of time: it ran longer than --time-limit {self._time_limit:g} seconds"
        elif isinstance(raised, ProcessExpired):
            kind, error = "killed", f"the process died: {_exit_reason(raised.exitcode)}"
        else:
            kind, error = "error", describe(raised)
        return Failure(
            request=running.request,
            kind=kind,
            error=error,
            seconds=time.monotonic() - running.start,
            started_at=running.started_at,
            log_path=self._keep_log(running.request),
        )

    def _keep_log(self, request: Request) -> Optional[str]:
        """Copy the log of a failed attempt to where the next attempt does not overwrite it; delete what is large."""
        directory = self._directory.evaluation(request.name)
        try:
            for path in [*directory.glob("*.th"), *directory.glob("*.tar.gz")]:
                path.unlink()
            attempt = 1
            while self._directory.failure_log(request.name, attempt).exists():
                attempt += 1
            kept = self._directory.failure_log(request.name, attempt)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._directory.evaluation_log(request.name), kept)
        except OSError as error:
            logger.warning("the log of %s could not be kept: %s", request.name, error)
            return None
        return str(kept.relative_to(self._directory.root))


def start_fork_server(num_threads: int) -> multiprocessing.context.ForkServerContext:
    """The context whose processes start with AllenNLP imported; it finds the thread variables when it imports torch."""
    os.environ.update({name: str(num_threads) for name in THREAD_VARIABLES})
    warnings = os.environ.get("PYTHONWARNINGS", "")
    if QUIET_TRACKER not in warnings:
        os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [warnings, QUIET_TRACKER]))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fiesta_allennlp.ignore_interrupts", "fiesta_allennlp.executors.preload"])
    return context


def _worker_name(request: Request) -> str:
    return f"{WORKER_NAME} {request.name}"


def _in_process(
    work: Callable[..., Any], context: Any, *, name: str = WORKER_NAME, timeout: Optional[float] = None
) -> Callable[..., Any]:
    """`work` as a call that returns a future. Not a daemon, so that AllenNLP's data loaders may have processes too."""
    decorate = concurrent.process(name=name, daemon=False, timeout=timeout, context=context)
    return decorate(work)


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
                call = _in_process(run_logged, context)
                running[call(work, *tasks[name], log=logs[name], settings=settings)] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                results[name] = future.exception() or future.result()
                on_done(name)
    finally:
        stop_all(list(running))
    return {name: results[name] for name in tasks}


def stop_all(futures: List[Any], *, names: Optional[Sequence[str]] = None) -> None:
    """End all workers, or those with these names, with their children, and wait until they and these futures are done.

    Also workers without a future: an interrupt may come between starting a process and noting its future.

    The futures are not cancelled: pebble would complain where a result comes in at the same moment.
    """
    workers = [
        child
        for child in multiprocessing.active_children()
        if (child.name.startswith(WORKER_NAME) if names is None else child.name in names)
    ]
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(timeout=SECONDS_TO_STOP)
        if worker.is_alive():
            worker.kill()
    wait(futures, timeout=SECONDS_TO_STOP)


def _exit_reason(exitcode: Optional[int]) -> str:
    if exitcode is None:
        return "for an unknown reason"
    if exitcode < 0:
        reason = " (on Linux often for lack of memory)" if exitcode == -9 else ""
        return f"killed by signal {-exitcode}{reason}"
    return f"exit status {exitcode}"
