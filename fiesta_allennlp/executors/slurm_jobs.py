"""The jobs of one selection, submitted with submitit and found again by their common name."""

import logging
import os
import re
import shutil
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Optional, Set, Tuple

from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.executors.queueing import import_for
from fiesta_allennlp.executors.slurm_commands import ENDING_STATE, JobStatus, SlurmDown, last_status, statuses_of
from fiesta_allennlp.isolation.fork_server import environment_of
from fiesta_allennlp.isolation.queue_worker import QueueWork
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue
from fiesta_allennlp.isolation.slurm_job import run_job

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_QUESTIONS = 10.0
"""Spares Slurm, which serves a whole cluster."""

MAX_VAIN_JOBS = 3
"""Limits the jobs in a row that may fail before they have taken a run."""

LINES_TO_READ = 20
NO_MEMORY = re.compile("exceeded (job |step )?memory limit|oom.?kill", re.IGNORECASE)
"""Matches what Slurm writes into the log of a job that used more memory than it has."""

FAULTLESS_STATES = ("CANCELLED", "COMPLETED", "PREEMPTED", "NODE_FAIL")
"""Lists the ends of a job that has not taken a run, without anything being wrong with it."""


@dataclass(frozen=True)
class Loss:
    """The job that had a lost run, if that is known, with its status."""

    claim: Optional[Claim]
    status: JobStatus

    @property
    def job(self) -> str:
        return "?" if self.claim is None else self.claim.job


