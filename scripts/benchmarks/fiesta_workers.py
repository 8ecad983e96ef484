"""Processes of `fiesta worker` on this machine that can be killed and replaced. A part of `random_kills.py`."""

import os
import random
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, List

import psutil

MARK = "FIESTA_KILLED"
"""The variable of all processes of a selection that is killed."""
NUM_WORKERS = 2
SECONDS_BETWEEN_LOOKS = 0.2
MOST_LATE = 5.0
"""Seconds, at most, after which a new worker joins."""


class Workers:
    """Workers for each selection below `root` that waits for some. A new one joins a while after another has ended."""

    options = ()

    def __init__(self, root: Path) -> None:
        self._root = root
        self._started: "List[subprocess.Popen[bytes]]" = []

    def join(self, is_over: threading.Event) -> None:
        """Start workers until it is over."""
        while not is_over.wait(SECONDS_BETWEEN_LOOKS):
            queues = list(self._root.glob(f"killed-{os.getpid()}-*/queue/fiesta-*/waiting"))
            if queues and len(self.working()) < NUM_WORKERS:
                directory = str(queues[0].parents[2])
                command = [sys.executable, "-m", "fiesta_allennlp", "worker", directory]
                with (self._root / "workers.txt").open("a") as out:
                    own = {**os.environ, MARK: directory}
                    self._started.append(subprocess.Popen(command, stdout=out, stderr=out, env=own))
                is_over.wait(random.uniform(0, MOST_LATE))

    def working(self) -> List[psutil.Process]:
        """The workers themselves."""
        return [psutil.Process(worker.pid) for worker in self._started if worker.poll() is None]

    def processes(self) -> List[psutil.Process]:
        """All that runs below workers."""
        found = []
        for worker in self.working():
            with suppress(psutil.NoSuchProcess):
                found += worker.children(recursive=True)
        return found

    def kill_one(self) -> None:
        """Kill a worker and everything below it at once, as when its machine loses its power."""
        worker = random.choice(self.working())
        for process in (worker, *worker.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def fiesta_workers(root: Path) -> Iterator[Workers]:
    workers, is_over = Workers(root), threading.Event()
    thread = threading.Thread(target=workers.join, args=(is_over,))
    thread.start()
    try:
        yield workers
    finally:
        is_over.set()
        thread.join()
        for process in workers.working():
            process.kill()
