"""Starts fresh processes from a server that has loaded what they need, such as AllenNLP.

Neither AllenNLP nor torch is imported here, because every Ray worker imports this file. The server's socket lies in the
temporary directory of `multiprocessing`, which the server deletes if the process that started it was killed.
"""

import multiprocessing
import os
import platform
import resource
import shutil
import sys
import time
import traceback
from concurrent.futures import TimeoutError, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from multiprocessing import util
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

import psutil

from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.core.origin import UNKNOWN_ORIGIN, Origin
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.running.isolation.machine import origin_here
from fiesta_allennlp.running.isolation.process_tree import SESSION, end_orphaned_trees, end_tree, name_session
from fiesta_allennlp.running.isolation.time_limited_call import (
    STOP_TIMEOUT_SECONDS,
    ProcessCall,
    ProcessDied,
    call_and_send,
    end_process,
    process_table_lock,
)
from fiesta_allennlp.running.isolation.worker import RunTask, evaluate_task

EXIT_WITHOUT_GUARD = 117  # the exit status of a process that would make the call again; its parent tells the user
MISSING_GUARD_MESSAGE = (
    'put this call below `if __name__ == "__main__":`. Each process that it starts imports your script, and would '
    "otherwise repeat the call."
)
WORKER_PROCESS_NAME = "fiesta-worker"


def check_main_guard() -> None:
    """Refuse a call that starts processes if the script makes it without `if __name__ == "__main__":`. Each process
    imports the script, and would make the call again: end such a process. Raise a `ConfigError` in any other."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe()) if frame.f_code.co_name == "<module>"]
    if any(frame.f_globals.get("__name__") == "__mp_main__" for frame in frames):
        if multiprocessing.current_process().name.startswith(WORKER_PROCESS_NAME):
            os._exit(EXIT_WITHOUT_GUARD)
        raise ConfigError(MISSING_GUARD_MESSAGE)


THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PARENT_VARIABLE, SOCKETS_VARIABLE, PRELOAD_VARIABLE = "FIESTA_PARENT", "FIESTA_SOCKETS", "FIESTA_PRELOAD"
MIN_OPEN_FILES = 64  # to be open at once, for the pipes of a few workers
TORCH_CACHE_VARIABLE, ALLENNLP_PACKAGE = "TORCHINDUCTOR_CACHE_DIR", "fiesta_allennlp.candidates.allennlp"
OWNER_FILE, PID_NAMESPACE = "fiesta-owner", "/proc/self/ns/pid"  # the mark of a directory; whose pids it means
POLL_SECONDS = 0.5
MAX_STARTS = 5  # of a process: the fork server may be killed at any time, and starts again
RESTART_PAUSE_SECONDS = 0.2  # between two starts: a killed process counts as running until the system has removed it
TRACKER_WARNING_FILTER = "ignore:resource_tracker:UserWarning"  # about every semaphore of a killed worker
PACKAGE_PREFIX = "fiesta_allennlp."

# These keep Python 3.11 and later from looking for the server's own modules in the current directory, where a user may
# have a `random.py` or another copy of this package. The value shows that nobody else set it.
SAFE_PATH_VARIABLE, SAFE_PATH_VALUE = "PYTHONSAFEPATH", "fiesta"

_server_variables: Dict[str, str] = {}  # of the fork server, and of all that it starts


def start_fork_server(num_threads: int, packages: Sequence[str] = ()) -> multiprocessing.context.ForkServerContext:
    """Return a context whose processes start with our own modules among `packages` imported.

    The server starts with the first process, and finds the thread variables when it imports torch. Sets of texts have
    one order in all processes, on every machine and after every interruption, so that readers that iterate over them
    read the same.
    """
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= most_files < MIN_OPEN_FILES:
        raise ConfigError(f"only {most_files} files may be open at once. Allow more first: ulimit -n {MIN_OPEN_FILES}")
    preloads = [package for package in packages if package.startswith(PACKAGE_PREFIX)]
    _server_variables.update(dict.fromkeys(THREAD_VARIABLES, str(num_threads)))
    _server_variables.update({PARENT_VARIABLE: str(os.getpid()), PRELOAD_VARIABLE: " ".join(preloads)})
    _server_variables.update({SOCKETS_VARIABLE: mark_temporary_directory(), SESSION: name_session()})
    _server_variables["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED", "0")
    warnings = os.environ.get("PYTHONWARNINGS", "")
    _server_variables["PYTHONWARNINGS"] = ",".join(filter(None, [warnings, TRACKER_WARNING_FILTER]))
    if any(package.startswith(ALLENNLP_PACKAGE) for package in preloads):  # torch makes this directory on its import
        cache = os.environ.get(TORCH_CACHE_VARIABLE, os.path.join(util.get_temp_dir(), "torch"))
        _server_variables.setdefault(TORCH_CACHE_VARIABLE, cache)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fiesta_allennlp.running.isolation.preload"])
    return context


def mark_temporary_directory() -> str:
    """Return the temporary directory of `multiprocessing`, marked with its process. Delete those of processes that were
    killed together with all that could do so."""
    directory = Path(util.get_temp_dir())
    own_machine = f"{platform.node()} {os.readlink(PID_NAMESPACE) if os.path.exists(PID_NAMESPACE) else ''}"
    for mark in directory.parent.glob(f"pymp-*/{OWNER_FILE}"):
        with suppress(OSError, ValueError):
            pid, _, machine = mark.read_text().partition(" ")
            if machine == own_machine and not psutil.pid_exists(int(pid)):
                shutil.rmtree(mark.parent, ignore_errors=True)
    (directory / OWNER_FILE).write_text(f"{os.getpid()} {own_machine}")
    return str(directory)


@contextmanager
def environment_variables(variables: Mapping[str, Optional[str]]) -> Iterator[None]:
    """Set variables, or remove those that are None, for what starts meanwhile. This process gets its own back."""
    old_values = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(old_values)


def _set_variables(variables: Mapping[str, Optional[str]]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def unset_safe_path() -> None:
    """Let programs that this process starts find modules next to themselves as usual."""
    if os.environ.get(SAFE_PATH_VARIABLE) == SAFE_PATH_VALUE:
        del os.environ[SAFE_PATH_VARIABLE]


def worker_process_name(request: Request) -> str:
    return f"{WORKER_PROCESS_NAME} {request.name}"


def start_call(
    context: Any,
    function: Callable[..., Any],
    *args: Any,
    name: str = WORKER_PROCESS_NAME,
    timeout: Optional[float] = None,
    **kwargs: Any,
) -> ProcessCall:
    """Start a call in a process of its own. Restart a killed fork server, and raise a `FiestaError` if this fails
    repeatedly. The process is not a daemon, so that AllenNLP's data loaders may start processes too."""
    for _ in range(MAX_STARTS):
        try:
            safe_path = os.environ.get(SAFE_PATH_VARIABLE, SAFE_PATH_VALUE)
            variables = {SAFE_PATH_VARIABLE: safe_path, **_server_variables}
            with process_table_lock, environment_variables(variables):
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


