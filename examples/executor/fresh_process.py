"""An executor of your own: each run is a fresh Python on this machine, which shares nothing with the command.

fiesta select a.jsonnet b.jsonnet --metric accuracy -s DIR --include-package fresh_process --executor fresh_process
"""

import json
import math
import os
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Collection, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Failure, Outcome, Request, outcome_from_data
from fiesta_allennlp.running.executor import ActiveRun, Evaluator, Executor, QueueingExecutor
from fiesta_allennlp.running.process_tree import SESSION, end_tree, name_session

RUN = """import dataclasses, json, pickle, sys
from pathlib import Path
from fiesta_allennlp.running import process_tree
from fiesta_allennlp.running import worker
process_tree.die_with_parent()
task = pickle.load(sys.stdin.buffer)
Path(sys.argv[1]).write_text(json.dumps(dataclasses.asdict(worker.evaluate_task(task))))
"""


@Executor.register("fresh_process")
class FreshProcessExecutor(QueueingExecutor):
    """Starts a program for each run, at most `workers` at a time, and reads the outcome that it leaves."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        self.slots = self.workers if isinstance(self.workers, int) else os.cpu_count() or 1

    def describe(self) -> str:
        return f"{self.slots} at a time, each in a fresh Python"

    def start_run(self, evaluator: Evaluator, request: Request) -> Any:
        (directory := self.directory.evaluation(request.name)).mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", RUN, directory / "returned.json"]
        variables = {**os.environ, SESSION: name_session()}  # by which `end_tree` finds what the run has started
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, start_new_session=True)
        process.stdin.write(pickle.dumps(self.task_for(evaluator, request, directory)))
        process.stdin.close()
        return process

    def wait_for_run(self, timeout: Optional[float]) -> Any:
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while (now := time.monotonic()) <= deadline:
            for process, run in self.active_runs.items():
                if process.poll() is not None or now > run.monotonic_start + (self.time_limit or math.inf):
                    return process
            time.sleep(0.02)
        return None

    def read_outcome(self, process: Any, run: ActiveRun) -> Outcome:
        is_late = process.poll() is None
        self.stop_runs([process])
        path = Path(process.args[-1])
        if is_late or not path.exists():
            reason = ("timeout", "ran too long") if is_late else ("killed", f"ended with status {process.returncode}")
            return run.failure(*reason)
        outcome = outcome_from_data(json.loads(path.read_text()))
        path.unlink()
        if isinstance(outcome, Failure):  # with its times, which the run does not know
            outcome = replace(run.failure(outcome.kind, outcome.error), origin=outcome.origin)
        return outcome

    def stop_runs(self, processes: Collection[Any]) -> None:
        for process in processes:
            end_tree(process.pid)
            process.wait()
