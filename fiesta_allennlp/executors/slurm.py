"""Makes runs in Slurm jobs, which are found again by their common name."""

import logging
import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional, Set, Tuple, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, join_some
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Failure, Request
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.queueing import ActiveRun, no_machine_left_error
from fiesta_allennlp.executors.shared_queue import SharedQueueExecutor, end_queue
from fiesta_allennlp.executors.slurm_commands import (
    ENDING_STATE,
    JobStatus,
    SlurmUnavailable,
    check_sbatch_options,
    check_whole_number,
    query_past_status,
    query_statuses,
    refusal_of_jobs,
    requests_gpus,
    run_slurm_command,
    sbatch_flags,
    sbatch_options,
)
from fiesta_allennlp.isolation.fork_server import SAFE_PATH_VALUE, SAFE_PATH_VARIABLE, environment_variables
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue

logger = logging.getLogger(__name__)

QUERY_INTERVAL_SECONDS = 10.0
"""Spares Slurm, which serves a whole cluster."""

MAX_EARLY_FAILURES = 3
"""Limits the jobs in a row that may fail before they have taken a run."""

MAX_LOG_LINES = 20
OUT_OF_MEMORY_PATTERN = re.compile("exceeded (job |step )?memory limit|oom.?kill", re.IGNORECASE)
"""Matches what Slurm writes into the log of a job that used more memory than it has."""

FAULTLESS_STATES = ("CANCELLED", "COMPLETED", "PREEMPTED", "NODE_FAIL")
"""Lists the ends of a job that has not taken a run, without anything being wrong with it."""


class NoNodeLeft(Exception):
    """Raised if Slurm accepts no job because of the nodes that are excluded as broken."""


@dataclass(frozen=True)
class LostRun:
    """The job that had a lost run, if that is known, with its status."""

    claim: Optional[Claim]
    status: JobStatus

    @property
    def job(self) -> str:
        return "?" if self.claim is None else self.claim.job


