"""Calls in fresh processes of this machine, their time limit and their end, and the executor that makes such runs."""

import multiprocessing
import os
import threading
import time
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, Future, TimeoutError, wait
from contextlib import suppress
from dataclasses import replace
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, ForeignError, describe, describe_with_line
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE
from fiesta_allennlp.core.records import Failure, Origin, Outcome, Request
from fiesta_allennlp.running import fork_server
from fiesta_allennlp.running.executor import ActiveRun, Executor, QueueingExecutor
from fiesta_allennlp.running.machine import num_cores, origin_here
from fiesta_allennlp.running.process_tree import end_orphaned_trees, end_tree
from fiesta_allennlp.running.worker import Evaluator, RunTask, WorkerSettings, call_logged, evaluate_task

MAX_DEATHS = 2
"""How often a task begins again whose process was killed, such as for lack of memory."""

STOP_TIMEOUT_SECONDS = 10.0
MAX_STARTS = 5  # of a process: the fork server may be killed at any time, and starts again
RESTART_PAUSE_SECONDS = 0.2  # between two starts: a killed process counts as running until the system has removed it


class ProcessDied(Exception):
    """Raised for a process that ended without a result. `exit_code` is negative if a signal ended it."""

    def __init__(self, exit_code: Optional[int]) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


process_table_lock = threading.Lock()  # `multiprocessing` reads the exit code of a process once


class ProcessCall(Future[Any]):
    """A call in a process of its own, as a future of its result, of the error that it raised, of a `ProcessDied`, or of
    a `TimeoutError`, after which the process was ended."""

    def __init__(self, process: Any, reader: Connection, timeout: Optional[float]) -> None:
        super().__init__()
        self.process = process
        threading.Thread(target=self._wait_for_end, args=(reader, timeout), daemon=True).start()

    def _wait_for_end(self, reader: Connection, timeout: Optional[float]) -> None:
        is_result, value = False, None
        with reader:
            is_in_time = bool(connection.wait([reader, self.process.sentinel], timeout))
            with suppress(EOFError, OSError):
                if is_in_time and reader.poll():
                    is_result, value = reader.recv()
            end_process(self.process)
        with process_table_lock:
            self.process.join(timeout=STOP_TIMEOUT_SECONDS)
        if is_result:
            self.set_result(value)
        else:
            no_answer = ProcessDied(self.process.exitcode) if is_in_time else TimeoutError()
            self.set_exception(no_answer if value is None else value)


def end_process(process: Any) -> None:
    """End a process of a call with its children."""
    if not connection.wait([process.sentinel], 0):
        process.terminate()
        if not connection.wait([process.sentinel], STOP_TIMEOUT_SECONDS):
            process.kill()
            end_tree(process.pid)
            connection.wait([process.sentinel], STOP_TIMEOUT_SECONDS)


