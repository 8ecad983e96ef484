"""Loads what every fresh worker process needs: the fork server imports this file once, before its first fork."""

import atexit
import gc
import os
import shutil
import signal
import sys
import threading
from importlib import import_module
from typing import Any

from fiesta_allennlp.running.fork_server import PARENT_VARIABLE, PRELOAD_VARIABLE, SOCKETS_VARIABLE, unset_safe_path

POLL_SECONDS = 0.5
SERVER_PID = os.getpid()


def is_orphan() -> bool:
    """Return whether the process that started this fork server has ended."""
    return os.environ.get(PARENT_VARIABLE, str(os.getppid())) != str(os.getppid())


def delete_orphaned_directory() -> None:
    """Delete the directory of a parent process that has ended, and cannot do it itself."""
    if is_orphan() and SOCKETS_VARIABLE in os.environ:
        shutil.rmtree(os.environ[SOCKETS_VARIABLE], ignore_errors=True)


def end_with_parent(is_loaded: threading.Event) -> None:
    """End this process when its parent ends. Once all is loaded, `multiprocessing` does so itself."""
    while not is_loaded.wait(POLL_SECONDS):
        if is_orphan():
            delete_orphaned_directory()
            os._exit(1)


@atexit.register
def _delete_directory_at_exit() -> None:
    if os.getpid() == SERVER_PID:  # the workers are forks, which run this too
        delete_orphaned_directory()


def report_error(kind: Any, error: BaseException, trace: Any) -> None:
    """Print an error that no call has, but not that the command ended while it started a process."""
    if not isinstance(error, EOFError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = report_error
signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in a terminal is for the parent, which ends the workers itself
is_loaded = threading.Event()
parent_watcher = threading.Thread(target=end_with_parent, args=(is_loaded,), daemon=True)
parent_watcher.start()
unset_safe_path()
for module in os.environ.get(PRELOAD_VARIABLE, "").split():
    import_module(module)
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
is_loaded.set()
parent_watcher.join()  # a process is forked with one thread
