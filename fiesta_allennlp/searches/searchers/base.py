"""What every searcher is: what it is given, and how it gives the next point."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import List, Sequence, Tuple

import numpy as np
from allennlp.common import Registrable

from fiesta_allennlp.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Points:
    """All points that a search can run. Two are equal only if they are the same object, so that what depends on the
    inputs alone is computed once.

    Attributes:
        inputs: every input scaled to [0, 1]. Shape: `(num_points, num_inputs)`.
    """

    inputs: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True, eq=False)
class SearchHistory:
    """What a search knows: the runs that have ended, in their order, and those under way.

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
        """The rows that were never started, ascending. Shape: `(num_open,)`."""
        return np.setdiff1d(np.arange(len(self.points)), [*self.seen, *self.pending])

    @cached_property
    def has_score(self) -> bool:
        return bool(np.isfinite(self.scores).all(axis=1).any())

    @cached_property
    def known(self) -> np.ndarray:
        """The scores, with the worst one seen in place of those of a failed run: a model of the scores should keep
        away from it. Shape: `(num_seen, num_objectives)`."""
        failed = ~np.isfinite(self.scores).all(axis=1)
        return np.where(failed[:, None], self.scores[~failed].min(axis=0), self.scores)

    def starting(self, row: int) -> "SearchHistory":
        return replace(self, pending=(*self.pending, row))


class Searcher(Registrable):
    """Chooses which point to run next. Holds no state: everything is in the history, so a resumed search goes on as it
    would have.

    The first `num_initial` points are random, and so are all until a run has succeeded. Then the next point is the one
    with the highest criterion, a random one of equals. The points under way count as chosen but not as scored.

    Args:
        num_initial: how many random points come first.
    """

    num_objectives: int = 1

    def __init__(self, *, num_initial: int = 3) -> None:
        if num_initial < 1:
            raise ConfigError(f"num_initial must be at least 1 but got {num_initial}.")
        self.num_initial = num_initial

    def propose(self, history: SearchHistory, slots: int, rng: np.random.Generator) -> List[int]:
        """At most `slots` rows to run next, each another one that was never started. Fewer where no more are left."""
        chosen: List[int] = []
        for _ in range(min(slots, len(history.open))):
            row = self._next(history, rng)
            history = history.starting(row)
            chosen.append(row)
        return chosen

    def criterion(self, history: SearchHistory) -> np.ndarray:
        """How promising each open row is. At least one run has succeeded. Shape: `(num_open,)`."""
        raise NotImplementedError

    def _next(self, history: SearchHistory, rng: np.random.Generator) -> int:
        if len(history.seen) + len(history.pending) < self.num_initial or not history.has_score:
            return int(rng.choice(history.open))
        values = self.criterion(history)
        return int(rng.choice(history.open[values == values.max()]))


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse an option that is none of its choices.

    Raises:
        ConfigError: where a searcher's option is none of its choices.
    """
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)} but got '{value}'.")


def check_above_zero(name: str, value: float) -> None:
    """Refuse an option that is not a number above 0.

    Raises:
        ConfigError: where a searcher's option is not a number above 0.
    """
    if not value > 0 or not np.isfinite(value):
        raise ConfigError(f"{name} must be a number above 0 but got {value}.")
