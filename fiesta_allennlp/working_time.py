import time
from typing import Optional

from fiesta_allennlp.run_store import RunStore

SECONDS_BETWEEN_NOTES = 60.0


class WorkingTime:
    """How long a selection has been at work in all its sessions together, and how long it may go on.

    It is written into the store as it passes, so a session that is killed leaves out a minute at most. Measured by a
    clock that no change of the machine's time moves.

    # Parameters

    store : where the time of earlier sessions stands.
    max_hours : the most for all sessions together; None for no limit.
    """

    def __init__(self, store: RunStore, max_hours: Optional[float]) -> None:
        self._store = store
        self._max_seconds = None if max_hours is None else 3600.0 * max_hours
        self._earlier = float(store.get_meta("working_seconds") or 0.0)
        self._begin = self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._earlier + time.monotonic() - self._begin

    @property
    def is_over(self) -> bool:
        return self._max_seconds is not None and self.seconds >= self._max_seconds

    @property
    def seconds_to_wait(self) -> float:
        """How long to wait for an outcome before looking at the time again."""
        if self._max_seconds is None:
            return SECONDS_BETWEEN_NOTES
        return min(SECONDS_BETWEEN_NOTES, max(0.0, self._max_seconds - self.seconds))

    def note(self, *, at_once: bool = False) -> None:
        """Write the time down, unless that was done less than a minute ago."""
        if at_once or time.monotonic() - self._noted >= SECONDS_BETWEEN_NOTES:
            self._store.set_meta(working_seconds=self.seconds)
            self._noted = time.monotonic()
