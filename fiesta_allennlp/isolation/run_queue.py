"""The queue of runs on a file system that the jobs or workers of a selection share.

Every step of the queue is one `rename`, so two jobs never take the same run, and readers see whole files only. Each
attempt at a run has its own directory: a job that was given up but goes on, as on a node that lost its network, writes
where nobody looks. A worker is a job that Slurm does not know. It gives signs of life instead."""

import os
import platform
import re
import secrets
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, List, Mapping, Optional, Set, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, check_private, delete, read_private, write_json_file
from fiesta_allennlp.core.records import Outcome, Request, outcome_from_data
from fiesta_allennlp.version import __version__

if TYPE_CHECKING:
    from fiesta_allennlp.isolation.worker import RunTask

# The directories of a queue: runs in each state, the runs' own directories, the jobs' scripts and logs, and signs of
# life.
WAITING, TAKEN, DONE, RUNS, JOBS, WORKERS = "waiting", "taken", "done", "runs", "jobs", "workers"
DISMISSED = "dismissed"  # the jobs and workers that shall take no more, each a file with the reason

TERMS_FILE = "terms.json"

QUEUE_FORMAT = 6
"""Changes with the files of the queue."""

TICKET_PATTERN = re.compile(r".+-\d+\.[0-9a-f]{8}")
CLAIM_PATTERN = re.compile(rf"({TICKET_PATTERN.pattern})@(.+)\.(\d+)\.(\d+)")
WORKER_PATTERN = re.compile(r"([\w-]*)\+([\w-]*)\+([\w-]*)\+([\w-]*)")
"""Match the names of the queue's files. A file of another name is not part of the queue."""


@dataclass(frozen=True)
class Terms:
    """What a command and those who make its runs have in common. The name of the queue follows from it.

    `place` is the directory that contains the queue, on the command's machine. A run sees the CUDA device `device`
    alone; None for all that its worker sees. `jobs` are facts about the jobs or workers.
    """

    place: str
    current_directory: str
    num_threads: int
    packages: Tuple[str, ...] = ()
    time_limit: Optional[float] = None
    device: Optional[str] = None
    jobs: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__
    format: int = QUEUE_FORMAT


@dataclass(frozen=True)
class Claim:
    """A run that a job has taken.

    `ticket` names the attempt at the run, and `job` is the number as `squeue --array` prints it, or the name of a
    worker. `restart_count` is how often Slurm had requeued the job before, and `number` counts its runs in this life
    from 0.
    """

    ticket: str
    job: str
    restart_count: int
    number: int

    @property
    def file_name(self) -> str:
        """The name of the claim's file."""
        return f"{self.ticket}@{self.job}.{self.restart_count}.{self.number}"

    @classmethod
    def from_file_name(cls, name: str) -> "Claim":
        match = CLAIM_PATTERN.fullmatch(name)
        assert match is not None
        return cls(match[1], match[2], int(match[3]), int(match[4]))

    @property
    def run(self) -> str:
        """The name of the run's request."""
        return self.ticket.rpartition(".")[0]


@dataclass(frozen=True)
class Worker:
    """A process of `fiesta worker`: its machine, its process there, the GPU that it was given, and letters that make
    its name unique."""

    host: str
    pid: str
    device: str
    suffix: str

    @classmethod
    def current(cls, device: str) -> "Worker":
        values = (platform.node().partition(".")[0], str(os.getpid()), device, secrets.token_hex(3))
        return cls(*(re.sub(r"[^\w-]", "-", value) for value in values))

    @classmethod
    def from_name(cls, name: str) -> "Worker":
        return cls(*name.split("+"))

    @property
    def name(self) -> str:
        """The name of the worker in the files of the queue."""
        return "+".join(astuple(self))


