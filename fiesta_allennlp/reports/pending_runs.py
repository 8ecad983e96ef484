"""The runs of a selection that have not ended: whether they run, where, and what they wait for."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Dict, List, Literal, Mapping, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import History
from fiesta_allennlp.isolation.run_queue import RunQueue, Worker

PendingState = Literal["queued", "running", "interrupted"]


@dataclass(frozen=True)
class PendingRun:
    """A run that has not ended.

    `state` is `queued` until a job or a worker takes the run, then `running`, and `interrupted` if the selection is not
    at work. `job` is the Slurm job or the worker's process, `host` its machine, and `reason` Slurm's reason for which
    the jobs of the selection wait. `executor` is `slurm` or `workers`. Each is empty if it is unknown.
    """

    run: str
    state: PendingState
    candidate: str = ""
    job: str = ""
    host: str = ""
    reason: str = ""
    executor: str = ""

    @property
    def is_of_slurm(self) -> bool:
        return self.executor == "slurm" and self.state == "running"


@dataclass(frozen=True)
class WorkerState:
    """A worker of a queue, the run that it makes (None if it makes none), and the seconds since its last sign of
    life."""

    host: str
    process: str
    gpu: str
    run: Optional[str]
    silent_seconds: float


def read_pending_runs(directory: RunDirectory, history: History, *, is_running: bool) -> List[PendingRun]:
    """Return the pending runs of a history in order. Queues that this user cannot read tell nothing."""
    found: Dict[str, PendingRun] = {}
    with suppress(OSError):
        for queue in RunQueue.open_queues(directory.queue):
            found.update(_runs_of_workers(queue))
        for queue in RunQueue.open_queues(directory.slurm):
            found.update(_runs_of_slurm(queue))
    runs: List[PendingRun] = []
    for request in history.pending:
        default = PendingRun(request.name, state="running" if is_running else "interrupted")
        runs.append(replace(found.get(request.name, default), candidate=request.candidate))
    return runs


def _runs_of_workers(queue: RunQueue) -> Dict[str, PendingRun]:
    runs = {name: PendingRun(name, state="queued", executor="workers") for name in queue.waiting_runs()}
    for claim in queue.taken_claims().values():
        worker = Worker.from_name(claim.job)
        runs[claim.run] = PendingRun(claim.run, state="running", job=worker.pid, host=worker.host, executor="workers")
    return runs


def _runs_of_slurm(queue: RunQueue) -> Dict[str, PendingRun]:
    from fiesta_allennlp.executors.slurm_commands import (  # which the status of other selections does without
        WAITING_STATES,
        JobStatus,
        SlurmUnavailable,
        query_statuses,
    )

    jobs: Mapping[str, JobStatus] = {}
    with suppress(SlurmUnavailable):
        jobs = query_statuses(queue.root.name)
    reason = ", ".join(dict.fromkeys(job.reason for job in jobs.values() if job.state in WAITING_STATES and job.reason))
    runs = {name: PendingRun(name, state="queued", reason=reason, executor="slurm") for name in queue.waiting_runs()}
    for claim in queue.taken_claims().values():
        host = jobs[claim.job].node if claim.job in jobs else ""
        runs[claim.run] = PendingRun(claim.run, state="running", job=claim.job, host=host, executor="slurm")
    return runs


def read_workers(directory: RunDirectory) -> Optional[List[WorkerState]]:
    """Return the workers of a selection; None if it has no queue for workers that this user can read."""
    with suppress(OSError):
        workers: Optional[List[WorkerState]] = None
        for queue in RunQueue.open_queues(directory.queue):
            run_by_worker = {claim.job: claim.run for claim in queue.taken_claims().values()}
            workers = workers or []
            for name, seconds in queue.seconds_since_heartbeat().items():
                worker = Worker.from_name(name)
                workers.append(
                    WorkerState(worker.host, worker.pid, worker.device, run_by_worker.get(name), round(seconds, 1))
                )
        return workers
    return None
