from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from joblib import cpu_count

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Outcome, Request
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.queueing import QueueingExecutor, Running
from fiesta_allennlp.isolation import fork_server
from fiesta_allennlp.isolation.worker import WorkerSettings, evaluate_here, run_for_parent

MOST_DEATHS = 2
"""How often a task begins again whose process was killed, such as for lack of memory."""


@Executor.register("processes")
class ProcessExecutor(QueueingExecutor):
    """Makes every run in a fresh process on this machine, forked from a server that has loaded what they need.

    Args:
        directory: the run directory.
        cuda_devices: devices to distribute among the workers. Each worker sees one, the one with the fewest workers
            when it begins. None leaves all visible.
        common: arguments of `QueueingExecutor`. With `workers` `auto`, there are as many as this machine's cores have
            room for, but not more than `cuda_devices`.

    Raises:
        ConfigError: if a number is below its minimum.
    """

    is_local = True

    def __init__(self, directory: RunDirectory, *, cuda_devices: Optional[List[str]] = None, **common: Any) -> None:
        super().__init__(directory, **common)
        self.slots = num_workers(self._workers, self._num_threads, len(cuda_devices) if cuda_devices else None)
        self.gives_devices = bool(cuda_devices)
        self._devices = cuda_devices or []
        directory.root.mkdir(parents=True, exist_ok=True)
        self._context = fork_server.start_fork_server(self._num_threads, self._packages)

    def describe(self) -> str:
        devices = f" and one CUDA device of {', '.join(self._devices)}" if self._devices else ""
        threads = f"{self._num_threads} CPU thread{'s' if self._num_threads > 1 else ''}"
        return f"{self.slots} at a time on this machine, each with {threads}{devices}"

    def _start(self, evaluator: Evaluator, request: Request) -> None:
        load = Counter(running.device for running in self._running.values())
        device = min(self._devices, key=lambda device: load[device], default=None)  # the one with the fewest runs
        directory = self._directory.evaluation(request.name)
        with suppress(FileNotFoundError):  # never the run directory too: where it was moved, its path is another's
            directory.parent.mkdir(exist_ok=True)
            directory.mkdir()
        work = self._work(evaluator, request, directory, device=device)
        call = fork_server.in_process(
            evaluate_here, self._context, name=fork_server.worker_name(request), timeout=self._time_limit
        )
        self._running[call(work)] = Running(evaluator, fork_server.Begun.now(request), device)

    def _wait(self, timeout: Optional[float]) -> Any:
        ended, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        return next(iter(ended), None)

    def _outcome(self, future: Any, running: Running) -> Outcome:
        return self._with_log(fork_server.outcome_of(future, running.begun, time_limit=self._time_limit))

    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        fork_server.stop_all(
            list(unwanted), names=[fork_server.worker_name(running.begun.request) for running in unwanted.values()]
        )

    def _end(self, running: Mapping[Any, Running]) -> None:
        fork_server.stop_all(list(running))


def num_workers(workers: Union[int, str], num_threads: int, num_devices: Optional[int] = None) -> int:
    """Return how many runs this machine makes at once: for `auto`, as many as its cores have room for, but at most
    `num_devices`. Only cores count that this process may use, by affinity and by the container's share."""
    if isinstance(workers, int):
        return workers
    num_fitting = max(1, cpu_count() // num_threads)
    return num_fitting if num_devices is None else min(num_fitting, num_devices)


def run_apart(
    work: Callable[..., Any],
    tasks: Dict[str, Tuple[Any, ...]],
    *,
    logs: Dict[str, Path],
    settings: WorkerSettings,
    at_once: int = 1,
    on_done: Callable[[str], None] = lambda name: None,
) -> Dict[str, Any]:
    """Call `work` once for each task in its own process, `at_once` at a time, and again if a signal ended the process.
    Return results, or exceptions, by name in the order of the tasks."""
    context = fork_server.start_fork_server(settings.num_threads, settings.packages)
    for log in logs.values():
        log.parent.mkdir(parents=True, exist_ok=True)
    results: Dict[str, Any] = {}
    queued_names, num_deaths = deque(tasks), Counter[str]()
    running: Dict[Any, str] = {}
    try:
        while queued_names or running:
            while queued_names and len(running) < at_once:
                name = queued_names.popleft()
                call = fork_server.in_process(run_for_parent, context)
                running[call(work, *tasks[name], log=logs[name], settings=settings)] = name
            ended_futures, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended_futures:
                name = running.pop(future)
                error = future.exception()
                if fork_server.was_killed(error) and num_deaths[name] < MOST_DEATHS:
                    num_deaths[name] += 1
                    queued_names.append(name)
                    continue
                results[name] = future.result() if error is None else fork_server.plain_cause(error)
                on_done(name)
    finally:
        fork_server.stop_all(list(running))
    return {name: results[name] for name in tasks}
