"""The folders of runs in jobs of a cluster, `jobs/RUN/ATTEMPT`, which the command and the job share; and such a run. As
a program, this file is a job of Slurm:

    python -m fiesta_allennlp.running.attempt ATTEMPT

Neither AllenNLP nor torch is imported here: the server of processes loads what the run needs. No class is registered
here, because each fresh process imports this file once more.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import unquote

from fiesta_allennlp.core.directory import LOG_FILE
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, delete, read_json, write_json_file
from fiesta_allennlp.core.names import file_name
from fiesta_allennlp.core.records import Failure, Outcome, outcome_from_data
from fiesta_allennlp.core.registry import build_record, to_plain_data
from fiesta_allennlp.running.fork_server import end_all_workers, start_fork_server, unset_safe_path
from fiesta_allennlp.running.machine import DEVICES_VARIABLE
from fiesta_allennlp.running.process_tree import SESSION, WORKER
from fiesta_allennlp.running.processes import make_run
from fiesta_allennlp.running.worker import RunTask

TASK_SECONDS = 60.0  # within which a job gets its task, unless its command died between the two
POLL_SECONDS = 0.2
SIGNAL_DELAY_SECONDS = 2.0  # an engine ends all processes of a job: the run's may be gone before this one gets a signal

OUT_OF_MEMORY_COUNTERS = {"": "/sys/fs/cgroup{}/memory.events", "memory": "/sys/fs/cgroup/memory{}/memory.oom_control"}
"""The files that count kills for lack of memory, by the controllers of their control groups."""

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
        return build_record(RunTask, {**self.task_data(job), "directory": self.run_directory})

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
    return {name: value for name, value in to_plain_data(task).items() if name != "directory"}


def run_in_job(attempt: Attempt, job: str) -> None:
    """Make the run of an attempt in this job, and leave its outcome. The run works in a fresh process, which ends with
    all that it has started. Of a process that was killed, the counter of the job's control group tells whether memory
    was the cause."""
    task = attempt.read_task(job)
    for name in (SESSION, WORKER):  # of the command, whose environment the engine passes on
        os.environ.pop(name, None)
    device = os.environ.get(DEVICES_VARIABLE) if task.settings.device is None else task.settings.device
    task = replace(task, settings=replace(task.settings, device=device))
    num_kills_before = num_out_of_memory_kills()
    outcome = make_run(task, start_fork_server(task.settings.num_threads, task.settings.packages))
    if isinstance(outcome, Failure) and outcome.kind == "killed":
        time.sleep(SIGNAL_DELAY_SECONDS)
        if num_out_of_memory_kills() > num_kills_before:
            outcome = replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    attempt.write_outcome(outcome)


def num_out_of_memory_kills() -> int:
    """Return how many processes of this job the kernel has killed for lack of memory; 0 if nobody counts.

    In version 2 of control groups all controllers have one place; in version 1 memory has its own.
    """
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            counter = Path(OUT_OF_MEMORY_COUNTERS.get(controllers, "").format(path))
            if counter.is_file():
                counts = dict(count.split() for count in counter.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
    return 0


def main() -> Optional[str]:
    """Wait for the task of this job of Slurm, and make its run. Return an error."""
    signal.signal(signal.SIGTERM, _end_job)
    unset_safe_path()
    attempt, job = Attempt(Path(sys.argv[1])), os.environ["SLURM_JOB_ID"]
    deadline = time.monotonic() + TASK_SECONDS
    while not attempt.has_task(job):
        if time.monotonic() > deadline:
            return "error: the command ended before it gave this job its run"
        time.sleep(POLL_SECONDS)
        attempt.refresh()
    run_in_job(attempt, job)
    return None


def _end_job(signum: int, frame: Any) -> None:
    """End the job at once with what it has started. Nothing is recorded for the run."""
    end_all_workers()
    os._exit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
