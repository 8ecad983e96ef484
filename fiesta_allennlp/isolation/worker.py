"""Prepares a worker process, does the work in it, and ends what it leaves running."""

import errno
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass
from multiprocessing import connection, util
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Tuple

from fiesta_allennlp.errors import (
    DataChangedError,
    MetricError,
    ProgramError,
    ProgramKilledError,
    ReaderError,
    describe,
)
from fiesta_allennlp.files import not_through_links
from fiesta_allennlp.isolation.process_tree import become_root, die_with_parent, end_this_tree
from fiesta_allennlp.records import Failure, Outcome, Request
from fiesta_allennlp.registry import import_package

logger = logging.getLogger(__name__)

LAST = -1000

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ROOM = 2**18

CARD_IS_TAKEN = ("CUDA out of memory", "busy or unavailable", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""Lists messages of torch, in a `RuntimeError` or at the end of a program's output, where another process has the card
or its memory."""


@dataclass(frozen=True)
class WorkerSettings:
    """Sets up a worker.

    Attributes:
        num_threads: threads of torch.
        packages: packages to import first, so that what they register is there.
        device: the CUDA devices that the worker sees; None for all of the machine.
    """

    num_threads: int = 1
    packages: Tuple[str, ...] = ()
    device: Optional[str] = None


@dataclass(frozen=True)
class Work:
    """Describes one run for a fresh process.

    Attributes:
        evaluator: the pickled evaluator: only the fresh process need import what it needs.
        places: where this machine has the files that the evaluator names.
        directory: where the run writes its files.
        log: where its output goes.
        time_limit: seconds after which the run is killed; None for no limit.
    """

    evaluator: bytes
    places: Mapping[str, str]
    request: Request
    directory: Path
    log: Path
    settings: WorkerSettings
    time_limit: Optional[float]


def evaluate_here(work: Work) -> Outcome:
    """Make a run in this process, which is a fresh one. Whatever it raises, `SystemExit` included, becomes a `Failure`.

    When it ran and for how long is for the executor to say, which knows it of a process that died too.
    """
    try:
        reading = pickle.loads(work.evaluator).reading(work.places)
        return run_logged(reading.evaluate, work.request, work.directory, log=work.log, settings=work.settings)
    except BaseException as error:
        return Failure(work.request, kind=_kind(error, work.directory), error=describe(error))


def _kind(error: BaseException, directory: Path) -> str:
    """Return the kind of failure. What the machine lacks may be there the next time, so it gets kinds of its own; and a
    full disk fails all alike, whatever the library that was writing makes of it."""
    if isinstance(error, ReaderError) and error.__cause__ is not None:
        return _kind(error.__cause__, directory)
    if isinstance(error, DataChangedError):
        return "data"
    if not _has_room(directory.parent):
        return "disk"
    if isinstance(error, ProgramKilledError):
        return "killed"
    lacking = isinstance(error, (OSError, MemoryError)) or type(error).__name__ == "OutOfMemoryError"
    taken = isinstance(error, (RuntimeError, ProgramError)) and any(words in str(error) for words in CARD_IS_TAKEN)
    return "machine" if lacking or taken else "metric" if isinstance(error, MetricError) else "error"


def _has_room(directory: Path) -> bool:
    """Return whether the disk takes `ROOM` bytes more."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as probe:
            return probe.write(bytes(ROOM)) == ROOM
    except OSError as error:
        return error.errno not in NO_ROOM


def run_logged(work: Callable[..., Any], *args: Any, log: Path, settings: WorkerSettings) -> Any:
    """Call `work` as a well-behaved worker does: all output in `log`, never outliving the parent process."""
    _die_with_parent()
    _redirect_output(log)
    if settings.device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = settings.device
    try:
        for package in settings.packages:
            import_package(package)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(settings.num_threads)
        return work(*args)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _redirect_output(log: Path) -> None:
    """Send file descriptors 1 and 2 to the log: prints, logging, progress bars and what C code writes."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab", buffering=0, opener=not_through_links) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr, force=True
    )


def _die_with_parent() -> None:
    """Become the root of a tree of processes, and end all of it on SIGTERM, when the parent dies, however it dies, and
    as the last thing that this process does: its result has been sent by then.

    A training that outlived its parent would fight for the machine, and for its directory, with the resumed run.
    """
    become_root()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: end_this_tree())
    util.Finalize(None, end_this_tree, exitpriority=LAST)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()
    os.register_at_fork(after_in_child=die_with_parent)  # such as AllenNLP's data workers


def _watch(sentinel: int) -> None:
    connection.wait([sentinel])
    end_this_tree()
