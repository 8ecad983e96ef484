"""Searches by table lookup, as Zhang and Duh (2020) compare searchers: the same searcher again and again over systems
that have been trained, by the protocols of the paper and beside the exact values of random search."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Sequence, Tuple

import numpy as np
from gaussian_processes import Points, pareto_front
from scipy.special import comb
from searchers import NUM_INITIAL, Searcher, SearchHistory

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
        scores: higher is better, so those of a minimised objective are negated; NaN is a run that failed. Shape:
            `(num_points, num_objectives)`.
    """

    name: str
    points: Points
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

    @cached_property
    def targets(self) -> np.ndarray:
        """The rows that a search is for: the front of two objectives, or the best of one. Shape: `(num_targets,)`."""
        return self.front if self.scores.shape[1] > 1 else np.array([np.nanargmax(self.scores[:, 0])])


def read_files(stem: Path, objectives: Sequence[str]) -> SearchTable:
    """The table in STEM.hyps_scaled and STEM.evals, whose row i is the same system. `-NAME` is minimised."""
    inputs, evals = (np.loadtxt(f"{stem}{ending}", delimiter="\t", ndmin=2) for ending in (".hyps_scaled", ".evals"))
    values = dict(zip(OBJECTIVES, evals.T, strict=True))
    values[UNKNOWN_AS_ZERO] = np.where(values[UNKNOWN_AS_ZERO] == 0, np.nan, values[UNKNOWN_AS_ZERO])
    metrics = [Metric.parse(objective) for objective in objectives]
    scores = np.column_stack([metric.sign * values[metric.name] for metric in metrics])
    return SearchTable(stem.name, Points(inputs), scores)


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
    """

    tolerance: float = BLEU_TOLERANCE
    budget: int = BUDGET

    def measures(self, order: Sequence[int], table: SearchTable) -> Dict[str, float]:
        """The protocols of one objective, or those of two, by name. `order` has every row that they ask for."""
        if table.scores.shape[1] > 1:
            return {
                "fto": _num_runs_until(order, table.front),
                "fta": max(_num_runs_until(order, [row]) for row in table.front),
                "fbp": len(set(order[: self.budget]).intersection(table.front.tolist())),
            }
        scores = table.scores[:, 0]
        best = np.nanmax(scores)
        return {
            "ftb": _num_runs_until(order, table.targets),
            "ftc": _num_runs_until(order, np.flatnonzero(scores >= best - self.tolerance)),
            "fb": float(best - np.nanmax(scores[list(order[: self.budget])], initial=-np.inf)),
        }

    def is_settled(self, order: Sequence[int], table: SearchTable) -> bool:
        """Whether further runs cannot change a measure."""
        return len(order) >= max(self.budget, NUM_INITIAL) and set(order).issuperset(table.targets)


def _num_runs_until(order: Sequence[int], targets: Sequence[int] | np.ndarray) -> int:
    """The number of runs after which one of the targets was run."""
    return max(NUM_INITIAL, 1 + int(np.isin(order, targets).argmax()))


def exact_random_search(table: SearchTable, protocol: Protocol) -> Dict[str, Tuple[float, float]]:
    """Mean and standard deviation of every measure, with each order of the n points equally probable.

    The first of m targets is at place k with probability C(n - k, m - 1) / C(n, m), the last with C(k - 1, m - 1) /
    C(n, m). The best of the first B points is the one with rank r with probability C(n - r, B - 1) / C(n, B).
    """
    num_points, budget = len(table.points), protocol.budget
    places = np.arange(1, num_points + 1)
    runs = np.maximum(places, NUM_INITIAL)
    if table.scores.shape[1] > 1:
        num_front = len(table.front)
        share = num_front / num_points
        variance = budget * share * (1 - share) * (num_points - budget) / (num_points - 1)
        return {
            "fto": _moments(runs, comb(num_points - places, num_front - 1) / comb(num_points, num_front)),
            "fta": _moments(runs, comb(places - 1, num_front - 1) / comb(num_points, num_front)),
            "fbp": (budget * share, float(np.sqrt(variance))),
        }
    scores = np.sort(table.scores[table.succeeded, 0])[::-1]
    num_close = int((scores >= scores[0] - protocol.tolerance).sum())
    best = comb(num_points - places[: len(scores)], budget - 1)
    return {
        "ftb": _moments(runs, np.full(num_points, 1 / num_points)),
        "ftc": _moments(runs, comb(num_points - places, num_close - 1) / comb(num_points, num_close)),
        "fb": _moments(scores[0] - scores, best / best.sum()),
    }


def _moments(values: np.ndarray, probabilities: np.ndarray) -> Tuple[float, float]:
    mean = float(values @ probabilities)
    return mean, float(np.sqrt((values - mean) ** 2 @ probabilities))


def find_order(table: SearchTable, searcher: Searcher, protocol: Protocol, rng: np.random.Generator) -> List[int]:
    """Return the rows in the order in which a search runs them, as many as the protocol needs."""
    history = SearchHistory(table.points, scores=table.scores[:0])
    while not protocol.is_settled(history.seen, table):
        seen = (*history.seen, searcher.propose(history, rng))
        history = replace(history, seen=seen, scores=table.scores[list(seen)])
    return list(history.seen)


def repeat_search(
    table: SearchTable, searcher: Searcher, protocol: Protocol, *, num_trials: int, seed: int
) -> Dict[str, np.ndarray]:
    """Return the measures of so many trials. A trial begins with the same random points whatever the searcher is. Shape
    of each: `(num_trials,)`."""
    rngs = [replay_rng(seed, SEARCH_STREAM, trial) for trial in range(num_trials)]
    return collect(protocol.measures(find_order(table, searcher, protocol, rng), table) for rng in rngs)


def collect(trials: Iterable[Mapping[str, float]]) -> Dict[str, np.ndarray]:
    """Return the values of each measure. Shape of each: `(num_trials,)`."""
    rows = list(trials)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