@dataclass(frozen=True)
class RunQueue:
    """Knows every path of the queue below `root`, whose name all its jobs have in Slurm."""

    root: Path

    @classmethod
    def open_queues(cls, directory: Path) -> "List[RunQueue]":
        """Return the open queues in a directory."""
        return [queue for queue in map(cls, sorted(directory.glob("fiesta-*"))) if queue.is_open]

    @property
    def is_open(self) -> bool:
        return (self.root / WAITING).is_dir()

    @property
    def jobs_directory(self) -> Path:
        """The place of the jobs' own scripts and logs."""
        return self.root / JOBS

    @property
    def directory(self) -> Path:
        """The run directory, from which on everything must belong to this user alone: runs execute what is queued."""
        return self.root.parents[1]

    def open(self, terms: Terms) -> None:
        """Make the queue, unless it is there, for workers on these terms. Raise a `StoreError` if others can write
        here."""
        self.directory.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
        for directory in (self.root.parent, self.root):
            directory.mkdir(mode=0o700, exist_ok=True)
        check_private(self.root, self.directory)
        write_json_file(self.root / TERMS_FILE, asdict(terms))
        for name in (JOBS, WORKERS, DISMISSED, RUNS, DONE, TAKEN, WAITING):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)

    def close(self) -> None:
        """Make all jobs stop: they notice that the queue is gone. Their logs stay."""
        for name in (WAITING, TAKEN, DONE, RUNS, WORKERS, DISMISSED):
            shutil.rmtree(self.root / name, ignore_errors=True)
        (self.root / TERMS_FILE).unlink(missing_ok=True)

    def delete(self) -> None:
        """Delete what `close` leaves, and the place of the queue if no other queue is there."""
        shutil.rmtree(self.root, ignore_errors=True)
        with suppress(OSError):
            self.root.parent.rmdir()

    def attempt_directory(self, ticket: str) -> Path:
        """Return the directory where this attempt at a run is made."""
        return self.root / RUNS / ticket

    def _outcome_path(self, ticket: str) -> Path:
        return self.root / RUNS / f"{ticket}.outcome"

    @property
    def terms(self) -> Terms:
        """The terms on which workers make the runs. Raise a `ConfigError` if another version wrote them."""
        content = read_private(self.root / TERMS_FILE, self.directory)
        if (content["version"], content["format"]) != (__version__, QUEUE_FORMAT):
            written_by = f"fiesta_allennlp {content['version']} (queue format {content['format']})"
            own = f"{__version__} (queue format {QUEUE_FORMAT})"
            raise ConfigError(f"{self.root} was created by {written_by}, but this is {own}. Install the same version.")
        return Terms(**{**content, "packages": tuple(content["packages"])})

    def seconds_since_heartbeat(self) -> Dict[str, float]:
        """Return for how many seconds each worker has given no sign of life, by the clock of the file system."""
        with tempfile.TemporaryFile(dir=self.root) as file:
            server_time = os.fstat(file.fileno()).st_mtime
        seconds_by_worker = {}
        for worker in _file_names(self.root / WORKERS, WORKER_PATTERN):
            with suppress(FileNotFoundError), open(self.root / WORKERS / worker) as file:  # NFS asks its server here
                seconds_by_worker[worker] = max(0.0, server_time - os.fstat(file.fileno()).st_mtime)
        return seconds_by_worker

    # What the command does.

    def new_ticket(self, request: Request) -> str:
        """Return a new name for the next attempt at this run, and make its directory. No earlier attempt has this name,
        not even one whose directory was moved away."""
        ticket = f"{request.name}.{secrets.token_hex(4)}"
        self.attempt_directory(ticket).mkdir(mode=OWN_DIRECTORY_MODE)
        return ticket

    def put(self, ticket: str, task: "RunTask", *, failed_on: Collection[str] = ()) -> None:
        """Let a job or a worker take a task, but preferably not on the machines `failed_on`. Everything about the task
        that is not in the terms is written down."""
        content = {"evaluator": task.evaluator, "request": asdict(task.request), "failed_on": sorted(failed_on)}
        write_json_file(self.root / WAITING / ticket, content, default=float)

    def waiting_tickets(self) -> List[str]:
        """Return the tickets that no job has taken."""
        return _file_names(self.root / WAITING, TICKET_PATTERN)

    def waiting_runs(self) -> List[str]:
        """Return the names of the runs that no job has taken."""
        return [ticket.rpartition(".")[0] for ticket in self.waiting_tickets()]

    def taken_claims(self) -> Dict[str, Claim]:
        """Return the claims of runs that jobs have taken, by ticket."""
        return _claims_by_ticket(self.root / TAKEN)

    def done_claims(self) -> Dict[str, Claim]:
        """Return the claims of runs that have ended, by ticket."""
        return _claims_by_ticket(self.root / DONE)

    def read_outcome(self, claim: Claim) -> Outcome:
        return outcome_from_data(read_private(self._outcome_path(claim.ticket), self.directory))

    def delete_outcome(self, claim: Claim) -> None:
        for path in (self.root / DONE / claim.file_name, self._outcome_path(claim.ticket)):
            path.unlink(missing_ok=True)

    def collect_finished(self, directory: RunDirectory) -> Set[str]:
        """Move ended runs to where the next session looks for them, and return their tickets."""
        claims = self.done_claims()
        for ticket, claim in claims.items():
            self.move_attempt(ticket, directory.evaluation(claim.run))
            self.delete_outcome(claim)
        return {*claims}

    def move_attempt(self, ticket: str, target: Path) -> None:
        """Move an attempt's directory in one step, once, so that an existing target is complete."""
        source = self.attempt_directory(ticket)
        if source.exists():
            target.parent.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
            delete(target)
            os.replace(source, target)

    def withdraw(self, ticket: str) -> None:
        """Give up an attempt: no job takes it any more, and a job that has taken it stops it."""
        (self.root / WAITING / ticket).unlink(missing_ok=True)
        if claim := self.taken_claims().get(ticket):
            (self.root / TAKEN / claim.file_name).unlink(missing_ok=True)

    def withdraw_waiting(self) -> None:
        """Take back all runs that nobody has taken."""
        for ticket in self.waiting_tickets():
            (self.root / WAITING / ticket).unlink(missing_ok=True)

    def dismiss(self, job: str, reason: str) -> None:
        """Make a job or a worker take no more runs. Nothing happens if the queue is gone."""
        with suppress(FileNotFoundError):
            (self.root / DISMISSED / job).write_text(reason, encoding="utf-8")

    def refresh_listings(self) -> None:
        """Make a network file system list the newest files: a change drops what it remembers of a directory."""
        for name in (DONE, TAKEN, WORKERS, DISMISSED):
            with suppress(OSError):
                os.utime(self.root / name)

    def find_lost(
        self, tickets: Collection[str], claims: Collection[Claim], is_gone: Callable[[Claim], bool]
    ) -> Dict[str, Optional[Claim]]:
        """Return those of `tickets` that no job has any more, with their claims, if there are any.

        A run that a job has taken after `claims` was read may be with the job, whatever `is_gone` says. A run goes from
        waiting to taken to done, so these are read in this order, and what is done is not lost.
        """
        self.refresh_listings()
        present = {*self.waiting_tickets(), *self.taken_claims()}
        lost_claims: Dict[str, Optional[Claim]] = {ticket: None for ticket in tickets if ticket not in present}
        for claim in claims:
            if claim.ticket in tickets and claim.ticket in present and is_gone(claim):
                lost_claims[claim.ticket] = claim
        if lost_claims:
            self.refresh_listings()
        done_claims = self.done_claims()
        return {ticket: claim for ticket, claim in lost_claims.items() if ticket not in done_claims}

    # What a job does.

    def take(self, job: str, restart_count: int, number: int, *, machine: str = "") -> Optional[Claim]:
        """Take the run that has waited longest, of those that have not failed on `machine`; return None if none
        waits."""
        for path in sorted((self.root / WAITING / ticket for ticket in self.waiting_tickets()), key=_modification_time):
            if machine and machine in self._machines_to_avoid(path):
                continue
            claim = Claim(path.name, job, restart_count, number)
            if _move_file(path, self.root / TAKEN / claim.file_name):
                return claim
        return None

    def _machines_to_avoid(self, path: Path) -> Collection[str]:
        with suppress(FileNotFoundError):  # another one has taken it
            return list(read_private(path, self.directory)["failed_on"])
        return ()

    def reason_of_dismissal(self, job: str) -> Optional[str]:
        """Return why a job or a worker shall take no more runs; None if it may."""
        with suppress(FileNotFoundError):
            return (self.root / DISMISSED / job).read_text(encoding="utf-8")
        return None

    def read_task(self, claim: Claim, terms: Terms) -> "RunTask":
        from fiesta_allennlp.isolation.worker import RunTask, WorkerSettings  # which readers of a queue do without

        content = read_private(self.root / TAKEN / claim.file_name, self.directory)
        return RunTask(
            content["evaluator"],
            Request(**content["request"]),
            self.attempt_directory(claim.ticket),
            WorkerSettings(terms.num_threads, terms.packages, terms.device),
            terms.time_limit,
        )

    def is_wanted(self, claim: Claim) -> bool:
        """Return whether the run is still wanted."""
        return (self.root / TAKEN / claim.file_name).exists()

    def finish(self, claim: Claim, outcome: Outcome) -> bool:
        """Leave the outcome, and return whether the run was still wanted: in one step, so that nobody reads the outcome
        of an attempt that was given up."""
        with suppress(FileNotFoundError):
            write_json_file(self._outcome_path(claim.ticket), asdict(outcome), default=float)  # scalars of numpy
            if _move_file(self.root / TAKEN / claim.file_name, self.root / DONE / claim.file_name):
                return True
            self._outcome_path(claim.ticket).unlink(missing_ok=True)
        return False

    def write_heartbeat(self, worker: str) -> None:
        """Show that a worker lives. Nothing happens if the queue is gone."""
        with suppress(OSError):
            (self.root / WORKERS / worker).touch()

    def remove_worker(self, worker: str) -> None:
        (self.root / WORKERS / worker).unlink(missing_ok=True)


def _file_names(directory: Path, pattern: "re.Pattern[str]") -> List[str]:
    """Return the names that match; none if there is no directory."""
    with suppress(FileNotFoundError):
        return sorted(filter(pattern.fullmatch, os.listdir(directory)))
    return []


def _claims_by_ticket(directory: Path) -> Dict[str, Claim]:
    return {claim.ticket: claim for claim in map(Claim.from_file_name, _file_names(directory, CLAIM_PATTERN))}


def _modification_time(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _move_file(path: Path, target: Path) -> bool:
    """Move the file, and return whether this call did: NFS may report a rename as failed that it repeated."""
    try:
        os.rename(path, target)
    except FileNotFoundError:
        return target.exists()
    return True
