"""Searches by table lookup, as Zhang and Duh (2020) compare searchers: the same searcher again and again over systems
that have been trained, by the protocols of the paper and beside the exact values of random search."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np
from scipy.special import gammaln
from searchers.base import NUM_INITIAL, Points, Searcher, SearchHistory
from searchers.covariances import pareto_front

from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.seeding import replay_rng

SEARCH_STREAM = 7
"""The key of a trial's random points, among the streams of `core/seeding.py`."""

OBJECTIVES = ("dev_bleu", "dev_gpu_time", "dev_ppl", "num_updates", "gpu_memory", "num_param")
"""The columns of `.evals`."""

UNKNOWN_AS_ZERO = "gpu_memory"


@dataclass(frozen=True, eq=False)
class SearchTable:
    """Runs that have finished, one for each point.

    Attributes:
        objectives: what is optimised, `-NAME` what is minimised.
        scores: higher is better, so those of a minimised objective are negated; NaN is a run that failed. Shape:
            `(num_points, num_objectives)`.
    """

    name: str
    points: Points
    objectives: Tuple[str, ...]
    scores: np.ndarray

    @cached_property
    def succeeded(self) -> np.ndarray:
        """Which runs have all scores. Shape: `(num_points,)`."""
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    @cached_property
    def front(self) -> np.ndarray:
        """The rows that no other one dominates, ascending. Shape: `(num_front,)`."""
        rows = np.flatnonzero(self.succeeded)
        return rows[pareto_front(self.scores[rows])]


def read_files(stem: Path, objectives: Sequence[str]) -> SearchTable:
    """The table in STEM.hyps_scaled and STEM.evals. Row i of each is the same system."""
    inputs, evals = (np.loadtxt(f"{stem}{ending}", delimiter="\t", ndmin=2) for ending in (".hyps_scaled", ".evals"))
    values = dict(zip(OBJECTIVES, evals.T, strict=True))
    values[UNKNOWN_AS_ZERO] = np.where(values[UNKNOWN_AS_ZERO] == 0, np.nan, values[UNKNOWN_AS_ZERO])
    metrics = [Metric.parse(objective) for objective in objectives]
    scores = np.column_stack([metric.sign * values[metric.name] for metric in metrics])
    return SearchTable(stem.name, Points(inputs), tuple(objectives), scores)


# The protocols.

BLEU_TOLERANCE = 0.5
BUDGET, FRONT_BUDGET = 20, 50
"""The paper's, with one objective and with two."""


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

    def measures(self, order: Sequence[int], table: SearchTable) -> Dict[str, float]:
        """The protocols of one objective, or those of two, by name. `order` has every row that they ask for."""
        if table.scores.shape[1] > 1:
            return self._of_front(order, table)
        scores = table.scores[:, 0]
        best = np.nanmax(scores)
        return {
            "ftb": self._num_runs_until(order, [int(np.nanargmax(scores))]),
            "ftc": self._num_runs_until(order, np.flatnonzero(scores >= best - self.tolerance)),
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
            "fto": self._num_runs_until(order, front),
            "fta": max(self._num_runs_until(order, [row]) for row in front),
            "fbp": len(set(order[: self.budget]).intersection(front.tolist())),
        }

    def _num_runs_until(self, order: Sequence[int], targets: Sequence[int]) -> int:
        """The number of runs after which one of the targets was run."""
        target_rows = set(np.asarray(targets).tolist())
        return max(self.num_initial, 1 + next(position for position, row in enumerate(order) if row in target_rows))


def exact_random_search(table: SearchTable, protocol: Protocol) -> Dict[str, Tuple[float, float]]:
    """Mean and standard deviation of every measure, with each order of the n points equally probable.

    The first of m targets is at place k with probability C(n - k, m - 1) / C(n, m), the last with C(k - 1, m - 1) /
    C(n, m). The best of the first B points is the one with rank r with probability C(n - r, B - 1) / C(n, B).
    """
    num_points = len(table.points)
    places = np.arange(1, num_points + 1)
    runs = np.maximum(places, protocol.num_initial)
    if table.scores.shape[1] > 1:
        num_front, budget = len(table.front), protocol.budget
        share = num_front / num_points
        variance = budget * share * (1 - share) * (num_points - budget) / (num_points - 1)
        return {
            "fto": _mean_and_sd(runs, _choose(num_points - places, num_front - 1) / _choose(num_points, num_front)),
            "fta": _mean_and_sd(runs, _choose(places - 1, num_front - 1) / _choose(num_points, num_front)),
            "fbp": (budget * share, float(np.sqrt(variance))),
        }
    scores = np.sort(table.scores[table.succeeded, 0])[::-1]
    num_close = int((scores >= scores[0] - protocol.tolerance).sum())
    best = _choose(num_points - places[: len(scores)], protocol.budget - 1) / _choose(num_points, protocol.budget)
    return {
        "ftb": _mean_and_sd(runs, np.full(num_points, 1 / num_points)),
        "ftc": _mean_and_sd(runs, _choose(num_points - places, num_close - 1) / _choose(num_points, num_close)),
        "fb": _mean_and_sd(scores[0] - scores, best / best.sum()),
    }


def _choose(number: "int | np.ndarray", size: int) -> np.ndarray:
    """Binomial coefficients, 0 where there are too few. As floats, and of tables of a few hundred points."""
    number = np.asarray(number, dtype=float)
    enough = np.maximum(number, size)
    return np.where(number < size, 0.0, np.exp(gammaln(enough + 1) - gammaln(size + 1) - gammaln(enough - size + 1)))


def _mean_and_sd(values: np.ndarray, probabilities: np.ndarray) -> Tuple[float, float]:
    mean = float(values @ probabilities)
    return mean, float(np.sqrt(np.maximum((values - mean) ** 2 @ probabilities, 0)))


# The searches.


@dataclass(frozen=True, eq=False)
class Measures:
    """The measures of all trials, by the protocol's name. Shape of each: `(num_trials,)`."""

    values: Mapping[str, np.ndarray]

    @classmethod
    def from_trials(cls, trials: Sequence[Mapping[str, float]]) -> "Measures":
        return cls({name: np.array([trial[name] for trial in trials]) for name in trials[0]})

    def mean_and_sd(self, name: str) -> Tuple[float, float]:
        """Return those of a measure; the standard deviation is that of the trials as a population, as in the paper."""
        return float(self.values[name].mean()), float(self.values[name].std())


@dataclass(frozen=True, eq=False)
class Lookup:
    """One searcher on one table.

    Attributes:
        seed: master random seed. A trial begins with the same random points whatever the searcher is.
    """

    table: SearchTable
    searcher: Searcher
    protocol: Protocol
    seed: int

    def order(self, trial: int) -> List[int]:
        """Return the rows in the order in which they are run, as many as the protocol needs."""
        rng = replay_rng(self.seed, SEARCH_STREAM, trial)
        history = SearchHistory(self.table.points, scores=self.table.scores[:0])
        while not self.protocol.is_settled(history.seen, self.table):
            seen = (*history.seen, self.searcher.propose(history, rng))
            history = replace(history, seen=seen, scores=self.table.scores[list(seen)])
        return list(history.seen)

    def run(self, num_trials: int) -> Measures:
        """Return the measures of trials 0 to `num_trials` - 1."""
        return Measures.from_trials(
            [self.protocol.measures(self.order(trial), self.table) for trial in range(num_trials)]
        )
