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
from dataclasses import dataclass
from datetime import datetime, timezone
from multiprocessing import util
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from pebble import ProcessExpired, concurrent

from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.isolation.process_tree import SESSION, end_orphaned_trees, end_tree, name_session
from fiesta_allennlp.isolation.worker import Work, evaluate_here

NO_GUARD = 117  # the exit status of a process that would make the call again; its parent tells the user
MISSING_GUARD = (
    'put this call below `if __name__ == "__main__":`. Each process that it starts imports your script, and would '
    "otherwise repeat the call."
)
WORKER_NAME = "fiesta-worker"
OUR_NAMES = (WORKER_NAME, "pebble")  # begin the names of our processes


def refuse_to_be_imported() -> None:
    """Refuse a call that starts processes if the script makes it without `if __name__ == "__main__":`. Each process
    imports the script, and would make the call again: end such a process. Raise a `ConfigError` in any other."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe()) if frame.f_code.co_name == "<module>"]
    if any(frame.f_globals.get("__name__") == "__mp_main__" for frame in frames):
        if multiprocessing.current_process().name.startswith(OUR_NAMES):
            os._exit(NO_GUARD)
        raise ConfigError(MISSING_GUARD)


THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PARENT, SOCKETS, PRELOAD = "FIESTA_PARENT", "FIESTA_SOCKETS", "FIESTA_PRELOAD"  # the fork server's variables
MIN_OPEN_FILES = 64  # to be open at once, for the pipes of a few workers
TORCH_CACHE, TYPE_PACKAGE = "TORCHINDUCTOR_CACHE_DIR", "fiesta_allennlp.trainings.allennlp"
OWNER_FILE, NAMESPACE = "fiesta-owner", "/proc/self/ns/pid"  # the mark of a temporary directory; whose pids it means
SECONDS_TO_STOP = 10.0
SECONDS_BETWEEN_LOOKS = 0.5
MOST_STARTS = 5  # of a process: the fork server may be killed at any time, and starts again
SECONDS_TO_DIE = 0.2  # between two starts: a killed process counts as running until the system has removed it
QUIET_TRACKER = "ignore:resource_tracker:UserWarning"  # about every semaphore of a killed worker
PACKAGE_PREFIX = "fiesta_allennlp."

# These keep Python 3.11 and later from looking for the server's own modules in the current directory, where a user may
# have a `random.py` or another copy of this package. The value shows that nobody else set it.
SAFE_PATH, BY_US = "PYTHONSAFEPATH", "fiesta"

_variables: Dict[str, str] = {}  # of the fork server, and of all that it starts


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
    _variables.update(dict.fromkeys(THREAD_VARIABLES, str(num_threads)))
    _variables.update({PARENT: str(os.getpid()), SOCKETS: marked_temp_dir(), PRELOAD: " ".join(preloads)})
    _variables[SESSION] = name_session()
    _variables["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED", "0")
    warnings = os.environ.get("PYTHONWARNINGS", "")
    _variables["PYTHONWARNINGS"] = ",".join(filter(None, [warnings, QUIET_TRACKER]))
    if any(package.startswith(TYPE_PACKAGE) for package in preloads):  # torch makes this directory when it is imported
        _variables.setdefault(TORCH_CACHE, os.environ.get(TORCH_CACHE, os.path.join(util.get_temp_dir(), "torch")))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fiesta_allennlp.isolation.preload"])
    return context


def marked_temp_dir() -> str:
    """Return the temporary directory of `multiprocessing`, marked with its process. Delete those of processes that were
    killed together with all that could do so."""
    directory = Path(util.get_temp_dir())
    own_machine = f"{platform.node()} {os.readlink(NAMESPACE) if os.path.exists(NAMESPACE) else ''}"
    for mark in directory.parent.glob(f"pymp-*/{OWNER_FILE}"):
        with suppress(OSError, ValueError):
            pid, _, machine = mark.read_text().partition(" ")
            if machine == own_machine and not is_alive(int(pid)):
                shutil.rmtree(mark.parent, ignore_errors=True)
    (directory / OWNER_FILE).write_text(f"{os.getpid()} {own_machine}")
    return str(directory)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


@contextmanager
def environment_of(variables: Mapping[str, Optional[str]]) -> Iterator[None]:
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


def forget_safe_path() -> None:
    """Let programs that this process starts find modules next to themselves as usual."""
    if os.environ.get(SAFE_PATH) == BY_US:
        del os.environ[SAFE_PATH]


def worker_name(request: Request) -> str:
    return f"{WORKER_NAME} {request.name}"


def in_process(
    work: Callable[..., Any], context: Any, *, name: str = WORKER_NAME, timeout: Optional[float] = None
) -> Callable[..., Any]:
    """Return `work` as a call that returns a future. The call restarts a killed fork server, and raises a `FiestaError`
    if this fails repeatedly. The process is not a daemon, so that AllenNLP's data loaders may start processes too."""
    begin = concurrent.process(name=name, daemon=False, timeout=timeout, context=context)(work)

    def begin_again(*args: Any, **kwargs: Any) -> Any:
        for _ in range(MOST_STARTS):
            try:
                with environment_of({SAFE_PATH: os.environ.get(SAFE_PATH, BY_US), **_variables}):
                    return begin(*args, **kwargs)
            except (EOFError, ConnectionError) as error:
                failure = error
                time.sleep(SECONDS_TO_DIE)
        raise FiestaError(
            f"cannot start a process: the server that forks them died {MOST_STARTS} times ({describe(failure)}), "
            "usually for lack of memory. Finished runs are safe: free some memory, then continue with --recover."
        ) from failure

    return begin_again


