"""Makes runs in jobs of Slurm, by its own commands: `sbatch`, `squeue`, `scancel`, and `sacct` where it answers."""

import logging
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Collection, Dict, List, Mapping, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, describe
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import Evaluation, Failure
from fiesta_allennlp.running.executor import Executor
from fiesta_allennlp.running.fork_server import SAFE_PATH_VALUE, SAFE_PATH_VARIABLE
from fiesta_allennlp.running.jobs import Attempt, JobExecutor, JobStatus

logger = logging.getLogger(__name__)

COMMAND_TIMEOUT_SECONDS = 60.0  # of one command: Slurm takes its time when it has much to do
FIRST_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS = 2.0, 30.0  # between two questions: Slurm serves a whole cluster
LOOK_SECONDS = 1.0  # between two looks for the outcomes of runs, which cost Slurm nothing

OPEN_STATES = (
    *("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"),
    *("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT", "COMPLETING"),
)
"""The states of jobs that have not ended. A job is completing while its processes are being ended."""

OWN_OPTIONS = (
    *("array", "chdir", "error", "no-requeue", "open-mode", "output", "parsable", "requeue"),
    *("test-only", "wrap"),
)
"""The options of `sbatch` that the selection gives itself."""

GPU_OPTIONS = ("gpus", "gres", "tres")  # begin those that ask for GPUs


class SlurmUnavailable(Exception):
    """Raised with Slurm's own words if it gives no answer, or refuses."""


