"""How many more evaluations a selection will need, from its posterior alone: cheap enough for a live display."""

from typing import Optional, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from fiesta_allennlp.beliefs.base import Posterior
from fiesta_allennlp.records import Remaining

NUM_DRAWS = 200

MIDDLE_HALF = (25, 75)
"""Per cent of the draws between which the estimate lies."""

SMALLEST_GAP = 1e-9
"""In sds: two means that are nearer need more evaluations than any limit."""


def remaining(
    posterior: Posterior,
    counts: Sequence[int],
    *,
    confidence: float,
    margin: float,
    room: int,
    rng: np.random.Generator,
) -> Optional[Remaining]:
    """Estimate how many more runs a top-two rule makes until P(best) reaches the target confidence.

    The estimate uses draws of the true means. For each draw, b is the best candidate of the draw, and d_j = mu_b - mu_j
    + margin. The pair (b, j) needs a common number of runs N_j at which the expected evidence reaches z, the normal
    quantile of 1 - e. Here e is the error that each pair may have so that all pairs together have 1 - confidence; see
    `_errors_of_pairs`. Currently, n runs of both give the difference m_j, with the variance s_j^2 / n. After N runs of
    both, the expected difference is (n m_j + (N - n) d_j) / N, with the variance s_j^2 / N. Therefore x = sqrt(N)
    solves::

        d_j x^2 - z s_j x + n (m_j - d_j) = 0.

    Each candidate j still needs N_j minus its finished runs; b needs the largest N_j minus its own.

    Args:
        counts: finished runs in the order of the posterior. Shape: `(num_candidates,)`.
        room: how many more runs the limit allows.
    """
    if room < 1 or not (posterior.scale > 0).all():
        return None
    lacking = np.minimum(_lacking(posterior, np.asarray(counts, dtype=float), confidence, margin, rng), room)
    low, high = np.percentile(lacking, MIDDLE_HALF)
    return Remaining(max(1, round(low)), max(1, round(high)), is_limited=bool(high >= room))


def _lacking(
    posterior: Posterior, counts: np.ndarray, confidence: float, margin: float, rng: np.random.Generator
) -> np.ndarray:
    """How many more of all candidates, for every draw. Shape: `(NUM_DRAWS,)`."""
    draws = posterior.sample(NUM_DRAWS, rng)
    rows = np.arange(NUM_DRAWS)
    best = draws.argmax(axis=1)
    # Shapes: (NUM_DRAWS, num_candidates)
    variance = posterior.scale**2
    together = variance[best][:, None] + variance
    spread = (variance * counts)[best][:, None] + variance * counts
    equal = spread / together
    gap = np.maximum(draws[rows, best][:, None] - draws + margin, SMALLEST_GAP * np.sqrt(spread))
    ahead = posterior.location[best][:, None] - posterior.location + margin
    apart = ahead / np.sqrt(together)
    apart[rows, best] = np.inf
    z = -ndtri(np.minimum(_errors_of_pairs(ndtr(-apart), 1 - confidence), 0.5))[:, None]
    inside = z**2 * spread - 4 * gap * equal * (ahead - gap)
    root = (z * np.sqrt(spread) + np.sqrt(np.maximum(inside, 0))) / (2 * gap)
    needed = np.where((inside <= 0) | (apart >= z), 0.0, root**2)
    needed[rows, best] = needed.max(axis=1)
    return np.ceil(np.maximum(needed - counts, 0)).sum(axis=1)


def _errors_of_pairs(errors: np.ndarray, total: float) -> np.ndarray:
    """The e with sum_j min(error_j, e) = `total` in each row: those that are small enough stay as they are.

    The sum is the least of the lines k e + the sum of all but the k largest errors, so e is the largest of their
    solutions. Shapes: `(num_rows, num_errors)`, and `(num_rows,)` for the result.
    """
    rising = np.sort(errors, axis=1)
    others = np.cumsum(rising, axis=1) - rising
    return ((total - others) / np.arange(errors.shape[1], 0, -1)).max(axis=1)
