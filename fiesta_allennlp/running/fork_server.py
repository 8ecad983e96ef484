"""Starts fresh processes from a server that has loaded what they need, such as AllenNLP.

Neither AllenNLP nor torch is imported here, because every Ray worker imports this file. The server's socket lies in the
temporary directory of `multiprocessing`, which the server deletes if the process that started it was killed.
"""

import multiprocessing
import os
import sys
import threading
import time
import traceback
from concurrent.futures import Future, TimeoutError, wait
from contextlib import contextmanager, suppress
from multiprocessing import connection, util
from multiprocessing.connection import Connection
from typing import Any, Callable, Collection, Dict, Iterator, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import ConfigError, FiestaError, ForeignError, describe, describe_with_line
from fiesta_allennlp.running.process_tree import SESSION, end_tree, name_session

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PARENT_VARIABLE, SOCKETS_VARIABLE, PRELOAD_VARIABLE = "FIESTA_PARENT", "FIESTA_SOCKETS", "FIESTA_PRELOAD"
STOP_TIMEOUT_SECONDS = 10.0
MAX_STARTS = 5  # of a process: the fork server may be killed at any time, and starts again
RESTART_PAUSE_SECONDS = 0.2  # between two starts: a killed process counts as running until the system has removed it
TRACKER_WARNING_FILTER = "ignore:resource_tracker:UserWarning"  # about every semaphore of a killed worker
WORKER_PROCESS_NAME = "fiesta-worker"

EXIT_WITHOUT_GUARD = 117  # the exit status of a process that would make the call again; its parent tells the user
MISSING_GUARD_MESSAGE = (
    'put this call below `if __name__ == "__main__":`. Each process that it starts imports your script, and would '
    "otherwise repeat the call."
)

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
    preloads = [package for package in packages if package.startswith("fiesta_allennlp.")]
    warnings = os.environ.get("PYTHONWARNINGS", "")
    _server_variables.update(
        {
            **dict.fromkeys(THREAD_VARIABLES, str(num_threads)),
            PARENT_VARIABLE: str(os.getpid()),
            PRELOAD_VARIABLE: " ".join(preloads),
            SOCKETS_VARIABLE: util.get_temp_dir(),
            SESSION: name_session(),
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
            "PYTHONWARNINGS": ",".join(filter(None, [warnings, TRACKER_WARNING_FILTER])),
        }
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fiesta_allennlp.running.preload"])
    return context


@contextmanager
def environment_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for what starts meanwhile. This process gets its own back."""
    old_values = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.update(old_values)
        for name in variables.keys() - old_values:
            os.environ.pop(name, None)


def unset_safe_path() -> None:
    """Let programs that this process starts find modules next to themselves as usual."""
    if os.environ.get(SAFE_PATH_VARIABLE) == SAFE_PATH_VALUE:
        del os.environ[SAFE_PATH_VARIABLE]


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


def stop_calls(calls: Collection[ProcessCall]) -> None:
    """End the processes of these calls with their children, and wait until they are done."""
    _end_processes([call.process for call in calls if not call.done()])
    wait(calls, timeout=STOP_TIMEOUT_SECONDS)


def end_all_workers() -> None:
    """End all processes of calls with their children. Also those without a call: an interrupt may come between starting
    a process and storing its call."""
    children = multiprocessing.active_children()
    _end_processes([child for child in children if child.name.startswith(WORKER_PROCESS_NAME)])


def _end_processes(processes: Sequence[Any]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        end_process(process)


def check_main_guard() -> None:
    """Refuse a call that starts processes if the script makes it without `if __name__ == "__main__":`. Each process
    imports the script, and would make the call again: end such a process. Raise a `ConfigError` in any other."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe()) if frame.f_code.co_name == "<module>"]
    if any(frame.f_globals.get("__name__") == "__mp_main__" for frame in frames):
        if multiprocessing.current_process().name.startswith(WORKER_PROCESS_NAME):
            os._exit(EXIT_WITHOUT_GUARD)
        raise ConfigError(MISSING_GUARD_MESSAGE)
