"""Limits the rate of requests to an endpoint, and notes when it is down."""

import threading
import time
from collections import Counter
from typing import Dict

MOST_OUTAGES = 2
"""The number of other answers between two failures of a question up to which an endpoint counts as down."""


class Outages:
    """Distinguishes an endpoint that is down from one that fails over one question and answers others."""

    def __init__(self) -> None:
        self._num_answered = 0
        self._answered_before: Dict[str, int] = {}
        self._num_alone: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note_answer(self) -> None:
        with self._lock:
            self._num_answered += 1

    def is_of(self, question: str) -> bool:
        """Record that a question failed, and return whether only this question fails."""
        with self._lock:
            before = self._answered_before.get(question, self._num_answered)
            self._num_alone[question] += self._num_answered > before
            self._answered_before[question] = self._num_answered
            return self._num_alone[question] >= MOST_OUTAGES


class Pace:
    """Lets callers pass one by one, `interval` seconds apart."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self, stopped: threading.Event) -> None:
        if not self._interval:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._interval
        stopped.wait(mine - now)
