"""The interface of the searchers of Zhang and Duh (2020): their data, and how they give the next point."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Tuple

import numpy as np

NUM_INITIAL = 3
"""Random points that every search of the paper begins with. They count as runs, so no target is reached before."""


@dataclass(frozen=True, eq=False)
class Points:
    """All points that a search can run.

    Two records are equal only if they are the same object. A searcher therefore computes only once what depends on the
    inputs alone.

    Attributes:
        inputs: every input scaled to [0, 1]. Shape: `(num_points, num_inputs)`.
    """

    inputs: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, eq=False)
class SearchHistory:
    """The runs of a search, in their order.

    Attributes:
        seen: the row of each run. No row is there twice.
        scores: higher is better in every objective. Shape: `(num_seen, num_objectives)`.
    """

    points: Points
    seen: Tuple[int, ...] = ()
    scores: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))

    @cached_property
    def open(self) -> np.ndarray:
        """The rows that have not been run, in ascending order. Shape: `(num_open,)`."""
        return np.setdiff1d(np.arange(len(self.points)), self.seen)


class Searcher(ABC):
    """Chooses which point to run next, from the history alone.

    The first points are random. Then the searcher proposes the point with the highest criterion, and a random one if
    several are equal.
    """

    num_objectives: int = 1

    def propose(self, history: SearchHistory, rng: np.random.Generator) -> int:
        """Return the row to run next."""
        if len(history.seen) < NUM_INITIAL:
            return int(rng.choice(history.open))
        values = self.criterion(history)
        return int(rng.choice(history.open[values == values.max()]))

    @abstractmethod
    def criterion(self, history: SearchHistory) -> np.ndarray:
        """Compute how promising each open row is. Shape: `(num_open,)`."""


class Random(Searcher):
    """Random search: every open point is equally good (Bergstra and Bengio, 2012)."""

    def criterion(self, history: SearchHistory) -> np.ndarray:
        return np.zeros(len(history.open))
