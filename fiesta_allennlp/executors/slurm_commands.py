"""The commands of Slurm: what became of jobs, and to end them."""

import getpass
import re
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Dict, Mapping

from fiesta_allennlp.errors import describe

SECONDS_TO_ANSWER = 60.0
"""For one question to Slurm, which takes its time when it has much to do."""

ENDS = "COMPLETING"
"""The state of a job that has ended or was requeued, and whose processes are being ended."""

WAITS = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
"""States of a job in which nothing of it runs. What it had taken before is lost."""

WORKS = ("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT", ENDS)
"""States of a job of which something may run. It has ended in every other state."""

COLUMNS = "JobArrayID:60,State:30,RestartCnt:12"

SECONDS_BETWEEN_LOOKS = 0.5

WHO_SPEAKS = re.compile(r"^(\w+: )*(error|fatal|allocation failure): |^\w+: (?=Batch|Invalid|Job)", re.MULTILINE)


class SlurmDown(Exception):
    """Slurm gave no answer, or refused: what it said."""


@dataclass(frozen=True)
class JobStatus:
    """The state of a job in Slurm's words, and how often it has been requeued."""

    state: str
    life: int = 0

    @property
    def goes_on(self) -> bool:
        return self.state in WAITS + WORKS

    def has_lost(self, life: int) -> bool:
        """Whether what the job took in this life is with it no more. Of a job that is about to end it is not known."""
        return self.state != ENDS and (self.state not in WORKS or self.life != life)

    def in_words(self) -> str:
        if self.goes_on:
            return "was requeued"
        return f"ended as {self.state}" if self.state else "is one that Slurm has forgotten"


def ask(*command: str) -> str:
    """The output of a command of Slurm.

    Raises:
        SlurmDown: where it fails, is not there, or takes too long.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmDown(describe(error)) from error
    if done.returncode:
        said = [line.strip() for line in WHO_SPEAKS.sub("", done.stderr).splitlines()]
        raise SlurmDown("; ".join(dict.fromkeys(filter(None, said))) or f"{command[0]} failed")
    return done.stdout


def statuses_of(name: str) -> Dict[str, JobStatus]:
    """All jobs of this name that Slurm remembers, by id: it forgets them minutes after their end.

    Raises:
        SlurmDown: where Slurm gives no answer.
    """
    told = ask("squeue", "--noheader", "--array", "--all", "--states=all", f"--name={name}", f"--Format={COLUMNS}")
    rows = [line.split() for line in told.splitlines() if line.strip()]
    return {job: JobStatus(state, int(life) if life.isdigit() else 0) for job, state, life in rows}


def last_status(job: str) -> JobStatus:
    """That of a job which the scheduler has forgotten, where the cluster keeps accounts; else no state."""
    with suppress(SlurmDown):
        told = ask("sacct", "--noheader", "--allocations", "--parsable2", "--format=State", f"--jobs={job}")
        return JobStatus((told.split() or [""])[0])
    return JobStatus("")


def cancel(name: str) -> Dict[str, int]:
    """Cancel all jobs of this name. Returns how many there were, by state in lower case.

    Raises:
        SlurmDown: where Slurm gives no answer.
    """
    mine = (f"--name={name}", f"--user={getpass.getuser()}")
    states = [state for state in ask("squeue", "--noheader", "--array", "--format=%T", *mine).split() if state != ENDS]
    if states:
        ask("scancel", *mine)
    return {state.lower(): states.count(state) for state in sorted(set(states), reverse=True)}


def wait_for_end(name: str, seconds: float) -> None:
    """Wait until no job of this name goes on, but not for longer than this.

    Raises:
        SlurmDown: where Slurm gives no answer.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(status.goes_on for status in statuses_of(name).values()):
        time.sleep(SECONDS_BETWEEN_LOOKS)


def cancelled_in_words(counts: Mapping[str, int]) -> str:
    """What `cancel` did; empty where there was nothing to cancel."""
    if not counts:
        return ""
    each = ", ".join(f"{number} {state}" for state, number in counts.items())
    return f"Cancelled {sum(counts.values())} Slurm job(s): {each}."