def run_slurm_command(*command: str) -> str:
    """Return the output of a command of Slurm. Raise `SlurmUnavailable` if it fails, is missing, or takes too long.

    In a job, it does not see the variables of that job, which a job that it submits would take for its own.
    """
    is_in_job = "SLURM_JOB_ID" in os.environ
    left_out = {name for name in os.environ if is_in_job and name.startswith("SLURM_")} - {"SLURM_CONF"}
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    options: Dict[str, Any] = {"timeout": COMMAND_TIMEOUT_SECONDS, "stdin": subprocess.DEVNULL, "env": variables}
    try:
        process = subprocess.run(command, capture_output=True, text=True, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmUnavailable(describe(error)) from error
    if process.returncode:
        lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
        raise SlurmUnavailable("; ".join(dict.fromkeys(lines)) or f"{command[0]} failed")
    return process.stdout


def query_jobs() -> Dict[str, JobStatus]:
    """Return all jobs of this user that Slurm remembers, by number. It forgets jobs minutes after their end."""
    lines = run_slurm_command("squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%N|%r").splitlines()
    rows = [line.split("|", 3) for line in lines]
    return {job: JobStatus(state, host, reason.strip()) for job, state, host, reason in rows}


def query_past_job(job: str) -> JobStatus:
    """Return the status of a job that the scheduler has forgotten; on a cluster without accounting, it has no state."""
    with suppress(SlurmUnavailable):
        options = ("--noheader", "--allocations", "--parsable2", "--format=State,NodeList", f"--jobs={job}")
        state, _, host = run_slurm_command("sacct", *options).partition("\n")[0].partition("|")
        return JobStatus((state.split() or [""])[0], host.strip())
    return JobStatus()


def cancel_jobs(jobs: Collection[str]) -> None:
    """Cancel these jobs. Those that have ended do no harm."""
    if jobs:
        logger.info("cancel Slurm jobs %s", " ".join(jobs))
        try:
            run_slurm_command("scancel", "--quiet", *jobs)
        except SlurmUnavailable as error:
            logger.warning("Slurm does not respond (%s). Cancel its jobs later: scancel %s", error, " ".join(jobs))


def end_left_jobs(directory: RunDirectory) -> None:
    """Cancel the jobs that earlier sessions left, move the directories of runs that have finished to where others look
    for them, and delete the folders."""
    attempts = [attempt for attempts in Attempt.find_all(directory.jobs).values() for attempt in attempts]
    cancel_jobs([job for attempt in attempts if (job := attempt.job) and job.isdigit()])
    for attempt in attempts:
        if isinstance(attempt.read_outcome(), Evaluation):
            attempt.move_run(directory.evaluation(attempt.run_name))
    delete(directory.jobs)


@Executor.register("slurm")
class SlurmExecutor(JobExecutor):
    """Makes each run in a Slurm job of its own, on a file system that this machine and the nodes share.

    A run is lost if its job was preempted or cancelled, reached its time limit or lost its node. It starts again with
    the same seeds. Jobs are not requeued, because a job that begins again would work in the first attempt's folder.

    Args:
        directory: the run directory, on the shared file system.
        options: options of `sbatch` by their long names, such as `partition`, `gres` or `time`; an empty text for an
            option without a value. `cpus-per-task` is the number of threads of a run too. Without an option for GPUs,
            no run sees one.
        common: arguments of `QueueingExecutor`. `workers` is a number, and also the largest number of jobs.

    Raises:
        ConfigError: if Slurm is not installed, or would not accept such a job.
    """

    def __init__(self, directory: RunDirectory, *, options: Optional[Mapping[str, str]] = None, **common: Any) -> None:
        options = dict(options or {})
        self._flags = [f"--{key}={value}" if value else f"--{key}" for key, value in options.items()]
        _check_options(options, self._flags)
        super().__init__(directory, num_threads=int(options.get("cpus-per-task", 1)), **common)
        if not isinstance(self.workers, int):
            raise ConfigError("--workers auto cannot be combined with --executor slurm. Specify a number.")
        self.slots = self.workers
        self.hides_gpus = not any(key.startswith(GPU_OPTIONS) for key in options)
        self._statuses: Dict[Attempt, JobStatus] = {}
        self._interval = self._next_question_time = 0.0

    def describe(self) -> str:
        return " ".join([f"up to {self.slots} at a time, each in a Slurm job", *self._flags])

    def send(self, attempt: Attempt) -> None:
        """Submit the job. If Slurm does not accept it now, the executor tries again before each question."""
        program = "fiesta_allennlp.running.jobs"
        command = shlex.join([sys.executable, "-m", program, str(attempt.directory.absolute())])
        wrapped = f"{SAFE_PATH_VARIABLE}={SAFE_PATH_VALUE} exec {command}"
        own_flags = ("--parsable", "--no-requeue", "--open-mode=append", f"--output={attempt.log.absolute()}")
        name = () if any(flag.startswith("--job-name") for flag in self._flags) else (f"--job-name={attempt.run_name}",)
        try:
            answer = run_slurm_command("sbatch", *own_flags, *name, *self._flags, f"--wrap={wrapped}")
        except SlurmUnavailable as error:
            logger.warning("Slurm is not accepting jobs; trying again: %s", error)
            return
        attempt.hand_to(answer.strip().partition(";")[0])
        self._interval = FIRST_INTERVAL_SECONDS
        self._next_question_time = min(self._next_question_time, time.monotonic() + self._interval)

    def wait_for_run(self, timeout: Optional[float]) -> Optional[Attempt]:
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            if time.monotonic() >= self._next_question_time:
                self._ask()
            ended = next(filter(self._has_ended, self.active_runs), None)
            if ended is not None or time.monotonic() >= deadline:
                return ended
            time.sleep(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))

    def _has_ended(self, attempt: Attempt) -> bool:
        """Return whether the run has an outcome, or its job has ended. Of a process that was killed, the final state of
        the job tells more."""
        outcome = attempt.read_outcome()
        is_killed = isinstance(outcome, Failure) and outcome.kind == "killed"
        return (outcome is not None and not is_killed) or attempt in self._statuses

    def _ask(self) -> None:
        """Ask Slurm about all jobs at once, and note those that have ended. The next question comes after twice the
        time."""
        self._interval = min(MAX_INTERVAL_SECONDS, max(FIRST_INTERVAL_SECONDS, 2 * self._interval))
        self._next_question_time = time.monotonic() + self._interval
        for attempt in self.active_runs:
            if attempt.job is None:
                self.send(attempt)
        try:
            statuses = query_jobs()
        except SlurmUnavailable as error:
            logger.warning("Slurm does not respond; trying again: %s", error)
            return
        for attempt in self.active_runs:
            if (job := attempt.job) is not None:
                status = statuses.get(job) or query_past_job(job)
                if status.state not in OPEN_STATES:
                    self._statuses[attempt] = status
                    attempt.refresh()

    def final_status(self, attempt: Attempt) -> JobStatus:
        return self._statuses.pop(attempt, JobStatus())

    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        cancel_jobs([job for attempt in attempts if (job := attempt.job)])


def _check_options(options: Mapping[str, str], flags: List[str]) -> None:
    """Refuse options with which Slurm would take no job, in its own words."""
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise ConfigError(f"the command {program} is missing. Use a login node of the cluster.")
    if own := [key for key in options if key in OWN_OPTIONS]:
        raise ConfigError(f"--executor-option {own[0]}: the selection gives this option of sbatch itself. Remove it.")
    try:
        run_slurm_command("sbatch", "--test-only", *flags, "--wrap=true")
    except SlurmUnavailable as error:
        raise ConfigError(f"Slurm rejects jobs with {' '.join(flags) or 'no options'}: {error}") from error