class SlurmJobs:
    """Keeps as many jobs as there are runs to take from the queue, and finds the runs whose job is gone. The jobs have
    the name of the queue. `had_trouble` says whether a job failed, so that its log may be useful."""

    def __init__(self, queue: RunQueue, work: QueueWork, options: Mapping[str, Any], *, array_size: int) -> None:
        self._queue, self._work, self._options, self._array_size = queue, work, dict(options), array_size
        self._submitit = import_submitit()
        self._statuses: Dict[str, JobStatus] = {}
        self._num_taken: Dict[Tuple[str, int], int] = {}
        self._submitted: Set[str] = set()
        self._vain: Set[str] = set()
        self._last_question = self._last_refusal = float("-inf")
        self._is_known = False
        self.had_trouble = False

    def note(self, claims: Collection[Claim]) -> None:
        """Record that these runs have been taken."""
        for claim in claims:
            life = claim.job, claim.life
            if claim.number >= self._num_taken.get(life, 0):
                self._num_taken[life] = claim.number + 1
                self._vain.clear()

    def lost(self, running: Collection[str], taken: Collection[Claim]) -> Dict[str, Loss]:
        """Return the tickets in `running` that no job has any more, with the jobs that had them. Raise a `FiestaError`
        if jobs repeatedly fail before they take a run.

        Slurm is asked only from time to time; in between nothing is found. A run that a job has taken after `taken` was
        read may not have begun when Slurm was asked.
        """
        if not self._ask():
            return {}
        lost = self._queue.lost(running, taken, lambda claim: self._status(claim.job).has_lost(claim.life))
        unknown = JobStatus("")
        return {t: Loss(claim, unknown if claim is None else self._status(claim.job)) for t, claim in lost.items()}

    def last_line(self, job: str) -> str:
        """Return the last line that a job, or Slurm in its name, wrote to its standard error."""
        return next(reversed(self._last_lines(job)), "no output")

    def ran_out_of_memory(self, loss: Loss) -> bool:
        """Return whether Slurm or the kernel ended the job for lack of memory. If Slurm itself watches the memory, only
        the log tells, because the state is that of any killed job."""
        is_said = any(NO_MEMORY.search(line) for line in self._last_lines(loss.job))
        return loss.status.state == "OUT_OF_MEMORY" or is_said

    def call(self) -> None:
        """Submit jobs until every waiting run has a job that has no other run."""
        busy = {claim.job for claim in self._queue.taken().values()}  # what is taken from now on is counted twice
        queued = len(self._queue.waiting())
        lacking = queued - sum(job not in busy and self._has_room(job, self._statuses[job]) for job in self._statuses)
        if not self._is_known or time.monotonic() - self._last_refusal < SECONDS_BETWEEN_QUESTIONS:
            return
        while lacking > 0:
            try:
                new_jobs = self._submit(min(lacking, self._array_size))
            except SlurmDown as error:
                logger.warning("Slurm accepts no jobs now; trying again: %s", error)
                self._last_refusal = time.monotonic()
                return
            logger.info("submit Slurm job(s) %s", ", ".join(new_jobs))
            self._submitted.update(new_jobs)
            self._statuses.update(dict.fromkeys(new_jobs, JobStatus("PENDING")))
            lacking -= len(new_jobs)

    def _ask(self) -> bool:
        """Ask Slurm about the jobs, unless that was done just now. Return whether there is an answer."""
        if time.monotonic() - self._last_question < SECONDS_BETWEEN_QUESTIONS:
            return False
        self._last_question = time.monotonic()
        try:
            self._statuses = statuses_of(self._queue.root.name)
        except SlurmDown as error:
            logger.warning("Slurm does not respond; trying again: %s", error)
            return False
        self._is_known = True
        end_states = {job: status.state for job, status in self._statuses.items() if not status.goes_on}
        failed_jobs = {job for job, state in end_states.items() if state not in FAULTLESS_STATES}
        self.had_trouble |= bool(failed_jobs)
        self._check_vain(failed_jobs)
        return True

    def _check_vain(self, failed_jobs: Set[str]) -> None:
        self._submitted -= {job for job, _ in self._num_taken}
        self._vain |= self._submitted & failed_jobs
        self._submitted -= self._vain
        if len(self._vain) >= MAX_VAIN_JOBS:
            job = max(self._vain, key=_job_order)
            raise FiestaError(
                f"the last {len(self._vain)} Slurm jobs exited before starting a run. The latest, {job}, ended with "
                f"state {self._status(job).state}: {self.last_line(job)}. See its log "
                f"{self._queue.jobs}/{job}_0_log.err. The nodes need the same Python environment and file system as "
                "this machine. Finished runs are safe. Fix this, then continue with --recover."
            )

    def _status(self, job: str) -> JobStatus:
        return self._statuses.get(job) or last_status(job)

    def _last_lines(self, job: str) -> List[str]:
        with suppress(OSError):
            lines = (self._queue.jobs / f"{job}_0_log.err").read_text(errors="replace").splitlines()
            return [line.strip() for line in lines if line.strip()][-LINES_TO_READ:]
        return []

    def _has_room(self, job: str, status: JobStatus) -> bool:
        num_taken = self._num_taken.get((job, status.life), 0)
        return status.goes_on and status.state != ENDING_STATE and num_taken < self._work.num_runs

    def _submit(self, num_jobs: int) -> List[str]:
        executor = self._submitit.SlurmExecutor(folder=self._queue.jobs)
        executor.update_parameters(
            job_name=self._queue.root.name,
            time=None,
            wckey=None,
            signal_delay_s=1,
            use_srun=False,
            array_parallelism=num_jobs,
            additional_parameters=self._options,
        )
        with environment_of(dict.fromkeys(_own_job_variables())), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return [str(job.job_id) for job in executor.map_array(run_job, [self._work] * num_jobs)]
            except (RuntimeError, OSError) as error:
                raise SlurmDown(describe(error)) from error


def import_submitit() -> Any:
    submitit = import_for("slurm", "submitit")
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise ConfigError(
                f"--executor slurm requires the command {program}, which is not available on this machine. Start the "
                "selection on a login node of the cluster."
            )
    return submitit


def _job_order(job: str) -> List[int]:
    """Return the number of a job, and its number within an array: later ones are larger."""
    return [int(digits) for digits in job.split("_")]


def _own_job_variables() -> List[str]:
    """Return the variables of a job that this process runs in: the jobs that it submits would take them for theirs."""
    is_inside = "SLURM_JOB_ID" in os.environ
    return [name for name in os.environ if is_inside and name.startswith("SLURM_") and name != "SLURM_CONF"]
