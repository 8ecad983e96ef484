"""Works through the queue on the shared file system in a Slurm job: takes one run after the other and makes each in a
fresh process. The processes are forked from a server of the job's own, which loads what they need once.

Neither AllenNLP nor torch is imported here.
"""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional, Tuple

from fiesta_allennlp.isolation.fork_server import SECONDS_BETWEEN_LOOKS, make, start_fork_server, stop_all
from fiesta_allennlp.isolation.process_tree import SESSION, WORKER
from fiesta_allennlp.isolation.slurm_queue import Claim, RunQueue
from fiesta_allennlp.records import Failure, Outcome

SECONDS_TO_BE_TOLD = 2.0
"""Slurm ends all processes of a job at once: the one that makes the run may be gone before this one hears of it."""


@dataclass(frozen=True)
class JobWork:
    """Describes what a job is for. It ends after `num_runs` runs, when the queue is closed, or when no run has come for
    `seconds_idle`. With `hides_gpus` its runs see no GPU."""

    root: Path
    num_runs: int
    seconds_idle: float
    num_threads: int
    hides_gpus: bool
    packages: Tuple[str, ...] = ()


def work_through(work: JobWork) -> int:
    """Make runs until there is a reason to end. Return how many this job took."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # submitit's sign that the job's time is almost over
    signal.signal(signal.SIGTERM, _end)
    for name in (SESSION, WORKER):  # of the command, whose environment Slurm passes on
        os.environ.pop(name, None)
    if work.hides_gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    queue, context = RunQueue(work.root), start_fork_server(work.num_threads, work.packages)
    for number in range(work.num_runs):
        claim = _next(queue, number, work.seconds_idle)
        if claim is None:
            return number
        _make(queue, claim, context)
    return work.num_runs


def _end(signum: int, frame: Any) -> None:
    """End the job. The process that makes a run has been told too, and nothing is written down for that run."""
    stop_all([])
    os._exit(128 + signum)


def _next(queue: RunQueue, number: int, seconds_idle: float) -> Optional[Claim]:
    """Take the next run. Return None where there is no queue any more, or nothing has come for a while."""
    end = time.monotonic() + seconds_idle
    while queue.is_open and time.monotonic() < end:
        claim = queue.take(_job_id(), int(os.environ.get("SLURM_RESTART_COUNT", "0")), number)
        if claim is not None:
            return claim
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return None


def _job_id() -> str:
    """Return the number of this job, as `squeue --array` prints it."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    return f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]


def _make(queue: RunQueue, claim: Claim, context: Any) -> None:
    num_before = num_killed_for_memory()
    outcome = make(queue.work(claim), context, is_wanted=lambda: queue.has(claim))
    if isinstance(outcome, Failure) and outcome.kind == "killed":
        time.sleep(SECONDS_TO_BE_TOLD)
    if queue.has(claim):
        queue.finish(claim, _told_of_memory(outcome, num_killed_for_memory() > num_before))


def _told_of_memory(outcome: Outcome, memory_ran_out: bool) -> Outcome:
    """Return the outcome. A process that the kernel killed when the job's memory ran out did not die of itself."""
    if isinstance(outcome, Failure) and outcome.kind == "killed" and memory_ran_out:
        return replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    return outcome


def num_killed_for_memory(cgroups: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many processes of this job the kernel has killed for lack of memory; 0 where nobody counts.

    Both versions of control groups are read: in the second one all controllers have one place, in the first one memory
    has its own.
    """
    try:
        lines = [line.split(":", 2) for line in mine.read_text().splitlines()]
        for _, controllers, path in lines:
            inside = cgroups / path.lstrip("/")
            counter = inside / "memory.events"
            if controllers == "memory":
                counter = cgroups / "memory" / path.lstrip("/") / "memory.oom_control"
            if controllers in ("", "memory") and counter.exists():
                counts = dict(line.split() for line in counter.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
    except (OSError, ValueError):
        pass
    return 0
