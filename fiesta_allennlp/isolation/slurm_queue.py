"""The runs of a selection on a file system that its jobs share: what waits, what a job has taken, what came of it.

Every step is one `rename`, so two jobs never take the same run, and whoever reads sees all of a file or nothing. Each
attempt at a run has a directory of its own: a job that went on although it was given up, as on a node that lost its
network, writes where nobody looks any more.

Imports neither AllenNLP nor torch.
"""

import json
import os
import pickle
import shutil
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Dict, List, Optional

from fiesta_allennlp.files import PART, read_own, replacing
from fiesta_allennlp.isolation.worker import Work
from fiesta_allennlp.records import Outcome, Request


@dataclass(frozen=True)
class Claim:
    """A run that a job has taken: `ticket` names the attempt, `life` counts how often Slurm requeued the job before,
    and `number` counts from 0 the runs that the job took in this life."""

    ticket: str
    job: str
    life: int
    number: int

    @property
    def name(self) -> str:
        return f"{self.ticket}@{self.job}.{self.life}.{self.number}"

    @classmethod
    def of(cls, name: str) -> "Claim":
        ticket, _, taken = name.rpartition("@")
        job, life, number = taken.split(".")
        return cls(ticket, job, int(life), int(number))

    @property
    def run(self) -> str:
        """The name of its request."""
        return self.ticket.rpartition(".")[0]


@dataclass(frozen=True)
class RunQueue:
    """Knows every path of the queue below `root`, which bears the name that all its jobs have in Slurm."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def is_open(self) -> bool:
        return self._waiting.is_dir()

    @property
    def jobs(self) -> Path:
        """Where the jobs' own scripts and logs are."""
        return self.root / "jobs"

    @property
    def _terms(self) -> Path:
        return self.root / "terms.json"

    @property
    def _waiting(self) -> Path:
        return self.root / "waiting"

    @property
    def _taken(self) -> Path:
        return self.root / "taken"

    @property
    def _done(self) -> Path:
        return self.root / "done"

    def directory(self, ticket: str) -> Path:
        """Where this attempt at a run is made."""
        return self.root / "runs" / ticket

    def terms(self) -> Any:
        """On what terms its jobs work; None where that cannot be read."""
        with suppress(OSError, ValueError):
            return json.loads(self._terms.read_text(encoding="utf-8"))

    def open(self, terms: Any) -> None:
        """Make the queue, which jobs work through on these terms: plain data. Its files are pickles, so nobody
        else may write here."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for path in (self.jobs, self._taken, self._done, self.root / "runs"):
            path.mkdir(parents=True, exist_ok=True)
        with replacing(self._terms) as part:
            part.write_text(json.dumps(terms), encoding="utf-8")
        self._waiting.mkdir(exist_ok=True)  # last: from now on it is open

    def close(self) -> None:
        """Have all jobs stop: they see that there is no queue any more. The jobs' own logs stay."""
        for path in (self._waiting, self._taken, self._done, self.root / "runs"):
            shutil.rmtree(path, ignore_errors=True)

    # What the command does.

    def ticket_for(self, request: Request) -> str:
        """A name for the next attempt at this run, with its directory made."""
        names = (f"{request.name}.{attempt}" for attempt in count(1))
        ticket = next(name for name in names if not self.directory(name).exists())
        self.directory(ticket).mkdir()
        return ticket

    def put(self, ticket: str, work: Work) -> None:
        with replacing(self._waiting / ticket) as part:
            part.write_bytes(pickle.dumps(work))

    def withdraw(self) -> None:
        """Take back all that no job has taken."""
        for ticket in self.waiting():
            (self._waiting / ticket).unlink(missing_ok=True)

    def waiting(self) -> List[str]:
        return _names(self._waiting)

    def taken(self) -> List[Claim]:
        return [Claim.of(name) for name in _names(self._taken)]

    def done(self) -> Dict[str, Claim]:
        """By ticket."""
        claims = map(Claim.of, _names(self._done))
        return {claim.ticket: claim for claim in claims}

    def outcome(self, claim: Claim) -> Outcome:
        outcome: Outcome = pickle.loads(read_own(self._done / claim.name))
        return outcome

    def forget(self, claim: Claim) -> None:
        """What came of a run has been read."""
        (self._done / claim.name).unlink(missing_ok=True)

    def drop(self, ticket: str) -> None:
        """Give up an attempt: nobody takes it any more, and the job that has taken it stops it."""
        (self._waiting / ticket).unlink(missing_ok=True)
        for claim in self.taken():
            if claim.ticket == ticket:
                (self._taken / claim.name).unlink(missing_ok=True)

    def refresh(self) -> None:
        """Have a network file system list what has come last: a change drops what it remembers of a directory."""
        for path in (self._done, self._taken):
            with suppress(OSError):
                os.utime(path)

    # What a job does.

    def take(self, job: str, life: int, number: int) -> Optional[Claim]:
        """The run that has waited longest; None where none waits."""
        for path in sorted(self._waiting.glob("*"), key=_age):
            claim = Claim(path.name, job, life, number)
            if path.suffix != PART and _moved(path, self._taken / claim.name):
                return claim
        return None

    def work(self, claim: Claim) -> Work:
        work: Work = pickle.loads(read_own(self._taken / claim.name))
        return work

    def has(self, claim: Claim) -> bool:
        """Whether the run is still wanted."""
        return (self._taken / claim.name).exists()

    def finish(self, claim: Claim, outcome: Outcome) -> None:
        with replacing(self._done / claim.name) as part:
            part.write_bytes(pickle.dumps(outcome))
        (self._taken / claim.name).unlink(missing_ok=True)


def _names(directory: Path) -> List[str]:
    """Of a directory's files, without those that are being written; none where there is no directory."""
    with suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(directory) if not name.endswith(PART))
    return []


def _age(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _moved(path: Path, target: Path) -> bool:
    """Whether this call moved the file. NFS may report a failure of a rename that was repeated and had worked."""
    try:
        os.rename(path, target)
    except FileNotFoundError:
        return target.exists()
    return True
