import hashlib
import json
import logging
import time
from collections import Counter
from typing import Any, Dict, Mapping, Optional

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, FiestaError
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.queueing import MAX_LOSSES, QueueingExecutor, Running
from fiesta_allennlp.executors.slurm_commands import as_flags, asks_for_gpus, check_options, job_options, whole
from fiesta_allennlp.executors.slurm_jobs import Loss, SlurmJobs, end_jobs, end_jobs_left, import_submitit, take_in
from fiesta_allennlp.isolation.fork_server import Begun
from fiesta_allennlp.isolation.slurm_job import JobWork, RunQueue
from fiesta_allennlp.records import Outcome, Request

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS = 0.5
"""Separates two looks at the queue in the run directory."""

SECONDS_IDLE = 120.0
"""Ends a job to which no run has come for so long. A network file system may show a new file after a minute."""

MAX_TIMEOUTS = 2
"""Limits the jobs that reach their time limit under the first of their runs, always the same."""


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
        if not isinstance(self._workers, int):
            raise ConfigError("--workers auto cannot be combined with --executor slurm. Specify a number.")
        self.slots = self._workers
        self._runs_per_job = whole("runs-per-job", runs_per_job)
        self._array_size = whole("array-size", array_size)
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
        self._shared: Optional[RunQueue] = None
        self._found: Dict[str, str] = {}
        self._lost: Dict[str, Loss] = {}
        self._num_losses: Counter[Request] = Counter()
        self._num_timeouts: Counter[Request] = Counter()

    def describe(self) -> str:
        return (
            f"up to {self.slots} at a time in Slurm jobs of {self._runs_per_job} run(s) each, submitted with "
            f"{' '.join(as_flags(self._options))}"
        )

    def resume(self) -> str:
        """Take over the queue that a killed command left on the same terms, with its jobs, or make a new one. Move runs
        that have ended to where the selection looks for them, and end jobs on other terms. Return a sentence about
        those."""
        shared = RunQueue(self._directory.slurm.absolute() / self._name())
        said = end_jobs_left(self._directory, but=shared.root.name)
        shared.open()
        taken = shared.taken()  # read first: a run goes from taken to done
        ended = take_in(shared, self._directory)
        self._found = {claim.run: ticket for ticket, claim in taken.items() if ticket not in ended}
        for ticket in shared.waiting():
            shared.drop(ticket)
        work = JobWork(
            shared.root, self._runs_per_job, SECONDS_IDLE, self._num_threads, self.hides_gpus, self._packages
        )
        self._jobs = SlurmJobs(shared, work, self._options, array_size=self._array_size)
        self._shared = shared
        return said

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._open()
        ticket = self._found.pop(request.name, None)
        if ticket is None:
            super().submit(evaluator, request)
        else:
            logger.info("%s is already in a Slurm job", request.name)
            self._running[ticket] = Running(evaluator, Begun.now(request))

    def close(self) -> None:
        """Cancel all jobs, and wait briefly for those that work. Outcomes of ended runs are kept for the next
        session."""
        self._queue.clear()
        was_at_work, self._running = bool(self._running), {}
        shared, self._shared = self._shared, None
        if shared is None:
            return
        said = end_jobs(shared, self._directory, keep_logs=self._jobs.had_trouble)
        logger.info("%s", said or "no Slurm jobs are left")
        self.last_words = said if was_at_work else ""

    def _open(self) -> RunQueue:
        if self._shared is None:
            self.resume()
        assert self._shared is not None
        return self._shared

    def _name(self) -> str:
        """Return the name of the queue and its jobs, which follows from their terms and their place."""
        place = str(self._directory.slurm.absolute())
        numbers = (self._runs_per_job, self._num_threads, self._time_limit)
        terms = json.dumps([place, self._options, numbers, self._packages])
        return f"fiesta-{hashlib.sha256(terms.encode()).hexdigest()[:10]}"

    def _start(self, evaluator: Evaluator, request: Request) -> None:
        shared = self._open()
        ticket = shared.ticket_for(request)
        shared.put(ticket, self._work(evaluator, request, shared.directory(ticket)))
        self._running[ticket] = Running(evaluator, Begun.now(request))

    def _wait(self, timeout: Optional[float]) -> Optional[Any]:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        for ticket in self._found.values():  # whoever waits has asked for all that is wanted
            self._open().drop(ticket)
        self._found = {}
        while True:
            ended = self._ended(self._open())
            if ended is not None:
                return ended
            self._jobs.call()
            if time.monotonic() >= end:
                return None
            time.sleep(min(SECONDS_BETWEEN_LOOKS, max(0.0, end - time.monotonic())))

    def _ended(self, shared: RunQueue) -> Optional[str]:
        taken, done = shared.taken(), shared.done()
        self._jobs.note([*taken.values(), *done.values()])
        ended = next((ticket for ticket in done if ticket in self._running), None)
        if ended is not None:
            return ended
        self._lost = {ticket: loss for ticket, loss in self._lost.items() if ticket in self._running}
        if not self._lost:
            self._lost = self._jobs.lost(self._running, taken.values())
        return next(iter(self._lost), None)

    def _outcome(self, done: Any, running: Running) -> Optional[Outcome]:
        shared, request = self._open(), running.begun.request
        claim = shared.done().get(done)
        outcome = self._lost_outcome(done, running) if claim is None else shared.outcome(claim)
        if outcome is None:
            return None
        shared.keep(done, self._directory.evaluation(request.name))
        if claim is not None:
            shared.forget(claim)  # the next session takes the run over from its directory
        return self._with_log(outcome)

    def _lost_outcome(self, ticket: str, running: Running) -> Optional[Outcome]:
        """Return the outcome of a lost run; None to start it again. Raise a `FiestaError` if the time limit of a job is
        too short for this run."""
        shared, request, loss = self._open(), running.begun.request, self._lost.pop(ticket)
        shared.drop(ticket)  # a job that goes on all the same, as on a node without a network, stops
        salvaged = running.evaluator.salvage(request, shared.directory(ticket))
        if salvaged is not None:
            return salvaged
        status, what = loss.status, f"Slurm job {loss.job} {loss.status.in_words()}"
        if not status.goes_on and self._jobs.ran_out_of_memory(loss):
            said = self._jobs.last_line(loss.job)
            return running.begun.failed("machine", f"{what}, because it ran out of memory: {said}")
        if status.state in ("FAILED", "COMPLETED"):
            return running.begun.failed("killed", f"{what} during the run: {self._jobs.last_line(loss.job)}")
        if status.state == "TIMEOUT" and loss.claim is not None and loss.claim.number == 0:
            self._note_timeout(request)
        self._num_losses[request] += 1
        if self._num_losses[request] % MAX_LOSSES == 0:
            return running.begun.failed("killed", f"lost {MAX_LOSSES} times with its job: {what}")
        logger.warning("%s was lost: %s; starting it again", request.name, what)
        return None

    def _note_timeout(self, request: Request) -> None:
        self._num_timeouts[request] += 1
        if self._num_timeouts[request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{request.name} does not finish within the time limit of a Slurm job; {MAX_TIMEOUTS} jobs timed "
                "out with no other run in them. Finished runs are safe. Continue with --recover and a longer "
                "--job-time, or with a shorter --time-limit, so that a run this long counts as a failure."
            )

    def _stop(self, unwanted: Mapping[Any, Running]) -> None:
        """Drop these runs. Their jobs notice, and take others."""
        for ticket in unwanted:
            self._open().drop(ticket)
