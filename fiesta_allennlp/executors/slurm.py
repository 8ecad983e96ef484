import logging
from collections import Counter
from typing import Any, Collection, Dict, Mapping, Optional, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.records import Failure, Request
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.queueing import Running
from fiesta_allennlp.executors.shared_queue import SharedQueueExecutor, end_queue
from fiesta_allennlp.executors.slurm_commands import as_flags, asks_for_gpus, check_options, job_options, whole_number
from fiesta_allennlp.executors.slurm_jobs import Loss, SlurmJobs, import_submitit
from fiesta_allennlp.isolation.queue_worker import QueueWork
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue

logger = logging.getLogger(__name__)

SECONDS_IDLE = 120.0
"""Ends a job to which no run has come for so long. A network file system may show a new file after a minute."""

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
        ConfigError: if submitit or Slurm is not installed, a number is out of range, or Slurm would not accept such a
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
        self._queue_directory = directory.slurm
        if not isinstance(self._workers, int):
            raise ConfigError("--workers auto cannot be combined with --executor slurm. Specify a number.")
        self.slots = self._workers
        self._runs_per_job = whole_number("runs-per-job", runs_per_job)
        self._array_size = whole_number("array-size", array_size)
        self._options = job_options(
            {"partition": partition, "account": account, "time": job_time},
            cpus=self._num_threads if cpus_per_evaluation is None else cpus_per_evaluation,
            gpus=gpus_per_evaluation,
            memory=memory_per_evaluation,
            further=slurm,
        )
        self.hides_gpus = not asks_for_gpus(self._options)
        import_submitit()
        check_options(self._options)
        self._num_timeouts: Counter[Request] = Counter()

    def describe(self) -> str:
        return (
            f"up to {self.slots} at a time in Slurm jobs of {self._runs_per_job} run(s) each, submitted with "
            f"{' '.join(as_flags(self._options))}"
        )

    @property
    def _own_terms(self) -> Dict[str, Any]:
        return {"options": self._options, "runs_per_job": self._runs_per_job}

    def _opened(self, shared: RunQueue) -> str:
        work = QueueWork(shared.root, SECONDS_IDLE, self._num_threads, self._packages, self._runs_per_job)
        self._jobs = SlurmJobs(shared, work, self._options, array_size=self._array_size)
        return ""

    def _closed(self, shared: RunQueue, running: Mapping[Any, Running]) -> str:
        """Cancel all jobs, and wait briefly for those that work. Outcomes of ended runs are kept for the next
        session."""
        sentence = end_queue(shared, self._directory, keep_logs=self._jobs.had_trouble)
        logger.info("%s", sentence or "no Slurm jobs are left")
        return sentence if running else ""

    def _lost_tickets(self, claims: Collection[Claim]) -> Dict[str, Any]:
        return dict(self._jobs.lost(self._running, claims))

    def _note_claims(self, claims: Collection[Claim]) -> None:
        self._jobs.note(claims)

    def _submit_jobs(self) -> None:
        self._jobs.call()

    def _loss_reason(self, loss: Loss, running: Running) -> Union[str, Failure]:
        """Return how a run was lost, or the failure that it is. Raise a `FiestaError` if the time limit of a job is too
        short for this run."""
        status, job_text = loss.status, f"Slurm job {loss.job} {loss.status.in_words()}"
        if not status.goes_on and self._jobs.ran_out_of_memory(loss):
            last_line = self._jobs.last_line(loss.job)
            return running.begun.failed("machine", f"{job_text}, because it ran out of memory: {last_line}")
        if status.state in ("FAILED", "COMPLETED"):
            return running.begun.failed("killed", f"{job_text} during the run: {self._jobs.last_line(loss.job)}")
        if status.state == "TIMEOUT" and loss.claim is not None and loss.claim.number == 0:
            self._note_timeout(running.begun.request)
        return job_text

    def _note_timeout(self, request: Request) -> None:
        self._num_timeouts[request] += 1
        if self._num_timeouts[request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{request.name} does not finish within the time limit of a Slurm job; {MAX_TIMEOUTS} jobs timed "
                "out with no other run in them. Finished runs are safe. Continue with --recover and a longer "
                "--job-time, or with a shorter --time-limit, so that a run this long counts as a failure."
            )
