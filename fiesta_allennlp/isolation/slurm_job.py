"""The queue of runs on a file system that the jobs of a selection share, and the job that works through it.

Every step of the queue is one `rename`, so two jobs never take the same run, and readers see whole files only. Each
attempt at a run has its own directory: a job that was given up but goes on, as on a node that lost its network, writes
where nobody looks.

A job makes one run after the other, each in a fresh process. The processes are forked from the job's own server, which
loads what they need once. Neither AllenNLP nor torch is imported here."""

import os
import pickle
import secrets
import shutil
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from fiesta_allennlp.files import PART, read_own, replacing
from fiesta_allennlp.isolation.fork_server import SECONDS_BETWEEN_LOOKS, make, start_fork_server, stop_all
from fiesta_allennlp.isolation.process_tree import SESSION, WORKER
from fiesta_allennlp.isolation.worker import Work
from fiesta_allennlp.records import Failure, Outcome, Request

# The directories of a queue: runs in each state, the runs' own directories, and the jobs' scripts and logs.
WAITING, TAKEN, DONE, RUNS, JOBS = "waiting", "taken", "done", "runs", "jobs"


@dataclass(frozen=True)
class Claim:
    """A run that a job has taken.

    `ticket` names the attempt at the run, and `job` is the number as `squeue --array` prints it. `life` is how often
    Slurm had requeued the job before, and `number` counts its runs in this life from 0.
    """

    ticket: str
    job: str
    life: int
    number: int

    @property
    def name(self) -> str:
        """The name of the claim's file."""
        return f"{self.ticket}@{self.job}.{self.life}.{self.number}"

    @classmethod
    def of(cls, name: str) -> "Claim":
        ticket, _, taken = name.rpartition("@")
        job, life, number = taken.split(".")
        return cls(ticket, job, int(life), int(number))

    @property
    def run(self) -> str:
        """The name of the run's request."""
        return self.ticket.rpartition(".")[0]


@dataclass(frozen=True)
class RunQueue:
    """Knows every path of the queue below `root`, whose name all its jobs have in Slurm."""

    root: Path

    @property
    def is_open(self) -> bool:
        return (self.root / WAITING).is_dir()

    @property
    def jobs(self) -> Path:
        """The place of the jobs' own scripts and logs."""
        return self.root / JOBS

    def open(self) -> None:
        """Make the queue, unless it is there. Its files are pickles, so nobody else may write here."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for name in (JOBS, RUNS, DONE, TAKEN, WAITING):
            (self.root / name).mkdir(exist_ok=True)

    def close(self) -> None:
        """Make all jobs stop: they notice that the queue is gone. Their logs stay."""
        for name in (WAITING, TAKEN, DONE, RUNS):
            shutil.rmtree(self.root / name, ignore_errors=True)

    def directory(self, ticket: str) -> Path:
        """Return the directory where this attempt at a run is made."""
        return self.root / RUNS / ticket

    # What the command does.

    def ticket_for(self, request: Request) -> str:
        """Return a new name for the next attempt at this run, and make its directory. No earlier attempt has this name,
        not even one whose directory was moved away."""
        ticket = f"{request.name}.{secrets.token_hex(4)}"
        self.directory(ticket).mkdir()
        return ticket

    def put(self, ticket: str, work: Work) -> None:
        with replacing(self.root / WAITING / ticket) as part:
            part.write_bytes(pickle.dumps(work))

    def waiting(self) -> List[str]:
        """Return the tickets that no job has taken."""
        return _names(self.root / WAITING)

    def taken(self) -> Dict[str, Claim]:
        """Return the claims of runs that jobs have taken, by ticket."""
        return _by_ticket(self.root / TAKEN)

    def done(self) -> Dict[str, Claim]:
        """Return the claims of runs that have ended, by ticket."""
        return _by_ticket(self.root / DONE)

    def outcome(self, claim: Claim) -> Outcome:
        outcome: Outcome = pickle.loads(read_own(self.root / DONE / claim.name))
        return outcome

    def forget(self, claim: Claim) -> None:
        (self.root / DONE / claim.name).unlink(missing_ok=True)

    def keep(self, ticket: str, target: Path) -> None:
        """Move an attempt's directory in one step, once, so that an existing target is complete."""
        made = self.directory(ticket)
        if made.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(made, target)

    def drop(self, ticket: str) -> None:
        """Give up an attempt: no job takes it any more, and a job that has taken it stops it."""
        (self.root / WAITING / ticket).unlink(missing_ok=True)
        if claim := self.taken().get(ticket):
            (self.root / TAKEN / claim.name).unlink(missing_ok=True)

    def refresh(self) -> None:
        """Make a network file system list the newest files: a change drops what it remembers of a directory."""
        for name in (DONE, TAKEN):
            with suppress(OSError):
                os.utime(self.root / name)

    # What a job does.

    def take(self, job: str, life: int, number: int) -> Optional[Claim]:
        """Take the run that has waited longest; return None if none waits."""
        for path in sorted((self.root / WAITING).glob("*"), key=_age):
            claim = Claim(path.name, job, life, number)
            if path.suffix != PART and _has_moved(path, self.root / TAKEN / claim.name):
                return claim
        return None

    def work(self, claim: Claim) -> Work:
        work: Work = pickle.loads(read_own(self.root / TAKEN / claim.name))
        return work

    def has(self, claim: Claim) -> bool:
        """Return whether the run is still wanted."""
        return (self.root / TAKEN / claim.name).exists()

    def finish(self, claim: Claim, outcome: Outcome) -> None:
        with replacing(self.root / DONE / claim.name) as part:
            part.write_bytes(pickle.dumps(outcome))
        (self.root / TAKEN / claim.name).unlink(missing_ok=True)


