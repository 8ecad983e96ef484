"""Independent quantities in (0, 1) that are known by weighted draws: P(best), and joint draws of them."""

from dataclasses import dataclass
from typing import Sequence

import numpy as np
from scipy.special import expit, logit

from fiesta_allennlp.probability.student_t import check_margin, product_of_others

MOST_CELLS = 4096
"""P(best) is integrated over at most twice as many cells. More change it in the fourth digit."""

GAUSS = (0.5 - 12**-0.5, 0.5 + 12**-0.5)
"""Nodes of a cell, with equal weights: exact for a product of up to 3 of its linear distribution functions."""


@dataclass(frozen=True, eq=False)
class Marginal:
    """One quantity Y. Its distribution function runs straight between the draws, and so has no steps.

    Attributes:
        log_odds: of the draws, log(y / (1 - y)), in ascending order. Shape: `(num_draws,)`.
        below: the distribution function there, from 0 to 1. Shape: `(num_draws,)`.
        location: mean of Y. `scale` is its standard deviation.
    """

    log_odds: np.ndarray
    below: np.ndarray
    location: float
    scale: float

    def quantile(self, probability: float) -> float:
        """The value that Y is below with this probability."""
        return float(expit(np.interp(probability, self.below, self.log_odds)))


def marginal(log_odds: np.ndarray, weights: np.ndarray) -> Marginal:
    """From draws in any order. Shapes: `(num_draws,)` both, at least 2; the weights sum to 1."""
    order = np.argsort(log_odds, kind="stable")
    weights, values = weights[order], log_odds[order]
    middle = np.cumsum(weights) - weights / 2
    y = expit(values)
    location = float(weights @ y)
    return Marginal(
        log_odds=values,
        below=(middle - middle[0]) / (middle[-1] - middle[0]),
        location=location,
        scale=float(np.sqrt(weights @ (y - location) ** 2)),
    )


def sample(marginals: Sequence[Marginal], size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of all quantities. Shape: `(size, num_marginals)`."""
    uniform = rng.random((size, len(marginals)))
    return np.column_stack([expit(np.interp(uniform[:, i], m.below, m.log_odds)) for i, m in enumerate(marginals)])


def prob_best(marginals: Sequence[Marginal], margin: float = 0.0) -> np.ndarray:
    """P(Y_i >= max_j Y_j - margin), the integral of prod_j P(Y_j <= y + margin) over P(Y_i = dy), without drawing.

    Shape: `(num_marginals,)`. It sums to 1 where `margin` is 0.

    Raises:
        ConfigError: where `margin` is negative or infinite.
    """
    check_margin(margin)
    edges = edges_of(marginals)
    if margin > 0:
        draws = np.sort(np.concatenate([m.log_odds for m in marginals]))
        edges = np.union1d(edges, _thinned(np.sort(_shifted(draws, -margin))))
    own_below = below_at(marginals, edges)
    others_below = own_below if margin == 0 else below_at(marginals, _shifted(edges, margin))
    rise = np.diff(others_below, axis=1)
    # Shape: (num_marginals, num_cells)
    products = [product_of_others(others_below[:, :-1] + node * rise) for node in GAUSS]
    result = (np.diff(own_below, axis=1) * (products[0] + products[1]) / 2).sum(axis=1)
    return np.clip(result, 0, 1) if margin > 0 else result / result.sum()


def edges_of(marginals: Sequence[Marginal]) -> np.ndarray:
    """The log odds between which all quantities are integrated, ascending."""
    return _thinned(np.sort(np.concatenate([m.log_odds for m in marginals])))


def _thinned(draws: np.ndarray) -> np.ndarray:
    """At most `MOST_CELLS` + 1 of the sorted draws, with both ends."""
    if len(draws) <= MOST_CELLS:
        return draws
    return draws[np.linspace(0, len(draws) - 1, MOST_CELLS + 1).astype(int)]


def _shifted(log_odds: np.ndarray, shift: float) -> np.ndarray:
    """The log odds of y + shift, infinite where that leaves (0, 1)."""
    return logit(np.clip(expit(log_odds) + shift, 0, 1))


def below_at(marginals: Sequence[Marginal], edges: np.ndarray) -> np.ndarray:
    """P(Y_i <= y) at each edge. Shape: `(num_marginals, num_edges)`."""
    return np.stack([np.interp(edges, m.log_odds, m.below) for m in marginals])
