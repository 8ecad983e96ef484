import logging
import pickle
import secrets
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.queueing import QueueingExecutor, Running
from fiesta_allennlp.executors.slurm_commands import (
    SlurmDown,
    cancel,
    cancelled_in_words,
    wait_for_end,
)
from fiesta_allennlp.executors.slurm_jobs import (
    SlurmJobs,
    delete,
    end_jobs_left,
    import_submitit,
    keep_run,
    queues_left,
    take_in,
)
from fiesta_allennlp.executors.slurm_lost import LostRuns
from fiesta_allennlp.executors.slurm_options import as_flags, asks_for_gpus, check_options, job_options, whole
from fiesta_allennlp.isolation.fork_server import Begun
from fiesta_allennlp.isolation.slurm_job import JobWork
from fiesta_allennlp.isolation.slurm_queue import Claim, RunQueue
from fiesta_allennlp.isolation.worker import Work, WorkerSettings
from fiesta_allennlp.records import Failure, Outcome, Request

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS = 0.5
"""At the queue in the run directory."""

SECONDS_IDLE = 120.0
"""A job ends when no run has come for so long. A network file system may show a new file after a minute."""

SECONDS_TO_STOP = 10.0


@Executor.register("slurm")
class SlurmExecutor(QueueingExecutor):
    """Makes runs in Slurm jobs, on a file system that this machine and the nodes share.

    The runs wait in a queue in the run directory, and the jobs take them from there. A job belongs to the selection,
    not to a single run. A killed command therefore leaves no state behind that could be lost. `--recover` finds the
    queue, the outcomes that arrived since, and all jobs by their common name, whether or not they have started.

    If a run is lost with its job, the executor starts it again, and that is not a failure. This happens if the job was
    preempted, requeued or cancelled, reached its time limit or lost its node. If the run's own process dies, or its job
    fails under it, that is a failure, as with every executor. If a run's memory ran out, the executor tries it again
    after a pause.

    Args:
        directory: the run directory, on the shared file system.
        workers: number of runs at once, which is also the largest number of jobs.
        time_limit: seconds after which a run is killed and counts as a failure; None for no limit. The time that a run
            waits for a node does not count.
        num_threads: torch threads of each run.
        packages: packages to import for each run, for the models and readers that they register.
        runs_per_job: number of runs that a job makes, one after the other.
        array_size: largest number of jobs that are submitted as one job array.
        partition: partition, as for `sbatch`; None for the cluster's defaults.
        account: account, as for `sbatch`; None for the cluster's defaults.
        job_time: time limit of a job, as `sbatch --time` takes it; None for the partition's.
        cpus_per_evaluation: CPUs of each job; None for as many as threads.
        gpus_per_evaluation: GPUs of each job. 0 hides all, unless `slurm` asks for some.
        memory_per_evaluation: memory of each job in GiB; None for the cluster's default.
        slurm: further options of `sbatch`, as `key=value` or as an object.

    Raises:
        ConfigError: if submitit or Slurm is not installed, a number is out of range, or Slurm would not accept such a
            job.
    """

    gives_devices = True

    def __init__(
        self,
        directory: RunDirectory,
        *,
        workers: Union[int, str] = 1,
        time_limit: Optional[float] = None,
        num_threads: int = 1,
        packages: Tuple[str, ...] = (),
        runs_per_job: int = 1,
        array_size: int = 1,
        partition: Optional[str] = None,
        account: Optional[str] = None,
        job_time: Optional[str] = None,
        cpus_per_evaluation: Optional[float] = None,
        gpus_per_evaluation: float = 0.0,
        memory_per_evaluation: Optional[float] = None,
        slurm: Any = (),
    ) -> None:
        super().__init__(directory, workers=workers, time_limit=time_limit, num_threads=num_threads, packages=packages)
        if not isinstance(workers, int):
            raise ConfigError("--workers auto does not go with --executor slurm: give the number of runs at once.")
        self.slots = workers
        self._runs_per_job = whole("runs-per-job", runs_per_job)
        self._array_size = whole("array-size", array_size)
        self._options = job_options(
            {"partition": partition, "account": account, "time": job_time},
            cpus=num_threads if cpus_per_evaluation is None else cpus_per_evaluation,
            gpus=gpus_per_evaluation,
            memory=memory_per_evaluation,
            further=slurm,
        )
        self.hides_gpus = not asks_for_gpus(self._options)
        import_submitit()
        check_options(self._options)
        self._shared: Optional[RunQueue] = None
        self._found: Dict[str, Claim] = {}
        self._read: List[Claim] = []

    def describe(self) -> str:
        return (
            f"up to {self.slots} at once in Slurm jobs of {self._runs_per_job} run(s) each, submitted with "
            f"{' '.join(as_flags(self._options))}"
        )

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._open()
        claim = self._found.pop(request.name, None)
        if claim is None:
            super().submit(evaluator, request)
        else:
            logger.info("%s is with Slurm job %s already", request.name, claim.job)
            self._running[claim.ticket] = Running(evaluator, Begun.now(request))

    def close(self) -> None:
        """Cancel all jobs, and wait briefly for those that work. Outcomes of runs that ended are kept for the next
        session.
        """
        self._queue.clear()
        was_at_work, self._running = bool(self._running), {}
        shared, self._shared = self._shared, None
        if shared is None:
            return
        take_in(shared, self._directory)
        shared.close()
        try:
            said = cancelled_in_words(cancel(shared.name))
            wait_for_end(shared.name, SECONDS_TO_STOP)
        except SlurmDown as error:
            said = f"Slurm gives no answer ({error}). Later, type: scancel --name={shared.name}"
        logger.info("%s", said or "no Slurm job is left")
        self.last_words = said if was_at_work else ""
        if not self._jobs.had_trouble:
            delete(shared, self._directory)

    def _open(self) -> RunQueue:
        """The queue that a command left behind when it was killed, with its jobs, or else a new one."""
        if self._shared is not None:
            return self._shared
        left = queues_left(self._directory)
        name = left[-1].name if left and left[-1].terms() == self._terms(left[-1]) else f"fiesta-{secrets.token_hex(5)}"
        shared = RunQueue(self._directory.slurm.absolute() / name)
        if not shared.is_open:
            if left:
                logger.info("jobs on other terms are ended. %s", end_jobs_left(self._directory))
            shared.open(self._terms(shared))
        work = JobWork(
            shared.root, self._runs_per_job, SECONDS_IDLE, self._num_threads, self.hides_gpus, self._packages
        )
        self._jobs = SlurmJobs(shared, work, self._options, array_size=self._array_size)
        self._lost = LostRuns(shared, self._jobs)
        shared.withdraw()
        self._found = {claim.run: claim for claim in [*shared.taken(), *shared.done().values()]}
        self._shared = shared
        return shared

    def _terms(self, queue: RunQueue) -> Dict[str, Any]:
        """What must be as before for jobs to be taken over. They know their place by its absolute path."""
        return {
            "place": str(queue.root.absolute()),
            "options": self._options,
            "runs_per_job": self._runs_per_job,
            "num_threads": self._num_threads,
            "time_limit": self._time_limit,
            "packages": list(self._packages),
        }

    def _start(self, evaluator: Evaluator, request: Request) -> None:
        shared = self._open()
        ticket = shared.ticket_for(request)
        directory = shared.directory(ticket)
        work = Work(
            evaluator=pickle.dumps(evaluator),
            places={},
            request=request,
            directory=directory,
            log=directory / self._directory.evaluation_log(request.name).name,
            settings=WorkerSettings(num_threads=self._num_threads, packages=self._packages),
            time_limit=self._time_limit,
        )
        shared.put(ticket, work)
        self._running[ticket] = Running(evaluator, Begun.now(request))

    def _wait(self, timeout: Optional[float]) -> Optional[Any]:
        shared = self._open()
        end = float("inf") if timeout is None else time.monotonic() + timeout
        self._forget(shared)
        while True:
            ended = self._ended(shared)
            if ended is not None:
                return ended
            self._jobs.call()
            if time.monotonic() >= end:
                return None
            time.sleep(min(SECONDS_BETWEEN_LOOKS, max(0.0, end - time.monotonic())))

    def _forget(self, shared: RunQueue) -> None:
        """Whoever waits for the next run has written the last one down, and wants none that was found and not asked
        for."""
        for claim in self._found.values():
            shared.drop(claim.ticket)
            shared.forget(claim)
        for claim in self._read:
            shared.forget(claim)
        self._found, self._read = {}, []

    def _ended(self, shared: RunQueue) -> Optional[str]:
        """The ticket of a run that has ended, or that was lost."""
        taken, done = shared.taken(), shared.done()
        self._jobs.note([*taken, *done.values()])
        ended = next((ticket for ticket in done if ticket in self._running), None)
        if ended is not None:
            return ended
        return self._lost.next(self._running, taken)

    def _outcome(self, done: Any, running: Running) -> Optional[Outcome]:
        shared, request = self._open(), running.begun.request
        claim = shared.done().get(done)
        outcome = self._lost.outcome(done, running) if claim is None else shared.outcome(claim)
        if outcome is None:
            return None
        keep_run(shared, done, self._directory.evaluation(request.name))
        if claim is not None and isinstance(outcome, Failure):
            shared.forget(claim)  # were it read again after a kill of the command, one failure would count twice
        elif claim is not None:
            self._read.append(claim)
        return self._with_log(outcome)

    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        """The jobs see that these runs are not wanted any more, and take others."""
        for ticket in unwanted:
            self._open().drop(ticket)