def _names(directory: Path) -> List[str]:
    """Return the names of complete files; none if there is no directory."""
    with suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(directory) if not name.endswith(PART))
    return []


def _by_ticket(directory: Path) -> Dict[str, Claim]:
    return {claim.ticket: claim for claim in map(Claim.of, _names(directory))}


def _age(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _has_moved(path: Path, target: Path) -> bool:
    """Move the file, and return whether this call did: NFS may report a rename as failed that it repeated."""
    try:
        os.rename(path, target)
    except FileNotFoundError:
        return target.exists()
    return True


SECONDS_TO_BE_TOLD = 2.0  # Slurm ends all processes of a job: the run's may be gone before this one gets its signal


@dataclass(frozen=True)
class JobWork:
    """The task of a job, which ends after `num_runs` runs, when the queue is closed, or when no run has come for
    `seconds_idle`. With `hides_gpus` its runs see no GPU."""

    root: Path
    num_runs: int
    seconds_idle: float
    num_threads: int
    hides_gpus: bool
    packages: Tuple[str, ...] = ()


def work_through(work: JobWork) -> int:
    """Make runs until there is a reason to end, and return how many this job took."""
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
        num_before = num_killed_for_memory()
        outcome = make(queue.work(claim), context, is_wanted=partial(queue.has, claim))
        if isinstance(outcome, Failure) and outcome.kind == "killed":
            time.sleep(SECONDS_TO_BE_TOLD)
        if queue.has(claim):
            queue.finish(claim, with_memory(outcome, num_killed_for_memory() > num_before))
    return work.num_runs


def _end(signum: int, frame: Any) -> None:
    """End the job. The process that makes a run has got the signal too, and nothing is recorded for that run."""
    stop_all([])
    os._exit(128 + signum)


def _next(queue: RunQueue, number: int, seconds_idle: float) -> Optional[Claim]:
    """Take the next run. Return None if the queue is gone, or nothing has come for a while."""
    end = time.monotonic() + seconds_idle
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]
    while queue.is_open and time.monotonic() < end:
        claim = queue.take(job, int(os.environ.get("SLURM_RESTART_COUNT", "0")), number)
        if claim is not None:
            return claim
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return None


def with_memory(outcome: Outcome, memory_ran_out: bool) -> Outcome:
    """Return the outcome; the kill of a process is a failure of the machine if the job ran out of memory."""
    if isinstance(outcome, Failure) and outcome.kind == "killed" and memory_ran_out:
        return replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    return outcome


def num_killed_for_memory(cgroups: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many processes of this job the kernel has killed for lack of memory; 0 if nobody counts.

    In version 2 of control groups all controllers have one place; in version 1 memory has its own.
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
