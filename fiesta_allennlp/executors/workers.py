import time
from typing import Any, Collection, Dict, Mapping, Optional, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, full_command
from fiesta_allennlp.core.records import Failure
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.queueing import ActiveRun
from fiesta_allennlp.executors.shared_queue import SharedQueueExecutor, end_queue
from fiesta_allennlp.isolation.run_queue import Claim

HEARTBEAT_SECONDS = 5.0

MAX_SILENCE_SECONDS = 120.0
"""After which a worker is lost. A network file system may show a new file after a minute."""


@Executor.register("workers")
class WorkersExecutor(SharedQueueExecutor):
    """Leaves the runs to workers, which `fiesta worker DIR` starts on any machine that shares the run directory.

    Workers may join and leave at any time. A run is lost, and starts again with another worker, if its own was ended or
    gave no sign of life. An interrupted command leaves the runs that workers make, and `--recover` takes their
    outcomes. At the end of the selection all workers end.

    Args:
        directory: the run directory, on the shared file system, under the same path on all machines.
        seconds_of_silence: time without a sign of life after which a worker is lost.
        common: arguments of `QueueingExecutor`. `workers` is the number of runs in the queue at once. With `auto`,
            there are as many as workers, and at least one.

    Raises:
        ConfigError: if a number is below its least value.
    """

    gives_devices = True

    def __init__(
        self, directory: RunDirectory, *, seconds_of_silence: float = MAX_SILENCE_SECONDS, **common: Any
    ) -> None:
        super().__init__(directory, **common)
        self.queue_directory = directory.queue
        if not seconds_of_silence > 0:
            raise ConfigError(f"seconds_of_silence must be above 0 but got {seconds_of_silence}.")
        self.slots = self.workers if isinstance(self.workers, int) else 1
        self._max_silence_seconds, self._last_check_time = seconds_of_silence, float("-inf")
        self._heartbeat_seconds = min(HEARTBEAT_SECONDS, seconds_of_silence / 10)

    def describe(self) -> str:
        number = "as many at a time as there are" if self.workers == "auto" else f"up to {self.slots} at a time, by"
        return f"{number} workers of `{full_command('worker')}`"

    def queue_terms(self) -> Dict[str, Any]:
        return {"seconds_between_signs": self._heartbeat_seconds}

    def open_jobs(self) -> str:
        if self._live_workers():
            return ""
        return f"Waiting for workers: run `{full_command('worker')} {self.directory.root.absolute()}`"

    def close_jobs(self, runs: Mapping[str, ActiveRun]) -> str:
        """End all workers if the selection has ended. If it was interrupted, let them finish their runs."""
        if not runs:
            return end_queue(self.queue, self.directory)
        self.queue.withdraw_waiting()
        num_left = sum(ticket in runs for ticket in self.queue.taken_claims())
        return f"Workers continue {num_left} run(s); --recover collects the results." if num_left else ""

    def _live_workers(self) -> Optional[Dict[str, float]]:
        """Return the workers that live, with the seconds since their heartbeat. Return None if the file system cannot
        tell."""
        if not self.queue.is_open:
            raise FiestaError(f"{self.queue.root} was moved or deleted. Continue with --recover.")
        try:
            silence = self.queue.seconds_since_heartbeat()
        except OSError:
            return None
        return {worker: seconds for worker, seconds in silence.items() if seconds <= self._max_silence_seconds}

    def _num_set_aside(self) -> int:
        """Return the number of runs that wait for another machine than those they failed on. They take no slot, so that
        the machines have others to make."""
        waiting = {*self.queue.waiting_tickets()}
        runs = {ticket: run.start.request.key for ticket, run in self.active_runs.items()}
        return sum(ticket in waiting and run in self.machines.failed_on for ticket, run in runs.items())

    def find_lost_runs(self, taken: Collection[Claim], done: Collection[Claim]) -> Dict[str, Union[str, Failure]]:
        if time.monotonic() - self._last_check_time < self._heartbeat_seconds:
            return {}
        self._last_check_time = time.monotonic()
        self.queue.refresh_listings()
        live_workers = self._live_workers()
        if live_workers is None:
            return {}
        base_slots = self.workers if isinstance(self.workers, int) else max(1, len(live_workers))
        self.slots = base_slots + self._num_set_aside()
        self.fill_slots()
        lost_claims = self.queue.find_lost(self.active_runs, taken, lambda claim: claim.job not in live_workers)
        return {
            ticket: "its worker ended" if claim is None else f"worker {claim.job} gave no sign of life"
            for ticket, claim in lost_claims.items()
        }
