"""The folders of runs in jobs of a cluster: `jobs/RUN/ATTEMPT`, which the command and the job share."""

import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import unquote

from fiesta_allennlp.core.directory import LOG_FILE
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, delete, read_json, write_json_file
from fiesta_allennlp.core.names import file_name
from fiesta_allennlp.core.records import Outcome, Request, outcome_from_data
from fiesta_allennlp.running.isolation.worker import RunTask, WorkerSettings

UNSENT = "unsent"
"""Stands for the number of a job while there is none yet."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run, in a job of its own. The folder is all that is remembered of the job.

    It has the task, under the number of the job as its name; the directory `run`, where the run works; its outcome; and
    the log of the job. A new attempt has a new folder, so that a job that was given up but goes on, as on a node that
    lost its network, writes where nobody looks.
    """

    directory: Path

    @classmethod
    def begin(cls, jobs: Path, task: RunTask) -> "Attempt":
        """Make the folder of a new attempt below `jobs`, with the task of a job that has no number yet."""
        jobs.mkdir(mode=0o700, exist_ok=True)  # a job runs whatever the task says
        attempt = cls(jobs / file_name(task.request.name) / f"{time.time_ns():x}")
        attempt.run_directory.mkdir(mode=OWN_DIRECTORY_MODE, parents=True)
        write_json_file(attempt._task_file(UNSENT), task_content(task))
        return attempt

    @classmethod
    def find_all(cls, jobs: Path) -> Dict[str, List["Attempt"]]:
        """Return the attempts below `jobs` by the names of their runs, the latest one last."""
        attempts: Dict[str, List[Attempt]] = {}
        for path in sorted(jobs.glob("*/*")):
            attempts.setdefault(cls(path).run_name, []).append(cls(path))
        return attempts

    @property
    def run_name(self) -> str:
        return unquote(self.directory.parent.name)

    @property
    def run_directory(self) -> Path:
        return self.directory / "run"

    @property
    def log(self) -> Path:
        """The log of the job."""
        return self.directory / LOG_FILE

    @property
    def job(self) -> Optional[str]:
        """The number of the job; None if none was sent, as far as is known."""
        numbers = [path.stem for path in self.directory.glob("*.task")]
        return next((number for number in numbers if number != UNSENT), None)

    @property
    def has_begun(self) -> bool:
        return (self.run_directory / LOG_FILE).exists()

    def _task_file(self, job: str) -> Path:
        return self.directory / f"{job}.task"

    def hand_to(self, job: str) -> None:
        """Give the task to the job of this number, in one step."""
        os.rename(self._task_file(UNSENT), self._task_file(job))

    def has_task(self, job: str) -> bool:
        return self._task_file(job).exists()

    def task_data(self, job: str) -> Any:
        """Return the task as plain data."""
        return read_json(self._task_file(job))

    def read_task(self, job: str) -> RunTask:
        content = self.task_data(job)
        settings = {**content["settings"], "packages": tuple(content["settings"]["packages"])}
        request, time_limit = Request(**content["request"]), content["time_limit"]
        return RunTask(content["evaluator"], request, self.run_directory, WorkerSettings(**settings), time_limit)

    def write_outcome(self, outcome: Outcome) -> None:
        """Leave the outcome in one step. It is the last thing that a job does."""
        write_json_file(self.directory / "outcome.json", asdict(outcome), default=float)  # scalars of numpy

    def read_outcome(self) -> Optional[Outcome]:
        """Return the outcome; None if there is none yet."""
        with suppress(FileNotFoundError):
            return outcome_from_data(read_json(self.directory / "outcome.json"))
        return None

    def refresh(self) -> None:
        """Make a network file system show the newest files: a change drops what it remembers of a directory."""
        with suppress(OSError):
            os.utime(self.directory)

    def last_line(self) -> str:
        """Return the last line that the job, or the engine in its name, wrote; empty if there is none."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def discard(self) -> None:
        """Delete the folder as far as possible: its job may be writing yet."""
        shutil.rmtree(self.directory, ignore_errors=True)
        with suppress(OSError):
            self.directory.parent.rmdir()  # unless there are other attempts

    def move_run(self, target: Path) -> None:
        """Move the directory of the run in one step, so that an existing target is complete; delete what is left."""
        target.parent.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
        delete(target)
        with suppress(FileNotFoundError):
            os.replace(self.run_directory, target)
        delete(self.directory.parent)


def task_content(task: RunTask) -> Dict[str, Any]:
    """Return a task as plain data, apart from its place."""
    return {
        "evaluator": task.evaluator,
        "request": asdict(task.request),
        "settings": asdict(task.settings),
        "time_limit": task.time_limit,
    }
