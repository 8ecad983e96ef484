"""What a search is worth by the order in which it ran the points of a table: the protocols of Zhang and Duh (2020)."""

from dataclasses import dataclass
from typing import Dict, Sequence

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.tables import SearchTable

NUM_INITIAL = 3
"""Random points that every search of the paper begins with. They count as runs, so no target is reached before."""

BLEU_TOLERANCE = 0.5
BUDGET, FRONT_BUDGET = 20, 50
"""The paper's, with one objective and with two."""

MEANINGS = {
    "ftb": "runs until the best",
    "ftc": "runs until one within the tolerance of the best",
    "fb": "what the best of the first runs is below the best of all",
    "fto": "runs until the first of the front",
    "fta": "runs until the whole front",
    "fbp": "how many of the front are among the first runs",
}


@dataclass(frozen=True)
class Protocol:
    """How searches are compared.

    Attributes:
        tolerance: of `ftc`, in units of the score.
        budget: the first runs, of `fb` and `fbp`.
        num_initial: the number of random points at the beginning.
    """

    tolerance: float = BLEU_TOLERANCE
    budget: int = BUDGET
    num_initial: int = NUM_INITIAL

    def check(self, table: SearchTable) -> None:
        """Refuse a table that is too small.

        Raises:
            ConfigError: where the table has fewer points than are to be run.
        """
        if max(self.budget, self.num_initial) > len(table.points):
            raise ConfigError(
                f"{table.name}: has {len(table.points)} runs, but the budget is {self.budget} after "
                f"{self.num_initial} random ones."
            )

    def measures(self, order: Sequence[int], table: SearchTable) -> Dict[str, float]:
        """The protocols of one objective, or those of two, by name. `order` has every row that they ask for."""
        if table.scores.shape[1] > 1:
            return self._of_front(order, table)
        scores = table.scores[:, 0]
        best = np.nanmax(scores)
        return {
            "ftb": self._first(order, [int(np.nanargmax(scores))]),
            "ftc": self._first(order, np.flatnonzero(scores >= best - self.tolerance)),
            "fb": float(best - np.nanmax(scores[list(order[: self.budget])], initial=-np.inf)),
        }

    def is_settled(self, order: Sequence[int], table: SearchTable) -> bool:
        """Whether further runs cannot change a measure."""
        if len(order) < max(self.budget, self.num_initial):
            return False
        targets = table.front if table.scores.shape[1] > 1 else [int(np.nanargmax(table.scores[:, 0]))]
        return set(order).issuperset(targets)

    def _of_front(self, order: Sequence[int], table: SearchTable) -> Dict[str, float]:
        front = table.front
        return {
            "fto": self._first(order, front),
            "fta": max(self._first(order, [row]) for row in front),
            "fbp": len(set(order[: self.budget]).intersection(front.tolist())),
        }

    def _first(self, order: Sequence[int], targets: Sequence[int]) -> int:
        """The number of runs after which one of the targets was run."""
        wanted = set(np.asarray(targets).tolist())
        return max(self.num_initial, 1 + next(place for place, row in enumerate(order) if row in wanted))