class SlurmJobs:
    """Keeps as many jobs as there are runs to take from the queue, and finds the runs whose job is gone. The jobs have
    the name of the queue. `has_failed_jobs` says whether a job failed, so that its log may be useful."""

    def __init__(self, queue: RunQueue, options: Mapping[str, Any], *, runs_per_job: int, array_size: int) -> None:
        self._queue, self._options, self._runs_per_job, self._array_size = queue, options, runs_per_job, array_size
        self._statuses: Dict[str, JobStatus] = {}
        self._num_taken: Dict[Tuple[str, int], int] = {}
        self._unused_jobs: Set[str] = set()
        self._failed_early: Set[str] = set()
        self._last_query_time = self._last_refusal_time = float("-inf")
        self._has_statuses = False
        self.has_failed_jobs = False

    def record_claims(self, claims: Collection[Claim]) -> None:
        """Record that these runs have been taken."""
        for claim in claims:
            job_life = claim.job, claim.restart_count
            if claim.number >= self._num_taken.get(job_life, 0):
                self._num_taken[job_life] = claim.number + 1
                self._failed_early.clear()

    def find_lost(self, tickets: Collection[str], claims: Collection[Claim]) -> Dict[str, LostRun]:
        """Return the tickets in `tickets` that no job has any more, with the jobs that had them. Raise a `FiestaError`
        if jobs repeatedly fail before they take a run.

        Slurm is asked only from time to time; in between nothing is found. A run that a job has taken after `claims`
        was read may not have begun when Slurm was asked.
        """
        if not self._update_statuses():
            return {}

        def is_gone(claim: Claim) -> bool:
            return self._status(claim.job).has_lost(claim.restart_count)

        lost = self._queue.find_lost(tickets, claims, is_gone).items()
        return {ticket: LostRun(claim, self._status(claim.job) if claim else JobStatus("")) for ticket, claim in lost}

    def last_line(self, job: str) -> str:
        """Return the last line that a job, or Slurm in its name, wrote."""
        return next(reversed(self._last_lines(job)), "no output")

    def ran_out_of_memory(self, lost_run: LostRun) -> bool:
        """Return whether Slurm or the kernel ended the job for lack of memory. If Slurm itself watches the memory, only
        the log tells, because the state is that of any killed job."""
        is_in_log = any(OUT_OF_MEMORY_PATTERN.search(line) for line in self._last_lines(lost_run.job))
        return lost_run.status.state == "OUT_OF_MEMORY" or is_in_log

    def submit_missing(self, *, broken: Collection[str] = (), avoided: Collection[str] = ()) -> None:
        """Submit jobs until every waiting run has a job that has no other run: not for `broken` nodes, and if possible
        not for `avoided` ones."""
        busy_jobs = {claim.job for claim in self._queue.taken_claims().values()}  # later claims are counted twice
        num_waiting = len(self._queue.waiting_tickets())
        free_jobs = [job for job in self._statuses if job not in busy_jobs and self._has_room(job, self._statuses[job])]
        num_missing = num_waiting - len(free_jobs)
        if not self._has_statuses or time.monotonic() - self._last_refusal_time < QUERY_INTERVAL_SECONDS:
            return
        while num_missing > 0:
            try:
                new_jobs = self._submit(min(num_missing, self._array_size), excluded={*broken, *avoided})
            except SlurmUnavailable as error:
                if avoided:
                    avoided = ()
                    continue
                if broken and not refusal_of_jobs(self._options):
                    raise NoNodeLeft from error
                logger.warning("Slurm is not accepting jobs; trying again: %s", error)
                self._last_refusal_time = time.monotonic()
                return
            logger.info("submit Slurm job(s) %s", join_some(new_jobs))
            self._unused_jobs.update(new_jobs)
            self._statuses.update(dict.fromkeys(new_jobs, JobStatus("PENDING")))
            num_missing -= len(new_jobs)

    def _update_statuses(self) -> bool:
        """Ask Slurm about the jobs, unless that was done just now. Return whether there is an answer."""
        if time.monotonic() - self._last_query_time < QUERY_INTERVAL_SECONDS:
            return False
        self._last_query_time = time.monotonic()
        try:
            self._statuses = query_statuses(self._queue.root.name)
        except SlurmUnavailable as error:
            logger.warning("Slurm does not respond; trying again: %s", error)
            return False
        self._has_statuses = True
        end_states = {job: status.state for job, status in self._statuses.items() if not status.is_active}
        failed_jobs = {job for job, state in end_states.items() if state not in FAULTLESS_STATES}
        self.has_failed_jobs |= bool(failed_jobs)
        self._check_early_failures(failed_jobs)
        return True

    def _check_early_failures(self, failed_jobs: Set[str]) -> None:
        self._unused_jobs -= {job for job, _ in self._num_taken}
        self._failed_early |= self._unused_jobs & failed_jobs
        self._unused_jobs -= self._failed_early
        if len(self._failed_early) >= MAX_EARLY_FAILURES:
            job = max(self._failed_early, key=_job_numbers)
            raise FiestaError(
                f"{len(self._failed_early)} Slurm jobs exited before starting a run, {job} with state "
                f"{self._status(job).state}: {self.last_line(job)}. See its log {self._log(job)}: nodes need the "
                "Python environment and the file system of this machine. Then continue with --recover."
            )

    def _status(self, job: str) -> JobStatus:
        return self._statuses.get(job) or query_past_status(job)

    def _last_lines(self, job: str) -> List[str]:
        with suppress(OSError):
            lines = self._log(job).read_text(errors="replace").splitlines()
            return [line.strip() for line in lines if line.strip()][-MAX_LOG_LINES:]
        return []

    def _has_room(self, job: str, status: JobStatus) -> bool:
        num_taken = self._num_taken.get((job, status.restart_count), 0)
        return status.is_active and status.state != ENDING_STATE and num_taken < self._runs_per_job

    def _submit(self, num_jobs: int, *, excluded: Collection[str]) -> List[str]:
        """Submit a job, or an array of several, and return the numbers as `squeue --array` prints them. They do not go
        to nodes that are `excluded`, here or by the user."""
        all_excluded = [*filter(None, [self._options.get("exclude")]), *sorted(excluded)]
        array = {"array": f"0-{num_jobs - 1}"} if num_jobs > 1 else {}
        command = [sys.executable, "-m", "fiesta_allennlp.isolation.queue_worker", str(self._queue.root)]
        options = {
            "job-name": self._queue.root.name,
            "output": self._log("%A_%a" if array else "%j"),
            "open-mode": "append",
            **array,
            **self._options,
            **({"exclude": ",".join(all_excluded)} if all_excluded else {}),
            "wrap": shlex.join(command),
        }
        variables = {**dict.fromkeys(_own_job_variables()), SAFE_PATH_VARIABLE: SAFE_PATH_VALUE}
        with environment_variables(variables):
            job = run_slurm_command("sbatch", "--parsable", *sbatch_flags(options)).strip().partition(";")[0]
        return [f"{job}_{index}" for index in range(num_jobs)] if array else [job]

    def _log(self, job: str) -> Path:
        return self._queue.jobs_directory / f"{job}.log"


