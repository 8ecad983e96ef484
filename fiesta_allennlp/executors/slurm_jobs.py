"""The jobs of one selection: submitted by submitit, found again by the name that all of them have."""

import logging
import os
import re
import shutil
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Set, Tuple

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.executors.slurm_commands import (
    ENDS,
    JobStatus,
    SlurmDown,
    cancel,
    cancelled_in_words,
    last_status,
    statuses_of,
)
from fiesta_allennlp.isolation.slurm_job import JobWork, work_through
from fiesta_allennlp.isolation.slurm_queue import Claim, RunQueue

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_QUESTIONS = 10.0
"""To Slurm, which serves a whole cluster."""

MAX_VAIN_JOBS = 3
"""So many jobs in a row may fail before they have taken a run."""

LINES_TO_READ = 20
NO_MEMORY = re.compile("exceeded (job |step )?memory limit|oom.?kill", re.IGNORECASE)
"""What Slurm writes into the log of a job that used more memory than it has."""

NO_FAULT = ("CANCELLED", "COMPLETED", "PREEMPTED", "NODE_FAIL")
"""How a job may end before it has taken a run without anything being wrong with it."""


class SlurmJobs:
    """Keeps as many jobs as there are runs to take, and knows which of them go on.

    Args:
        queue: what the jobs take runs from; its name is theirs.
        work: what each job is for.
        options: options of `sbatch` by their long names; True for those without a value.
        array_size: how many jobs are submitted as one job array, at most.

    `had_trouble` says that a job failed, so that its log may be of use.
    """

    def __init__(self, queue: RunQueue, work: JobWork, options: Mapping[str, Any], *, array_size: int) -> None:
        self._queue, self._work, self._options, self._array_size = queue, work, dict(options), array_size
        self._submitit = import_submitit()
        self._statuses: Dict[str, JobStatus] = {}
        self._num_taken: Dict[Tuple[str, int], int] = {}
        self._submitted: Set[str] = set()
        self._vain: Set[str] = set()
        self._asked = self._refused = float("-inf")
        self._is_known = False
        self.had_trouble = False

    def note(self, claims: Iterable[Claim]) -> None:
        """These runs have been taken."""
        for claim in claims:
            life = claim.job, claim.life
            if claim.number >= self._num_taken.get(life, 0):
                self._num_taken[life] = claim.number + 1
                self._vain.clear()

    def ask(self) -> bool:
        """Ask Slurm what became of the jobs, if that was not done just now. Whether it was done and answered.

        Raises:
            FiestaError: where jobs fail again and again before they take a run.
        """
        if time.monotonic() - self._asked < SECONDS_BETWEEN_QUESTIONS:
            return False
        self._asked = time.monotonic()
        try:
            self._statuses = statuses_of(self._queue.name)
        except SlurmDown as error:
            logger.warning("Slurm gives no answer, and is asked again: %s", error)
            return False
        self._is_known = True
        ended = [status.state for status in self._statuses.values() if not status.goes_on]
        self.had_trouble |= any(state not in NO_FAULT for state in ended)
        self._check_vain()
        return True

    def status(self, job: str) -> JobStatus:
        return self._statuses.get(job) or last_status(job)

    def last_lines(self, job: str) -> List[str]:
        """What a job, or Slurm in its name, wrote last on its standard error."""
        with suppress(OSError):
            lines = (self._queue.jobs / f"{job}_0_log.err").read_text(errors="replace").splitlines()
            return [line.strip() for line in lines if line.strip()][-LINES_TO_READ:]
        return []

    def last_line(self, job: str) -> str:
        return next(reversed(self.last_lines(job)), "it wrote nothing")

    def ran_out_of_memory(self, job: str) -> bool:
        """Whether Slurm or the kernel ended the job for that. Where Slurm itself watches the memory, the state of the
        job is that of any job that was killed."""
        is_said = any(NO_MEMORY.search(line) for line in self.last_lines(job))
        return self.status(job).state == "OUT_OF_MEMORY" or is_said

    def call(self) -> None:
        """Submit as many jobs as it takes for every waiting run to be taken by one that has no other."""
        busy = {claim.job for claim in self._queue.taken()}  # read first: what is taken from now on is counted twice
        waiting = len(self._queue.waiting())
        room = sum(job not in busy and self._has_room(job, status) for job, status in self._statuses.items())
        if not self._is_known or time.monotonic() - self._refused < SECONDS_BETWEEN_QUESTIONS:
            return
        missing = waiting - room
        while missing > 0:
            try:
                made = self._submit(min(missing, self._array_size))
            except SlurmDown as error:
                logger.warning("Slurm does not take a job now, and is asked again: %s", error)
                self._refused = time.monotonic()
                return
            logger.info("submit Slurm job(s) %s", ", ".join(made))
            self._submitted.update(made)
            self._statuses.update(dict.fromkeys(made, JobStatus("PENDING")))
            missing -= len(made)

    def _has_room(self, job: str, status: JobStatus) -> bool:
        num_taken = self._num_taken.get((job, status.life), 0)
        return status.goes_on and status.state != ENDS and num_taken < self._work.num_runs

    def _submit(self, number: int) -> List[str]:
        made = self._submitit.SlurmExecutor(folder=self._queue.jobs)
        made.update_parameters(
            job_name=self._queue.name,
            time=None,
            wckey=None,
            signal_delay_s=1,
            use_srun=False,
            array_parallelism=number,
            additional_parameters=self._options,
        )
        with _outside_of_a_job(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return [str(job.job_id) for job in made.map_array(work_through, [self._work] * number)]
            except (RuntimeError, OSError) as error:
                raise SlurmDown(describe(error)) from error

    def _check_vain(self) -> None:
        """See `ask`."""
        useful = {job for job, _ in self._num_taken}
        for job in self._submitted - useful:
            status = self._statuses.get(job)
            if status is not None and not status.goes_on and status.state not in NO_FAULT:
                self._vain.add(job)
        self._submitted -= self._vain
        if len(self._vain) >= MAX_VAIN_JOBS:
            job = max(self._vain, key=_number)
            raise FiestaError(
                f"the last {len(self._vain)} Slurm jobs ended before they took a run, job {job} as "
                f"{self.status(job).state}: {self.last_line(job)}. Its log is "
                f"{self._queue.jobs}/{job}_0_log.err. The nodes need the same Python environment and the same file "
                "system as this machine. Nothing that finished is lost: correct this, then go on with --recover."
            )


def _number(job: str) -> List[int]:
    """The number of a job, and that within its array: later ones are larger."""
    return [int(part) for part in job.split("_")]


def import_submitit() -> Any:
    """
    Raises:
        ConfigError: where submitit or a command of Slurm is not installed here.
    """
    try:
        import submitit
    except ImportError as error:
        raise ConfigError(
            "--executor slurm needs submitit, which is not installed. Type: pip install fiesta-allennlp[slurm]"
        ) from error
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise ConfigError(
                f"--executor slurm needs the command {program}, which this machine does not have. Start the selection "
                "on a login node of the cluster."
            )
    return submitit


@contextmanager
def _outside_of_a_job() -> Iterator[None]:
    """Hide what Slurm told this process of a job that it runs in: the jobs that it submits would take it for theirs."""
    inside = "SLURM_JOB_ID" in os.environ
    told = [name for name in os.environ if inside and name.startswith("SLURM_") and name != "SLURM_CONF"]
    hidden = {name: os.environ.pop(name) for name in told}
    try:
        yield
    finally:
        os.environ.update(hidden)


# What a command that was killed left behind.


def queues_left(directory: RunDirectory) -> List[RunQueue]:
    return [queue for queue in map(RunQueue, sorted(directory.slurm.glob("fiesta-*"))) if queue.is_open]


def take_in(queue: RunQueue, directory: RunDirectory) -> None:
    """Move the runs that have ended to where others look for them."""
    for claim in queue.done().values():
        keep_run(queue, claim.ticket, directory.evaluation(claim.run))


def keep_run(queue: RunQueue, ticket: str, target: Path) -> None:
    """Move an attempt's directory in one step, so that a directory that is there is complete. Only once."""
    made = queue.directory(ticket)
    if made.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(made, target)


def delete(queue: RunQueue, directory: RunDirectory) -> None:
    """Delete all that is left of a queue, the logs of its jobs included."""
    shutil.rmtree(queue.root, ignore_errors=True)
    with suppress(OSError):
        directory.slurm.rmdir()


def end_jobs_left(directory: RunDirectory) -> str:
    """End the jobs of a selection that goes on without them, or not at all. Returns what that came to, in words."""
    said = []
    for queue in queues_left(directory):
        take_in(queue, directory)
        queue.close()
        try:
            said.append(cancelled_in_words(cancel(queue.name)))
        except SlurmDown as error:
            said.append(f"Jobs named {queue.name} may be left in Slurm ({error}). They end when they find no run.")
        delete(queue, directory)
    return " ".join(filter(None, said))
