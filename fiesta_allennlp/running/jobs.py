"""Runs in jobs of a cluster. The command and a job share a folder, `jobs/RUN/ATTEMPT`, and nothing else.

A `JobExecutor` sends jobs, and says what follows from their ends. As a program, this file is a job of Slurm:

    python -m fiesta_allennlp.running.jobs ATTEMPT

Neither AllenNLP nor torch is imported here: the server of processes loads what the run needs. No class is registered
here, because each fresh process imports this file once more.
"""

import os
import shutil
import signal
import sys
import time
from abc import abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Literal, Optional, Sequence
from urllib.parse import unquote

from fiesta_allennlp.core.directory import LOG_FILE, RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, check_private, delete, last_line, read_json, write_json_file
from fiesta_allennlp.core.records import Failure, Origin, Outcome, Request, outcome_from_data
from fiesta_allennlp.core.registry import build_record, to_plain_data
from fiesta_allennlp.core.texts import file_name
from fiesta_allennlp.running.executor import ActiveRun, QueueingExecutor
from fiesta_allennlp.running.fork_server import start_fork_server, unset_safe_path
from fiesta_allennlp.running.machine import DEVICES_VARIABLE
from fiesta_allennlp.running.process_tree import SESSION, WORKER
from fiesta_allennlp.running.processes import end_all_workers, make_run
from fiesta_allennlp.running.worker import Evaluator, RunTask

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


# The command's side.

MAX_EARLY_ENDS, MAX_TIMEOUTS = 3, 2
"""The jobs in a row that may end before their run began, and the jobs of one run that may reach their time limit."""

TOO_LONG, TAKEN_AWAY = ("TIMEOUT", "DEADLINE"), ("CANCELLED", "PREEMPTED", "NODE_FAIL", "REVOKED")
"""The final states of jobs that reached their time limit, and of those that were taken away."""

Verdict = Literal["outcome", "machine", "again", "early", "timeout"]
"""What follows from the end of a job: its outcome counts as it says; it is a failure of the machine, so the run starts
again after a pause; the run starts again, as it was taken away; the same, but the job ended before the run began; or
the same, but only `MAX_TIMEOUTS` times."""


def verdict_on(state: str, has_begun: bool, outcome: Optional[Outcome]) -> Verdict:
    """Return what follows from the end of a job: its final state, empty if unknown, whether its run began, and the
    outcome that it left. That a job or its process died says nothing about a candidate, unless the engine says that
    the job completed: memory that ran out does not always say so."""
    is_killed = isinstance(outcome, Failure) and outcome.kind == "killed"
    if outcome is not None and (not is_killed or state == "COMPLETED"):
        return "outcome"
    if state in TOO_LONG:
        return "timeout"
    if state in TAKEN_AWAY or (not state and not is_killed):
        return "again"
    return "machine" if has_begun or is_killed else "early"


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, by Slurm's names, and empty if it is unknown; its node, and why it waits."""

    state: str = ""
    host: str = ""
    reason: str = ""