def check_slurm_programs() -> None:
    for program in ("sbatch", "squeue", "scancel"):
        if shutil.which(program) is None:
            raise ConfigError(f"the command {program} is missing. Use a login node of the cluster.")


def _job_numbers(job: str) -> List[int]:
    """Return the number of a job, and its number within an array: later ones are larger."""
    return [int(digits) for digits in job.split("_")]


def _own_job_variables() -> List[str]:
    """Return the variables of a job that this process runs in: the jobs that it submits would take them for theirs."""
    is_inside = "SLURM_JOB_ID" in os.environ
    return [name for name in os.environ if is_inside and name.startswith("SLURM_") and name != "SLURM_CONF"]


MAX_TIMEOUTS = 2
"""Limits the jobs that reach their time limit under the first of their runs, always the same."""


@Executor.register("slurm")
class SlurmExecutor(SharedQueueExecutor):
    """Makes runs in Slurm jobs, on a file system that this machine and the nodes share.

    `--recover` finds all jobs by their common name, whether or not they have started.

    A run is lost if its job was preempted, requeued or cancelled, reached its time limit or lost its node. If the run's
    own process dies, or its job fails under it, that is a failure, as with every executor. If a run's memory ran out,
    the executor tries it again after a pause.

    Args:
        directory: the run directory, on the shared file system.
        runs_per_job: number of runs that a job makes, one after the other.
        array_size: largest number of jobs that are submitted as one job array.
        partition, account: as for `sbatch`; None for the cluster's defaults.
        job_time: time limit of a job, as `sbatch --time` takes it; None for the partition's.
        cpus_per_evaluation: CPUs of each job; None for as many as threads.
        gpus_per_evaluation: GPUs of each job. 0 hides all, unless `slurm` asks for some.
        memory_per_evaluation: memory of each job in GiB; None for the cluster's default.
        slurm: further options of `sbatch`, as `key=value` or as an object.
        common: arguments of `QueueingExecutor`. `workers` is a number, and also the largest number of jobs.

    Raises:
        ConfigError: if Slurm is not installed, a number is out of range, or Slurm would not accept such a
            job.
    """

    gives_devices = True

    def __init__(
        self,
        directory: RunDirectory,
        *,
        runs_per_job: int = 1,
        array_size: int = 1,
        partition: Optional[str] = None,
        account: Optional[str] = None,
        job_time: Optional[str] = None,
        cpus_per_evaluation: Optional[float] = None,
        gpus_per_evaluation: float = 0.0,
        memory_per_evaluation: Optional[float] = None,
        slurm: Any = (),
        **common: Any,
    ) -> None:
        super().__init__(directory, **common)
        self.queue_directory = directory.slurm
        if not isinstance(self.workers, int):
            raise ConfigError("--workers auto cannot be combined with --executor slurm. Specify a number.")
        self.slots = self.workers
        self._runs_per_job = check_whole_number("runs-per-job", runs_per_job)
        self._array_size = check_whole_number("array-size", array_size)
        self._options = sbatch_options(
            {"partition": partition, "account": account, "time": job_time},
            cpus=self.num_threads if cpus_per_evaluation is None else cpus_per_evaluation,
            gpus=gpus_per_evaluation,
            memory=memory_per_evaluation,
            extra_options=slurm,
        )
        self.hides_gpus = not requests_gpus(self._options)
        check_slurm_programs()
        check_sbatch_options(self._options)
        self._num_timeouts: Counter[Request] = Counter()

    def describe(self) -> str:
        jobs = f"Slurm jobs of {self._runs_per_job} run(s) each"
        return f"up to {self.slots} at a time in {jobs}, submitted with {' '.join(sbatch_flags(self._options))}"

    def queue_terms(self) -> Dict[str, Any]:
        return {"options": self._options, "runs_per_job": self._runs_per_job}

    def open_jobs(self) -> str:
        self._jobs = SlurmJobs(self.queue, self._options, runs_per_job=self._runs_per_job, array_size=self._array_size)
        return ""

    def close_jobs(self, runs: Mapping[str, ActiveRun]) -> str:
        """Cancel all jobs, and wait briefly for those that work. Outcomes of ended runs are kept for the next
        session."""
        sentence = end_queue(self.queue, self.directory, keep_logs=self._jobs.has_failed_jobs)
        logger.info("%s", sentence or "no Slurm jobs are left")
        return sentence if runs else ""

    def find_lost_runs(self, taken: Collection[Claim], done: Collection[Claim]) -> Dict[str, Union[str, Failure]]:
        self._jobs.record_claims([*taken, *done])
        lost_runs = self._jobs.find_lost(self.active_runs, taken)
        failed_on = [self.machines.failed_on.get(run.start.request.key, ()) for run in self.active_runs.values()]
        broken = {machine.host for machine in self.machines.broken}
        avoided = {machine.host for machines in failed_on for machine in machines}
        try:
            self._jobs.submit_missing(broken=broken, avoided=avoided)
        except NoNodeLeft:
            raise no_machine_left_error(self.machines) from None
        return {ticket: self._explain_loss(self.active_runs[ticket], lost) for ticket, lost in lost_runs.items()}

    def _explain_loss(self, run: ActiveRun, lost_run: LostRun) -> Union[str, Failure]:
        """Return how a run was lost, or the failure that it is. Raise a `FiestaError` if the time limit of a job is too
        short for this run."""
        status, job_text = lost_run.status, f"Slurm job {lost_run.job} {lost_run.status.describe()}"
        origin = Origin(host=status.node, job=lost_run.job, is_only_machine=not status.node)
        start = replace(run.start, origin=origin)
        if not status.is_active and self._jobs.ran_out_of_memory(lost_run):
            last_line = self._jobs.last_line(lost_run.job)
            return start.failure("machine", f"{job_text}, because it ran out of memory: {last_line}")
        if status.state in ("FAILED", "COMPLETED"):
            return start.failure("killed", f"{job_text} during the run: {self._jobs.last_line(lost_run.job)}")
        if status.state == "TIMEOUT" and lost_run.claim is not None and lost_run.claim.number == 0:
            self._count_timeout(run.start.request)
        return job_text

    def _count_timeout(self, request: Request) -> None:
        self._num_timeouts[request] += 1
        if self._num_timeouts[request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{request.name} reached the time limit of {MAX_TIMEOUTS} Slurm jobs. Continue with --recover and a "
                "longer --job-time, or a shorter --time-limit, so that it counts as a failure."
            )
