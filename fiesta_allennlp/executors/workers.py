import os
import time
from typing import Any, Collection, Dict, Mapping, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, full_command
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.queueing import Running
from fiesta_allennlp.executors.shared_queue import SharedQueueExecutor, end_queue
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue

SECONDS_BETWEEN_SIGNS = 5.0

SECONDS_OF_SILENCE = 120.0
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
        self, directory: RunDirectory, *, seconds_of_silence: float = SECONDS_OF_SILENCE, **common: Any
    ) -> None:
        super().__init__(directory, **common)
        self._queue_directory = directory.queue
        if not seconds_of_silence > 0:
            raise ConfigError(f"seconds_of_silence must be above 0 but got {seconds_of_silence}.")
        self.slots = self._workers if isinstance(self._workers, int) else 1
        self._most_silence, self._last_look = seconds_of_silence, float("-inf")
        self._seconds_between_signs = min(SECONDS_BETWEEN_SIGNS, seconds_of_silence / 10)

    def describe(self) -> str:
        num_runs_text = (
            "as many at a time as there are workers" if self._workers == "auto" else f"up to {self.slots} at a time"
        )
        return f"{num_runs_text}, by workers of `{full_command('worker')}`"

    @property
    def _own_terms(self) -> Dict[str, Any]:
        return {"current_directory": os.getcwd(), "seconds_between_signs": self._seconds_between_signs}

    def _opened(self, shared: RunQueue) -> str:
        if self._alive():
            return ""
        root = self._directory.root.absolute()
        root = root.parent if RunDirectory(root.parent).screening.root == root else root  # workers serve both stages
        return f"Waiting for workers: run `{full_command('worker')} {root}`"

    def _closed(self, shared: RunQueue, running: Mapping[Any, Running]) -> str:
        """End all workers if the selection has ended. If it was interrupted, let them finish their runs."""
        if not running:
            return end_queue(shared, self._directory)
        shared.withdraw_waiting()
        num_left = sum(ticket in running for ticket in shared.taken())
        return f"Workers go on with {num_left} run(s); --recover takes their outcomes." if num_left else ""

    def _alive(self) -> Optional[Dict[str, float]]:
        """Return the workers that live, with their silence. Return None if the file system cannot tell."""
        shared = self._open()
        if not shared.is_open:
            raise FiestaError(f"{shared.root} was moved or deleted. Finished runs are safe: continue with --recover.")
        try:
            silence = shared.silence()
        except OSError:
            return None
        return {worker: seconds for worker, seconds in silence.items() if seconds <= self._most_silence}

    def _lost_tickets(self, claims: Collection[Claim]) -> Dict[str, Any]:
        if time.monotonic() - self._last_look < self._seconds_between_signs:
            return {}
        self._last_look = time.monotonic()
        shared = self._open()
        shared.refresh()
        alive = self._alive()
        if alive is None:
            return {}
        if self._workers == "auto":
            self.slots = max(1, len(alive))
            self._start_queued()
        return dict(shared.lost(self._running, claims, lambda claim: claim.job not in alive))

    def _loss_reason(self, loss: Optional[Claim], running: Running) -> str:
        return "its worker ended" if loss is None else f"worker {loss.job} gave no sign of life"