@dataclass(frozen=True)
class Begun:
    """The beginning of a run: `started_at` is ISO 8601 in UTC, `start` on the monotonic clock."""

    request: Request
    started_at: str
    start: float

    @classmethod
    def now(cls, request: Request) -> "Begun":
        return cls(request, datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic())

    def failed(self, kind: str, error: str) -> Failure:
        """Return the failure of a run that ends at this moment."""
        return Failure(self.request, kind, error, seconds=time.monotonic() - self.start, started_at=self.started_at)


def outcome_of(future: Any, begun: Begun, *, time_limit: Optional[float]) -> Outcome:
    """Return the outcome of a process that ran `evaluate_here` and is done, however it ended."""
    error = future.exception()
    if error is None:
        outcome = future.result()
        return begun.failed(outcome.kind, outcome.error) if isinstance(outcome, Failure) else outcome
    if isinstance(error, TimeoutError):
        end_orphaned_trees()
        return begun.failed("timeout", f"ran longer than --time-limit {time_limit:g} seconds")
    if isinstance(error, ProcessExpired):
        end_tree(error.pid)
        return begun.failed("killed", str(plain_cause(error)))
    return begun.failed("error", describe(error))


def was_killed(error: Optional[BaseException]) -> bool:
    """Return whether a signal ended a process, which says nothing about its work."""
    return isinstance(error, ProcessExpired) and error.exitcode is not None and error.exitcode < 0


def plain_cause(error: BaseException) -> BaseException:
    """Return the error of a process, or an error that describes how it died without raising one. Raise a `ConfigError`
    if the process found the call that started it without a guard."""
    if not isinstance(error, ProcessExpired):
        return error
    code = error.exitcode
    if code == NO_GUARD:
        raise ConfigError(MISSING_GUARD)
    if code is None or code >= 0:
        return FiestaError(f"the process died: exit status {'unknown' if code is None else code}")
    cause = " (on Linux often for lack of memory)" if code == -9 else ""
    return FiestaError(f"the process died: killed by signal {-code}{cause}")


def make(work: Work, context: Any, *, is_wanted: Callable[[], bool] = lambda: True) -> Outcome:
    """Make one run in a fresh process and return its outcome. Stop it once it is no longer wanted."""
    begun = Begun.now(work.request)
    future = in_process(evaluate_here, context, timeout=work.time_limit)(work)
    try:
        while not wait([future], timeout=SECONDS_BETWEEN_LOOKS).done:
            if not is_wanted():
                return begun.failed("killed", "stopped because it is no longer needed")
        return outcome_of(future, begun, time_limit=work.time_limit)
    finally:
        stop_all([future])


def stop_all(futures: List[Any], *, names: Optional[Sequence[str]] = None) -> None:
    """End all workers, or those with these names, with their children, and wait until they and these futures are done.

    Workers without a future end too: an interrupt may come between starting a process and storing its future. Futures
    are not cancelled, because pebble would complain if a result arrives at the same moment.
    """
    children = [child for child in multiprocessing.active_children() if child.name.startswith(WORKER_NAME)]
    workers = [child for child in children if names is None or child.name in names]
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(timeout=SECONDS_TO_STOP)
        if worker.is_alive():
            worker.kill()
            end_tree(worker.pid)
    wait(futures, timeout=SECONDS_TO_STOP)


def has_lost_parent() -> bool:
    """Return whether the process that started this fork server has ended."""
    return os.environ.get(PARENT, str(os.getppid())) != str(os.getppid())


def delete_of_lost_parent() -> None:
    """Delete the directory of a parent process that has ended, and cannot do it itself."""
    if has_lost_parent() and SOCKETS in os.environ:
        shutil.rmtree(os.environ[SOCKETS], ignore_errors=True)