@dataclass(frozen=True)
class RunStart:
    """The beginning of a run: `started_at` is ISO 8601 in UTC, `monotonic_start` on the monotonic clock. `origin` is
    empty where another machine makes the run."""

    request: Request
    started_at: str
    monotonic_start: float
    origin: Origin = UNKNOWN_ORIGIN

    @classmethod
    def now(cls, request: Request, origin: Origin = UNKNOWN_ORIGIN) -> "RunStart":
        return cls(request, datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic(), origin)

    def failure(self, kind: str, error: str) -> Failure:
        """Return the failure of a run that ends at this moment."""
        seconds = time.monotonic() - self.monotonic_start
        return Failure(self.request, kind, error, seconds=seconds, started_at=self.started_at, origin=self.origin)


def outcome_of_call(call: ProcessCall, start: RunStart, *, time_limit: Optional[float]) -> Outcome:
    """Return the outcome of a process that ran `evaluate_task` and is done, however it ended."""
    error = call.exception()
    if error is None:
        outcome = call.result()
        return start.failure(outcome.kind, outcome.error) if isinstance(outcome, Failure) else outcome
    if isinstance(error, TimeoutError):
        end_orphaned_trees()
        return start.failure("timeout", f"ran longer than --time-limit {time_limit:g} seconds")
    if isinstance(error, ProcessDied):
        end_tree(call.process.pid)
        return start.failure("killed", str(process_error(error)))
    return start.failure("error", describe(error))


def was_killed(error: Optional[BaseException]) -> bool:
    """Return whether a signal ended a process, which says nothing about its work."""
    return isinstance(error, ProcessDied) and error.exit_code is not None and error.exit_code < 0


def process_error(error: BaseException) -> BaseException:
    """Return the error of a process, or an error that describes how it died without raising one. Raise a `ConfigError`
    if the process found the call that started it without a guard."""
    if not isinstance(error, ProcessDied):
        return error
    code = error.exit_code
    if code == EXIT_WITHOUT_GUARD:
        raise ConfigError(MISSING_GUARD_MESSAGE)
    if code is None or code >= 0:
        return FiestaError(f"the process died: exit status {'unknown' if code is None else code}")
    cause = " (on Linux often for lack of memory)" if code == -9 else ""
    return FiestaError(f"the process died: killed by signal {-code}{cause}")


def make_run(task: RunTask, context: Any) -> Outcome:
    """Make one run of a selection that has other machines too, in a fresh process, and return its outcome. Several
    threads may do so at once: an error or a signal ends this run's process alone."""
    origin = replace(origin_here(task.settings.packages, device=task.settings.device), is_only_machine=False)
    start = RunStart.now(task.request, origin)
    call = start_call(context, evaluate_task, task, origin, timeout=task.time_limit)
    try:
        return outcome_of_call(call, start, time_limit=task.time_limit)
    finally:
        stop_calls([call])


def stop_calls(calls: Sequence[ProcessCall]) -> None:
    """End the processes of these calls with their children, and wait until they are done."""
    for call in calls:
        if not call.done():
            call.process.terminate()
    for call in calls:
        if not call.done():
            call.stop()
    wait(calls, timeout=STOP_TIMEOUT_SECONDS)


def end_all_workers() -> None:
    """End all processes of calls with their children. Also those without a call: an interrupt may come between starting
    a process and storing its call."""
    children = [child for child in multiprocessing.active_children() if child.name.startswith(WORKER_PROCESS_NAME)]
    for child in children:
        child.terminate()
    for child in children:
        end_process(child)


def is_orphan() -> bool:
    """Return whether the process that started this fork server has ended."""
    return os.environ.get(PARENT_VARIABLE, str(os.getppid())) != str(os.getppid())


def delete_orphaned_directory() -> None:
    """Delete the directory of a parent process that has ended, and cannot do it itself."""
    if is_orphan() and SOCKETS_VARIABLE in os.environ:
        shutil.rmtree(os.environ[SOCKETS_VARIABLE], ignore_errors=True)