class JobExecutor(QueueingExecutor):
    """Makes each run in a job of its own, on a cluster whose nodes share the run directory with this machine.

    The folder of an attempt, which is the handle of its run, is all that is remembered. After a kill of the command
    `--recover` finds the jobs that go on, and the outcomes that arrived since. A run is judged by the outcome that it
    leaves. If there is none, its job was lost, which counts against no candidate: the run starts again.

    A subclass has the methods `send`, `wait_for_run`, `final_status` and `stop_jobs`.

    Args:
        directory: the run directory, on the shared file system.
        common: arguments of `QueueingExecutor`.

    Raises:
        StoreError: if others can write the run directory.
    """

    gives_devices = True

    jobs_go_on: bool = True
    """True if jobs outlive the command that sent them."""

    def __init__(self, directory: RunDirectory, **common: Any) -> None:
        super().__init__(directory, **common)
        if directory.root.exists():
            check_private(directory.root)
        self._earlier_attempts = Attempt.find_all(directory.jobs)  # those that no run has taken over
        self._num_early, self._num_timeouts = 0, Counter[Request]()

    @abstractmethod
    def send(self, attempt: Attempt) -> None:
        """Start the job of an attempt, and hand it the task."""

    @abstractmethod
    def final_status(self, attempt: Attempt) -> JobStatus:
        """Return how the job of an attempt ended, which `wait_for_run` returned."""

    @abstractmethod
    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        """Stop the jobs of these attempts without waiting for their end."""

    def queued_runs(self) -> Collection[str]:
        return {attempt.run_name for attempt in self.active_runs if not attempt.has_begun}

    def start_run(self, evaluator: Evaluator, request: Request) -> Attempt:
        attempt = Attempt.begin(self.directory.jobs, self.task_for(evaluator, request, self.directory.jobs))
        self.send(attempt)
        return attempt

    def find_run(self, evaluator: Evaluator, request: Request) -> Optional[Attempt]:
        task = task_content(self.task_for(evaluator, request, self.directory.jobs))
        for attempt in reversed(self._earlier_attempts.get(request.name, [])):
            is_same = attempt.job is not None and attempt.task_data(attempt.job) == task
            if is_same and (self.jobs_go_on or attempt.read_outcome() is not None):
                self._earlier_attempts[request.name].remove(attempt)
                return attempt
        return None

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        """Stop the jobs of earlier sessions that nobody has asked for: whoever waits has asked for all that is wanted.
        Then wait."""
        earlier_attempts, self._earlier_attempts = self._earlier_attempts, {}
        self.stop_runs([attempt for attempts in earlier_attempts.values() for attempt in attempts])
        yield from super().completed(timeout=timeout)

    def stop_runs(self, attempts: Collection[Attempt]) -> None:
        self.stop_jobs(attempts)
        for attempt in attempts:
            attempt.discard()

    def abandon(self, requests: Sequence[Request]) -> None:
        self.stop_runs([attempt for request in requests for attempt in self._earlier_attempts.pop(request.name, [])])
        super().abandon(requests)

    def close(self) -> None:
        """Stop all jobs, but leave the outcomes that arrived meanwhile to the next session."""
        runs = self.active_runs.items()
        self.active_runs = {attempt: run for attempt, run in runs if attempt.read_outcome() is None}
        super().close()

    def read_outcome(self, attempt: Attempt, run: ActiveRun) -> Optional[Outcome]:
        status = self.final_status(attempt)
        outcome = attempt.read_outcome()
        verdict = verdict_on(status.state, attempt.has_begun, outcome)
        end = f"its job {attempt.job} ended with state {status.state or 'unknown'}"
        reason = last_line(attempt.log) or status.reason
        self._num_early = self._num_early + 1 if verdict == "early" else 0
        self._num_timeouts[run.request] += verdict == "timeout"
        if self._num_early >= MAX_EARLY_ENDS:
            host = f" on {status.host}" if status.host else ""
            raise FiestaError(
                f"{MAX_EARLY_ENDS} jobs in a row ended before their run began, the last one{host} with state "
                f"{status.state or 'unknown'}: {reason}. Nodes need the Python environment and the file system of this "
                f"machine. Log: {attempt.log}. Leave a broken node out (Slurm: --executor-option exclude="
                f"{status.host or 'NODE'}), and continue with --recover."
            )
        if self._num_timeouts[run.request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{run.request.name} reached the time limit of {MAX_TIMEOUTS} jobs. Continue with --recover and a "
                "longer --executor-option time=..., or a shorter --time-limit, so that it counts as a failure."
            )
        if verdict == "machine":
            origin = Origin(host=status.host, job=attempt.job or "", is_only_machine=False)
            outcome = replace(run, origin=origin).failure("machine", f"{end}: {reason}")
        elif verdict != "outcome":
            outcome = None if verdict == "early" else self.retry_lost(run, end)
        if outcome is not None:
            attempt.move_run(self.directory.evaluation(run.request.name))
        return outcome


# The side of the job.


def run_in_job(attempt: Attempt, job: str) -> None:
    """Make the run of an attempt in this job, and leave its outcome. The run works in a fresh process, which ends with
    all that it has started. Of a process that was killed, the counter of the job's control group tells whether memory
    was the cause: where only one process is killed, the engine may say that the job completed."""
    task = build_record(RunTask, {**attempt.task_data(job), "directory": attempt.run_directory})
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
