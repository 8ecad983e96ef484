"""Prepares a worker process, does the work in it, and ends what it leaves running."""

import errno
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import connection, util
from pathlib import Path
from signal import SIG_BLOCK, SIG_UNBLOCK
from typing import Any, Callable, Mapping, Optional, Tuple

from fiesta_allennlp.core.directory import LOG_FILE
from fiesta_allennlp.core.errors import FiestaError, PackageError, ProgramError, ReaderError, describe_with_line
from fiesta_allennlp.core.files import shorten_log
from fiesta_allennlp.core.records import Evaluation, Failure, Origin, Outcome, Request
from fiesta_allennlp.core.registry import Registrable, build, import_package
from fiesta_allennlp.running.machine import DEVICES_VARIABLE, RUN_ORIGIN, origin_here
from fiesta_allennlp.running.process_tree import become_root, die_with_parent, end_this_tree

LAST_EXIT_PRIORITY = -1000
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PROBE_BYTES = 2**18

# Messages of torch, in a `RuntimeError` or at the end of a program's output, when another process uses the GPU.
GPU_BUSY_MESSAGES = (
    "CUDA out of memory",
    "busy or unavailable",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


class Evaluator(Registrable):
    """Runs one request and returns one score.

    A process on any machine makes the runs from the evaluator's registered name and its fields. An evaluator is
    therefore a frozen dataclass of plain data, such as texts, numbers and lists, and it is registered by a module that
    workers import: one of `--include-package`.
    """

    @abstractmethod
    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Run the request, and write nothing outside `directory`.

        Raises:
            Exception: if anything goes wrong; the executor turns it into a `Failure`.
        """

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome of a run that finished in `directory` but was not recorded, if there is one."""
        return None

    def remedy(self, directory: Path) -> str:
        """Return the options, after a space, with which `--recover` may find the metric that the run in `directory` did
        not report."""
        return ""


@dataclass(frozen=True)
class WorkerSettings:
    """The set-up of a worker: threads of torch, packages to import first, and the CUDA devices that it sees (None for
    all)."""

    num_threads: int = 1
    packages: Tuple[str, ...] = ()
    device: Optional[str] = None


@dataclass(frozen=True)
class RunTask:
    """One run for a fresh process.

    `evaluator` is plain data, because only the fresh process has to import what it needs. The run is killed after
    `time_limit` seconds.
    """

    evaluator: Mapping[str, Any]
    request: Request
    directory: Path
    settings: WorkerSettings
    time_limit: Optional[float] = None


def evaluate_task(task: RunTask, origin: Optional[Origin] = None) -> Outcome:
    """Make a run in this fresh process. `origin` describes this machine, if the caller knows it. Anything that the run
    raises, `SystemExit` included, becomes a `Failure`. The executor adds the times, because it knows them of a process
    that died too."""
    if origin is None:
        origin = origin_here(task.settings.packages, device=task.settings.device)
    RUN_ORIGIN.set(origin)
    outcome: Outcome
    try:
        outcome = call_logged(_evaluate, task, log=task.directory / LOG_FILE, settings=task.settings)
    except BaseException as error:
        outcome = Failure(task.request, kind=_failure_kind(error, task.directory), error=describe_with_line(error))
    return replace(outcome, origin=origin)


def _evaluate(task: RunTask) -> Evaluation:
    """Make a run once the packages are imported, among them that of the evaluator."""
    return build(Evaluator, task.evaluator).evaluate(task.request, task.directory)


def _failure_kind(error: BaseException, directory: Path) -> str:
    """Return the kind of failure. A lack of the machine has its own kind, because it may be gone the next time; a file
    that lies in the way of another one is none. A full disk fails all runs, whatever error the writing library raises.
    """
    if isinstance(error, (PackageError, ReaderError)) and error.__cause__ is not None:
        return _failure_kind(error.__cause__, directory)
    kind = error.kind if isinstance(error, FiestaError) else "error"
    if kind == "data":
        return kind
    try:
        with tempfile.TemporaryFile(dir=directory.parent, buffering=0) as probe:
            has_space = probe.write(bytes(PROBE_BYTES)) == PROBE_BYTES
    except OSError as disk_error:
        has_space = disk_error.errno not in DISK_FULL_ERRORS
    if not has_space:
        return "disk"
    is_in_the_way = isinstance(error, (FileExistsError, IsADirectoryError, NotADirectoryError))
    lacks_resource = isinstance(error, (OSError, MemoryError)) or type(error).__name__ == "OutOfMemoryError"
    may_lack_gpu = isinstance(error, (RuntimeError, ProgramError))
    is_gpu_busy = may_lack_gpu and any(words in str(error) for words in GPU_BUSY_MESSAGES)
    return "machine" if (lacks_resource and not is_in_the_way) or is_gpu_busy else kind


def call_logged(function: Callable[..., Any], *args: Any, log: Path, settings: WorkerSettings) -> Any:
    """Call `function` as a well-behaved worker: all output goes to `log`, prints and the output of C code included, and
    it never outlives the parent process."""
    _become_worker()
    with open(log, "ab", buffering=0) as log_file:
        os.dup2(log_file.fileno(), 1)
        os.dup2(log_file.fileno(), 2)
    line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, format=line, stream=sys.stderr, force=True)
    if settings.device is not None:
        os.environ[DEVICES_VARIABLE] = settings.device
    try:
        for package in settings.packages:
            import_package(package)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(settings.num_threads)
        return function(*args)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(OSError):
            shorten_log(log)


def _become_worker() -> None:
    """Become the root of a tree of processes, and end the tree on SIGTERM, when the parent dies, and at the very end of
    this process, after its result was sent. A run that outlived its parent would compete with the resumed one."""
    become_root()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: end_this_tree())
    util.Finalize(None, end_this_tree, exitpriority=LAST_EXIT_PRIORITY)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with_parent, args=(parent.sentinel,), daemon=True).start()
    # For AllenNLP's data workers. A fork that is ended at once would else end this tree, with the handler above.
    block, unblock = (partial(signal.pthread_sigmask, how, {signal.SIGTERM}) for how in (SIG_BLOCK, SIG_UNBLOCK))
    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=_set_up_forked_child)


def _set_up_forked_child() -> None:
    """Die with the parent process, but by a signal alone: AllenNLP terminates data workers, and the run goes on."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    signal.pthread_sigmask(SIG_UNBLOCK, {signal.SIGTERM})


def _end_with_parent(sentinel: int) -> None:
    connection.wait([sentinel])
    end_this_tree()
