"""Runs whose Slurm job is gone."""

import logging
from collections import Counter
from typing import Collection, Dict, Optional, Sequence, Tuple

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.executors.queueing import MAX_LOSSES, Running
from fiesta_allennlp.executors.slurm_commands import JobStatus
from fiesta_allennlp.executors.slurm_jobs import SlurmJobs
from fiesta_allennlp.isolation.slurm_queue import Claim, RunQueue
from fiesta_allennlp.records import Outcome, Request

logger = logging.getLogger(__name__)

MAX_TIMEOUTS = 2
"""So many jobs may reach their time limit under the first of their runs, always the same."""


class LostRuns:
    """Finds the runs that no job has any more, and decides what becomes of each.

    `_found` has the job that had each lost run, by ticket, with what Slurm says of the job. There is no job where
    nobody knows which one had the run.
    """

    def __init__(self, shared: RunQueue, jobs: SlurmJobs) -> None:
        self._found: Dict[str, Tuple[Optional[Claim], JobStatus]] = {}
        self._shared = shared
        self._jobs = jobs
        self._num_losses: Counter[Request] = Counter()
        self._num_timeouts: Counter[Request] = Counter()

    def next(self, running: Collection[str], before: Sequence[Claim]) -> Optional[str]:
        """A lost one of the tickets in `running`. Where none is known, Slurm is asked. What has left `running`
        is forgotten.

        `before` are the runs that jobs had taken by now.
        """
        self._found = {ticket: found for ticket, found in self._found.items() if ticket in running}
        if not self._found and self._jobs.ask():
            self._find(running, before)
        return next(iter(self._found), None)

    def _find(self, running: Collection[str], before: Sequence[Claim]) -> None:
        """Find the lost ones among the tickets in `running`.

        `before` was taken when Slurm was asked. A run that a job took since then may be with it, although the job had
        not begun. A run only goes from waiting to taken to done, so they are read in this order, and what is done is
        not lost.
        """
        self._shared.refresh()
        there = {*self._shared.waiting(), *(claim.ticket for claim in self._shared.taken())}
        lost: Dict[str, Tuple[Optional[Claim], JobStatus]] = {
            ticket: (None, JobStatus("")) for ticket in running if ticket not in there
        }
        for claim in before:
            status = self._jobs.status(claim.job)
            if claim.ticket in there and status.has_lost(claim.life):
                lost[claim.ticket] = claim, status
        if lost:
            self._shared.refresh()
        done = self._shared.done()
        self._found = {ticket: found for ticket, found in lost.items() if ticket in running and ticket not in done}

    def outcome(self, ticket: str, running: Running) -> Optional[Outcome]:
        """What came of a lost run; None to start it again.

        Raises:
            FiestaError: if the time of a job is too short for this run.
        """
        claim, status = self._found[ticket]
        request = running.begun.request
        self._shared.drop(ticket)  # a job that goes on all the same, as on a node without a network, stops
        salvaged = running.evaluator.salvage(request, self._shared.directory(ticket))
        if salvaged is not None:
            return salvaged
        job = claim.job if claim is not None else "?"
        what = f"Slurm job {job} {status.in_words()}"
        if not status.goes_on and self._jobs.ran_out_of_memory(job):
            return running.begun.failed("machine", f"{what}, because it ran out of memory: {self._jobs.last_line(job)}")
        if status.state in ("FAILED", "COMPLETED"):
            return running.begun.failed("killed", f"{what} under its run: {self._jobs.last_line(job)}")
        if status.state == "TIMEOUT" and claim is not None and claim.number == 0:
            self._note_timeout(request)
        self._num_losses[request] += 1
        if self._num_losses[request] % MAX_LOSSES == 0:
            return running.begun.failed("killed", f"lost {MAX_LOSSES} times with its job: {what}")
        logger.warning("%s was lost: %s. It is started again", request.name, what)
        return None

    def _note_timeout(self, request: Request) -> None:
        """Count a job that reached its time limit with this run alone."""
        self._num_timeouts[request] += 1
        if self._num_timeouts[request] >= MAX_TIMEOUTS:
            raise FiestaError(
                f"{request.name} does not end within the time of a Slurm job: {MAX_TIMEOUTS} jobs reached their time "
                "limit with it alone. Nothing that finished is lost: go on with --recover and a longer --job-time, or "
                "have a run that takes so long count as failed with a shorter --time-limit."
            )
