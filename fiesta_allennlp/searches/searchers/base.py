"""The interface of searchers: their data, and how they give the next point."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, List, Mapping, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import Registrable, build


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
    """The runs of a search that have ended, in their order, and the runs under way.

    Attributes:
        seen: the row of each run that has ended. No row is there twice.
        scores: higher is better in every objective; NaN for a run that failed. Shape: `(num_seen, num_objectives)`.
        pending: the rows under way.
    """

    points: Points
    seen: Tuple[int, ...] = ()
    scores: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))
    pending: Tuple[int, ...] = ()

    @cached_property
    def open(self) -> np.ndarray:
        """The rows that have not been started, in ascending order. Shape: `(num_open,)`."""
        return np.setdiff1d(np.arange(len(self.points)), [*self.seen, *self.pending])

    @cached_property
    def known(self) -> np.ndarray:
        """The scores, in which a failed run has the worst score seen, so that a model of the scores avoids it. Shape:
        `(num_seen, num_objectives)`.
        """
        is_failed = ~np.isfinite(self.scores).all(axis=1)
        return np.where(is_failed[:, None], self.scores[~is_failed].min(axis=0), self.scores)

    def starting(self, row: int) -> "SearchHistory":
        return replace(self, pending=(*self.pending, row))


class Searcher(Registrable):
    """Chooses which point to run next.

    A searcher holds no state, because the history holds everything. A resumed search therefore makes the same choices
    as an uninterrupted one.

    The first `num_initial` points are random. Later points are random too until a run has succeeded. Then the searcher
    proposes the point with the highest criterion, and a random one if several are equal. Points under way count as
    chosen but not as scored.

    Args:
        num_initial: the number of random points at the start.

    Attributes:
        num_objectives: the number of objectives.
        most_points: the most points that it can choose among; by default a matrix of all pairs takes 3.2 GB.
    """

    num_objectives: int = 1
    most_points: float = 20_000

    def __init__(self, *, num_initial: int = 3) -> None:
        if num_initial < 1:
            raise ConfigError(f"num_initial must be at least 1 but is {num_initial}.")
        self.num_initial = num_initial

    def propose(self, history: SearchHistory, slots: int, rng: np.random.Generator) -> List[int]:
        """Return at most `slots` different rows to run next that have not been started, or fewer if fewer are left."""
        chosen: List[int] = []
        for _ in range(min(slots, len(history.open))):
            row = self._choose_row(history, rng)
            history = history.starting(row)
            chosen.append(row)
        return chosen

    @abstractmethod
    def criterion(self, history: SearchHistory) -> np.ndarray:
        """Compute how promising each open row is. At least one run has succeeded. Shape: `(num_open,)`."""

    def _choose_row(self, history: SearchHistory, rng: np.random.Generator) -> int:
        if (
            len(history.seen) + len(history.pending) < self.num_initial
            or not np.isfinite(history.scores).all(axis=1).any()
        ):
            return int(rng.choice(history.open))
        values = self.criterion(history)
        return int(rng.choice(history.open[values == values.max()]))


@Searcher.register("random")
class Random(Searcher):
    """Random search: every open point is equally good (Bergstra and Bengio, 2012).

    Use it as the baseline for all searchers. Use it also if a score says little about the scores of near points.
    """

    most_points = float("inf")

    def criterion(self, history: SearchHistory) -> np.ndarray:
        return np.zeros(len(history.open))


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} must be {' or '.join(choices)} but is '{value}'.")


def check_above_zero(name: str, value: float) -> None:
    if not value > 0 or not np.isfinite(value):
        raise ConfigError(f"{name} must be above 0 but is {value}.")


def build_searcher(params: Mapping[str, Any]) -> Searcher:
    try:
        return build(Searcher, params)
    except ConfigError as error:
        raise ConfigError(f"--searcher {params['type']}: {error}") from error
