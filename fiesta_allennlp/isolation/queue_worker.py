"""Works through the queue of a selection, in a Slurm job or a worker on any machine.

Each run is made in a fresh process. The processes are forked from this process's own server, which loads what they need
once. Neither AllenNLP nor torch is imported here."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Tuple

from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.isolation.fork_server import SECONDS_BETWEEN_LOOKS, make, start_fork_server, stop_all
from fiesta_allennlp.isolation.process_tree import SESSION, WORKER
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue

SECONDS_TO_BE_TOLD = 2.0  # Slurm ends all processes of a job: the run's may be gone before this one gets its signal


@dataclass(frozen=True)
class QueueWork:
    """The task of a job or worker, which ends after `num_runs` runs, when the queue is closed, when no run has come for
    `seconds_idle`, or instead of the next run after `seconds`."""

    root: Path
    seconds_idle: float
    num_threads: int
    packages: Tuple[str, ...] = ()
    num_runs: float = float("inf")
    seconds: float = float("inf")


def work_through(
    work: QueueWork, worker: str, life: int = 0, *, tell: Callable[[str], None] = lambda text: None
) -> int:
    """Make runs until there is a reason to end, and return how many this worker took. An interrupted run is given
    back."""
    for name in (SESSION, WORKER):  # of the command, whose environment Slurm passes on
        os.environ.pop(name, None)
    queue, context = RunQueue(work.root), start_fork_server(work.num_threads, work.packages)
    count, end = 0, time.monotonic() + work.seconds
    while count < work.num_runs:
        claim = _next(queue, partial(queue.take, worker, life, count), min(end, time.monotonic() + work.seconds_idle))
        if claim is None:
            break
        count += 1
        num_before = num_killed_for_memory()
        tell(f"{claim.run}: started")
        try:
            outcome = make(queue.work(claim), context, is_wanted=partial(queue.has, claim))
            if isinstance(outcome, Failure) and outcome.kind == "killed":
                time.sleep(SECONDS_TO_BE_TOLD)
            is_wanted = queue.finish(claim, with_memory(outcome, num_killed_for_memory() > num_before))
        except BaseException:
            queue.drop(claim.ticket)
            raise
        tell(f"{claim.run}: {_in_words(outcome) if is_wanted else 'stopped, because it is not wanted any more'}")
    return count


def _next(queue: RunQueue, take: Callable[[], Optional[Claim]], end: float) -> Optional[Claim]:
    """Take the next run. Return None if the queue is gone, or nothing has come until `end`."""
    while queue.is_open and time.monotonic() < end:
        claim = take()
        if claim is not None:
            return claim
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return None


def _in_words(outcome: Outcome) -> str:
    return f"failed: {outcome.error}" if isinstance(outcome, Failure) else f"{outcome.metric} {outcome.score}"


@contextmanager
def giving_signs(queue: RunQueue, worker: str, seconds: float) -> Iterator[None]:
    """Give a sign of life all these seconds, from a thread: loading AllenNLP, or an answer of the file system, may take
    longer."""
    is_over = threading.Event()

    def give() -> None:
        while not is_over.wait(seconds):
            queue.give_sign(worker)

    queue.give_sign(worker)
    thread = threading.Thread(target=give, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        queue.leave(worker)


def with_memory(outcome: Outcome, memory_ran_out: bool) -> Outcome:
    """Return the outcome; the kill of a process is a failure of the machine if the job ran out of memory."""
    if isinstance(outcome, Failure) and outcome.kind == "killed" and memory_ran_out:
        return replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    return outcome


def num_killed_for_memory(cgroups: Path = Path("/sys/fs/cgroup"), own_cgroup: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many processes of this job the kernel has killed for lack of memory; 0 if nobody counts.

    In version 2 of control groups all controllers have one place; in version 1 memory has its own.
    """
    try:
        lines = [line.split(":", 2) for line in own_cgroup.read_text().splitlines()]
        for _, controllers, path in lines:
            cgroup = cgroups / path.lstrip("/")
            counter = cgroup / "memory.events"
            if controllers == "memory":
                counter = cgroups / "memory" / path.lstrip("/") / "memory.oom_control"
            if controllers in ("", "memory") and counter.exists():
                counts = dict(line.split() for line in counter.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
    except (OSError, ValueError):
        pass
    return 0


def run_job(work: QueueWork) -> int:
    """Make runs until there is a reason to end, and return how many this job took."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # submitit's sign that the job's time is almost over
    signal.signal(signal.SIGTERM, _end)
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]
    return work_through(work, job, int(os.environ.get("SLURM_RESTART_COUNT", "0")))


def _end(signum: int, frame: Any) -> None:
    """End the job. The process that makes a run has got the signal too, and nothing is recorded for that run."""
    stop_all([])
    os._exit(128 + signum)
