"""Works through the queue of a selection, in a Slurm job or a worker on any machine.

Each run is made in a fresh process. The processes are forked from this process's own server, which loads what they need
once. Neither AllenNLP nor torch is imported here."""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.isolation.fork_server import (
    POLL_SECONDS,
    make_run,
    start_fork_server,
    stop_workers,
    unset_safe_path,
)
from fiesta_allennlp.isolation.machine import find_job, origin_here
from fiesta_allennlp.isolation.process_tree import SESSION, WORKER
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue, Terms

IDLE_SECONDS = 120.0  # of a job, before it ends. A network file system may show a new file after a minute
RELUCTANCE_SECONDS = 60.0  # before a run is taken that has failed on this machine, if no other machine takes it
SIGNAL_DELAY_SECONDS = 2.0  # Slurm ends all processes of a job: the run's may be gone before this one gets its signal


def make_queued_runs(
    queue: RunQueue,
    terms: Terms,
    worker: str,
    *,
    seconds_idle: float,
    max_runs: float = float("inf"),
    deadline: float = float("inf"),
    restart_count: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> int:
    """Make runs, and return how many this job or worker took. End after `max_runs`, when the queue is closed, when no
    run has come for `seconds_idle`, or instead of the next run after `deadline`. An interrupted run is given back.

    Raises:
        FiestaError: if the command dismisses it, because runs fail on this machine, or if the disk is full.
    """
    for name in (SESSION, WORKER):  # of the command, whose environment Slurm passes on
        os.environ.pop(name, None)
    num_runs, claim = 0, None
    try:
        context = start_fork_server(terms.num_threads, terms.packages)
        machine = str(origin_here(terms.packages, device=terms.device).machine)
        while num_runs < max_runs:
            take = partial(queue.take, worker, restart_count, num_runs)
            latest_time = min(deadline, time.monotonic() + seconds_idle)
            claim = _wait_for_claim(queue, take, worker=worker, machine=machine, deadline=latest_time)
            if claim is None:
                break
            num_runs += 1
            report(f"{claim.run}: started")
            report(f"{claim.run}: {_make_claimed_run(queue, claim, terms, context)}")
            claim = None
    except BaseException as error:
        if claim is not None:
            queue.withdraw(claim.ticket)
            report(f"{claim.run}: given back; another worker starts it again")
        elif isinstance(error, KeyboardInterrupt):
            report("No run was under way.")
        raise
    return num_runs


def _make_claimed_run(queue: RunQueue, claim: Claim, terms: Terms, context: Any) -> str:
    """Make a run and leave its outcome. Return what became of it."""
    num_kills_before = num_out_of_memory_kills()
    outcome = make_run(queue.read_task(claim, terms), context, is_wanted=partial(queue.is_wanted, claim))
    if isinstance(outcome, Failure) and outcome.kind == "killed":
        time.sleep(SIGNAL_DELAY_SECONDS)
    is_wanted = queue.finish(claim, as_memory_failure(outcome, num_out_of_memory_kills() > num_kills_before))
    if isinstance(outcome, Failure) and outcome.kind == "disk":  # it ends the selection, and fails all further runs
        raise FiestaError(f"the disk is full: {outcome.error}. Free some space, then start the worker again.")
    if not is_wanted:
        return "stopped because it is no longer needed"
    return f"failed: {outcome.error}" if isinstance(outcome, Failure) else f"{outcome.metric} {outcome.score}"


def _wait_for_claim(
    queue: RunQueue, take: Callable[..., Optional[Claim]], *, worker: str, machine: str, deadline: float
) -> Optional[Claim]:
    """Take the next run. Return None if the queue is gone, or nothing has come until `deadline`. A run that failed on
    this machine is left to others for a while."""
    reluctance_end = time.monotonic() + RELUCTANCE_SECONDS
    while queue.is_open and time.monotonic() < deadline:
        if reason := queue.reason_of_dismissal(worker):
            raise FiestaError(reason)
        claim = take(machine=machine if time.monotonic() < reluctance_end else "")
        if claim is not None:
            return claim
        time.sleep(POLL_SECONDS)
    return None


@contextmanager
def heartbeat(queue: RunQueue, worker: str, interval: float) -> Iterator[None]:
    """Give a sign of life all these seconds, from a thread: loading AllenNLP, or an answer of the file system, may take
    longer."""
    is_over = threading.Event()

    def beat() -> None:
        while not is_over.wait(interval):
            queue.write_heartbeat(worker)

    queue.write_heartbeat(worker)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        queue.remove_worker(worker)


def as_memory_failure(outcome: Outcome, is_out_of_memory: bool) -> Outcome:
    """Return the outcome; the kill of a process is a failure of the machine if the job ran out of memory."""
    if isinstance(outcome, Failure) and outcome.kind == "killed" and is_out_of_memory:
        return replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    return outcome


def num_out_of_memory_kills(
    cgroups: Path = Path("/sys/fs/cgroup"), own_cgroup: Path = Path("/proc/self/cgroup")
) -> int:
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


def run_slurm_job(root: Path) -> int:
    """Make runs of a queue in a job of Slurm, and return how many the job took."""
    signal.signal(signal.SIGTERM, _end_job)
    unset_safe_path()
    queue = RunQueue(root)
    terms = queue.terms
    job = find_job()
    assert job is not None
    try:
        return make_queued_runs(
            queue,
            terms,
            job,
            seconds_idle=IDLE_SECONDS,
            max_runs=terms.jobs["runs_per_job"],
            restart_count=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        )
    except FiestaError as error:
        sys.exit(f"error: {error}")


def _end_job(signum: int, frame: Any) -> None:
    """End the job. The process that makes a run has got the signal too, and nothing is recorded for that run."""
    stop_workers([])
    os._exit(128 + signum)


if __name__ == "__main__":
    run_slurm_job(Path(sys.argv[1]))
