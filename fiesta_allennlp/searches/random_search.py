"""What random search comes to on a table, exactly: the row that every searcher is compared with."""

from typing import Dict, Tuple

import numpy as np
from scipy.special import gammaln

from fiesta_allennlp.searches.protocols import Protocol
from fiesta_allennlp.searches.tables import SearchTable


def exact_random_search(table: SearchTable, protocol: Protocol) -> Dict[str, Tuple[float, float]]:
    """Mean and standard deviation of every measure, with each order of the n points equally probable.

    The first of m targets is at place k with probability C(n - k, m - 1) / C(n, m), the last with C(k - 1, m - 1) /
    C(n, m). The best of the first B points is the one with rank r with probability C(n - r, B - 1) / C(n, B).
    """
    number = len(table.points)
    places = np.arange(1, number + 1)
    runs = np.maximum(places, protocol.num_initial)
    if table.scores.shape[1] > 1:
        size, budget = len(table.front), protocol.budget
        share = size / number
        spread = budget * share * (1 - share) * (number - budget) / (number - 1)
        return {
            "fto": _moments(runs, _choose(number - places, size - 1) / _choose(number, size)),
            "fta": _moments(runs, _choose(places - 1, size - 1) / _choose(number, size)),
            "fbp": (budget * share, float(np.sqrt(spread))),
        }
    scores = np.sort(table.scores[table.succeeded, 0])[::-1]
    close = int((scores >= scores[0] - protocol.tolerance).sum())
    best = _choose(number - places[: len(scores)], protocol.budget - 1) / _choose(number, protocol.budget)
    return {
        "ftb": _moments(runs, np.full(number, 1 / number)),
        "ftc": _moments(runs, _choose(number - places, close - 1) / _choose(number, close)),
        "fb": _moments(scores[0] - scores, best / best.sum()),
    }


def _choose(number: "int | np.ndarray", size: int) -> np.ndarray:
    """Binomial coefficients, 0 where there are too few. As floats, and of tables of a few hundred points."""
    number = np.asarray(number, dtype=float)
    enough = np.maximum(number, size)
    return np.where(number < size, 0.0, np.exp(gammaln(enough + 1) - gammaln(size + 1) - gammaln(enough - size + 1)))


def _moments(values: np.ndarray, probabilities: np.ndarray) -> Tuple[float, float]:
    mean = float(values @ probabilities)
    return mean, float(np.sqrt(np.maximum((values - mean) ** 2 @ probabilities, 0)))