def call_and_send(writer: Connection, function: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> None:
    """Call the function in its process, and send its result or the error that it raised. An error of another package
    becomes a `ForeignError`, because the parent process could not unpickle it without that package."""
    try:
        result = True, function(*args, **kwargs)
    except BaseException as error:
        is_ours = isinstance(error, FiestaError) and type(error).__module__ == FiestaError.__module__
        result = False, error if is_ours else ForeignError(describe_with_line(error))
    writer.send(result)


def start_call(
    context: Any,
    function: Callable[..., Any],
    *args: Any,
    name: str = fork_server.WORKER_PROCESS_NAME,
    timeout: Optional[float] = None,
    **kwargs: Any,
) -> ProcessCall:
    """Start a call in a process of its own. Restart a killed fork server, and raise a `FiestaError` if this fails
    repeatedly. The process is not a daemon, so that AllenNLP's data loaders may start processes too."""
    for _ in range(MAX_STARTS):
        try:
            safe_path = os.environ.get(fork_server.SAFE_PATH_VARIABLE, fork_server.SAFE_PATH_VALUE)
            variables = {fork_server.SAFE_PATH_VARIABLE: safe_path, **fork_server.server_variables}
            with process_table_lock, fork_server.environment_variables(variables):
                reader, writer = context.Pipe(duplex=False)
                with writer:
                    process = context.Process(target=call_and_send, args=(writer, function, args, kwargs), name=name)
                    process.start()
            return ProcessCall(process, reader, timeout)
        except (EOFError, ConnectionError) as error:
            last_error = error
            time.sleep(RESTART_PAUSE_SECONDS)
    reason = f"the server that starts processes died {MAX_STARTS} times ({describe(last_error)})"
    raise FiestaError(f"{reason}. Free some memory, then continue with --recover.") from last_error


def stop_calls(calls: Collection[ProcessCall]) -> None:
    """End the processes of these calls with their children, and wait until they are done."""
    _end_processes([call.process for call in calls if not call.done()])
    wait(calls, timeout=STOP_TIMEOUT_SECONDS)


def end_all_workers() -> None:
    """End all processes of calls with their children. Also those without a call: an interrupt may come between starting
    a process and storing its call."""
    children = multiprocessing.active_children()
    _end_processes([child for child in children if child.name.startswith(fork_server.WORKER_PROCESS_NAME)])


def _end_processes(processes: Sequence[Any]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        end_process(process)


@Executor.register("processes")
class ProcessExecutor(QueueingExecutor):
    """Makes every run in a fresh process on this machine, forked from a server that has loaded what they need.

    Args:
        directory: the run directory.
        cuda_devices: devices to distribute among the workers. Each worker sees one, the one with the fewest workers
            when it begins. A device that is named twice takes twice as many. None leaves all visible.
        common: arguments of `QueueingExecutor`. With `workers` `auto`, there are as many as this machine's cores have
            room for, but not more than `cuda_devices`.

    Raises:
        ConfigError: if a number is below its minimum.
    """

    is_local = True

    def __init__(self, directory: RunDirectory, *, cuda_devices: Optional[List[str]] = None, **common: Any) -> None:
        super().__init__(directory, **common)
        self.slots = num_workers(self.workers, self.num_threads, len(cuda_devices) if cuda_devices else None)
        self.gives_devices = bool(cuda_devices)
        self._devices = cuda_devices or []
        self._device_by_run: Dict[Any, Optional[str]] = {}
        directory.root.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
        self._context = fork_server.start_fork_server(self.num_threads, self.packages)

    def describe(self) -> str:
        devices = f" and one CUDA device of {', '.join(self._devices)}" if self._devices else ""
        threads = f"{self.num_threads} CPU thread{'s' if self.num_threads > 1 else ''}"
        return f"{self.slots} at a time on this machine, each with {threads}{devices}"

    def start_run(self, evaluator: Evaluator, request: Request) -> ProcessCall:
        self._device_by_run = {run: self._device_by_run[run] for run in self.active_runs}
        load = Counter(self._device_by_run.values())
        device = min(self._devices, key=lambda device: load[device] / self._devices.count(device), default=None)
        directory = self.directory.evaluation(request.name)
        with suppress(FileNotFoundError):  # never the run directory too: where it was moved, its path is another's
            directory.parent.mkdir(mode=OWN_DIRECTORY_MODE, exist_ok=True)
            directory.mkdir(mode=OWN_DIRECTORY_MODE)
        task = self.task_for(evaluator, request, directory, device=device)
        name = f"{fork_server.WORKER_PROCESS_NAME} {request.name}"
        arguments = evaluate_task, task, self._origin(device)
        call = start_call(self._context, *arguments, name=name, timeout=self.time_limit)
        self._device_by_run[call] = device
        return call

    def _origin(self, device: Optional[str]) -> Origin:
        """Return the origin of the runs with this device."""
        return replace(origin_here(self.packages, device=device), is_only_machine=len(set(self._devices)) < 2)

    def wait_for_run(self, timeout: Optional[float]) -> Optional[Any]:
        return next(iter(wait(self.active_runs, timeout=timeout, return_when=FIRST_COMPLETED).done), None)

    def read_outcome(self, call: ProcessCall, run: ActiveRun) -> Outcome:
        run = replace(run, origin=self._origin(self._device_by_run[call]))
        return outcome_of_call(call, run, time_limit=self.time_limit)

    def stop_runs(self, calls: Collection[ProcessCall]) -> None:
        stop_calls(calls)

    def close(self) -> None:
        end_all_workers()
        super().close()


def num_workers(workers: Union[int, str], num_threads: int, num_devices: Optional[int] = None) -> int:
    """Return how many runs this machine makes at once: for `auto`, as many as its cores have room for, but at most
    `num_devices`. Only cores count that this process may use, by affinity."""
    if isinstance(workers, int):
        return workers
    num_fitting = max(1, num_cores() // num_threads)
    return num_fitting if num_devices is None else min(num_fitting, num_devices)


def make_run(task: RunTask, context: Any) -> Outcome:
    """Make one run of a selection that has other machines too, in a fresh process, and return its outcome. Several
    threads may do so at once: an error or a signal ends this run's process alone."""
    origin = replace(origin_here(task.settings.packages, device=task.settings.device), is_only_machine=False)
    run = ActiveRun(task.request, origin)
    call = start_call(context, evaluate_task, task, origin, timeout=task.time_limit)
    try:
        return outcome_of_call(call, run, time_limit=task.time_limit)
    finally:
        stop_calls([call])


def outcome_of_call(call: ProcessCall, run: ActiveRun, *, time_limit: Optional[float]) -> Outcome:
    """Wait for a process that runs `evaluate_task`, and return its outcome, however it ended."""
    error = call.exception()
    if error is None:
        outcome = call.result()
        return run.failure(outcome.kind, outcome.error) if isinstance(outcome, Failure) else outcome
    if isinstance(error, TimeoutError):
        end_orphaned_trees()
        return run.failure("timeout", f"ran longer than --time-limit {time_limit:g} seconds")
    if isinstance(error, ProcessDied):
        end_tree(call.process.pid)
        return run.failure("killed", str(process_error(error)))
    return run.failure("error", describe(error))


def run_in_processes(
    function: Callable[..., Any],
    arguments_by_name: Dict[str, Tuple[Any, ...]],
    *,
    logs: Dict[str, Path],
    settings: WorkerSettings,
    max_parallel: int = 1,
    on_done: Callable[[str], None] = lambda name: None,
) -> Dict[str, Any]:
    """Call `function` once for each task in its own process, `max_parallel` at a time, and again if a signal ended the
    process. Return results, or exceptions, by name in the order of the tasks."""
    context = fork_server.start_fork_server(settings.num_threads, (function.__module__, *settings.packages))
    for log in logs.values():
        log.parent.mkdir(parents=True, exist_ok=True)
    results: Dict[str, Any] = {}
    queued_names, num_deaths = deque(arguments_by_name), Counter[str]()
    running: Dict[Any, str] = {}
    try:
        while queued_names or running:
            while queued_names and len(running) < max_parallel:
                name = queued_names.popleft()
                arguments = call_logged, function, *arguments_by_name[name]
                running[start_call(context, *arguments, log=logs[name], settings=settings)] = name
            for call in wait(running, return_when=FIRST_COMPLETED).done:
                name, error = running.pop(call), call.exception()
                was_killed = isinstance(error, ProcessDied) and (error.exit_code or 0) < 0
                if was_killed and num_deaths[name] < MAX_DEATHS:
                    num_deaths[name] += 1
                    queued_names.append(name)
                    continue
                results[name] = call.result() if error is None else process_error(error)
                on_done(name)
    finally:
        stop_calls(running)
    return {name: results[name] for name in arguments_by_name}


def process_error(error: BaseException) -> BaseException:
    """Return the error of a process, or an error that describes how it died without raising one. Raise a `ConfigError`
    if the process found the call that started it without a guard."""
    if not isinstance(error, ProcessDied):
        return error
    code = error.exit_code
    if code == fork_server.EXIT_WITHOUT_GUARD:
        raise ConfigError(fork_server.MISSING_GUARD_MESSAGE)
    if code is None or code >= 0:
        return FiestaError(f"the process died: exit status {'unknown' if code is None else code}")
    cause = " (on Linux often for lack of memory)" if code == -9 else ""
    return FiestaError(f"the process died: killed by signal {-code}{cause}")
