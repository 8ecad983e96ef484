"""Loads what every fresh worker process needs: the fork server imports this file once, before its first fork."""

import atexit
import gc
import os
import signal
import threading
from importlib import import_module

from fiesta_allennlp.isolation.fork_server import (
    PRELOAD,
    SECONDS_BETWEEN_LOOKS,
    delete_of_lost_parent,
    forget_safe_path,
    has_lost_parent,
)

SERVER = os.getpid()


def end_with_parent(loaded: threading.Event) -> None:
    """End this process when its parent ends. Once all is loaded, `multiprocessing` does so itself."""
    while not loaded.wait(SECONDS_BETWEEN_LOOKS):
        if has_lost_parent():
            delete_of_lost_parent()
            os._exit(1)


@atexit.register
def _leave_nothing() -> None:
    if os.getpid() == SERVER:  # the workers are forks, which run this too
        delete_of_lost_parent()


signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in a terminal is for the parent, which ends the workers itself
loaded = threading.Event()
watch = threading.Thread(target=end_with_parent, args=(loaded,), daemon=True)
watch.start()
forget_safe_path()
for module in os.environ.get(PRELOAD, "").split():
    import_module(module)
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
loaded.set()
watch.join()  # a process is forked with one thread
