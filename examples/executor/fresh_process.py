"""An executor of your own: each run is a fresh Python on this machine, which shares nothing with the command.

fiesta select a.jsonnet b.jsonnet --metric accuracy -s DIR --include-package fresh_process --executor fresh_process
"""

import math
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Mapping, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.queueing import QueueingExecutor, Running
from fiesta_allennlp.isolation.fork_server import Begun
from fiesta_allennlp.isolation.process_tree import SESSION, end_tree, name_session
from fiesta_allennlp.records import Failure, Outcome, Request

RUN = """import pickle, sys
from pathlib import Path
from fiesta_allennlp.isolation import process_tree, worker
process_tree.die_with_parent()
work = pickle.load(sys.stdin.buffer)
Path(sys.argv[1]).write_bytes(pickle.dumps(worker.evaluate_here(work)))
"""


@Executor.register("fresh_process")
class FreshProcessExecutor(QueueingExecutor):
    """Starts a program for each run, at most `workers` at a time, and reads the outcome that it leaves."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        self.slots = self._workers if isinstance(self._workers, int) else os.cpu_count() or 1

    def describe(self) -> str:
        return f"{self.slots} at a time, each in a fresh Python"

    def _start(self, evaluator: Evaluator, request: Request) -> None:
        (directory := self._directory.evaluation(request.name)).mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", RUN, directory / "outcome.pickle"]
        variables = {**os.environ, SESSION: name_session()}  # by which `end_tree` finds what the run has started
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, start_new_session=True)
        process.stdin.write(pickle.dumps(self._work(evaluator, request, directory)))
        process.stdin.close()
        self._running[process] = Running(evaluator, Begun.now(request))

    def _wait(self, timeout: Optional[float]) -> Any:
        end = time.monotonic() + (math.inf if timeout is None else timeout)
        while (now := time.monotonic()) <= end:
            for process, running in self._running.items():
                if process.poll() is not None or now > running.begun.start + (self._time_limit or math.inf):
                    return process
            time.sleep(0.02)
        return None

    def _outcome(self, done: Any, running: Running) -> Outcome:
        late = done.poll() is None
        self._stop({done: running})
        path = Path(done.args[-1])
        if late or not path.exists():
            how = ("timeout", "ran too long") if late else ("killed", f"ended with status {done.returncode}")
            return self._with_log(running.begun.failed(*how))
        outcome = pickle.loads(path.read_bytes())
        path.unlink()
        if isinstance(outcome, Failure):  # with its times, which the run does not know
            outcome = running.begun.failed(outcome.kind, outcome.error)
        return self._with_log(outcome)

    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        for process in unwanted:
            end_tree(process.pid)
            process.wait()
