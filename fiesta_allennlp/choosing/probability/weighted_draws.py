"""Independent quantities in (0, 1) that are known by weighted draws: P(best), and joint draws of them."""

from dataclasses import dataclass
from typing import Sequence

import numpy as np
from scipy.special import expit, logit

from fiesta_allennlp.choosing.probability.independent_t import check_margin, product_of_others

MAX_CELLS = 4096
"""P(best) is integrated over at most twice as many cells. More change it in the fourth digit."""

GAUSS_NODES = (0.5 - 12**-0.5, 0.5 + 12**-0.5)
"""Nodes of a cell, with equal weights: exact for a product of up to 3 of its linear distribution functions."""


@dataclass(frozen=True, eq=False)
class EmpiricalDistribution:
    """One quantity Y. Its distribution function runs straight between the draws, and so has no steps.

    Attributes:
        log_odds: of the draws, log(y / (1 - y)), in ascending order. Shape: `(num_draws,)`.
        cdf: the distribution function there, from 0 to 1. Shape: `(num_draws,)`.
        location: mean of Y. `scale` is its standard deviation.
    """

    log_odds: np.ndarray
    cdf: np.ndarray
    location: float
    scale: float

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        """Compute the values that Y is below with these probabilities. Same shape."""
        return expit(np.interp(probabilities, self.cdf, self.log_odds))


def empirical_distribution(log_odds: np.ndarray, weights: np.ndarray) -> EmpiricalDistribution:
    """From draws in any order. Shapes: `(num_draws,)` both, at least 2; the weights sum to 1."""
    order = np.argsort(log_odds, kind="stable")
    weights, sorted_log_odds = weights[order], log_odds[order]
    midpoints = np.cumsum(weights) - weights / 2
    values = expit(sorted_log_odds)
    location = float(weights @ values)
    return EmpiricalDistribution(
        log_odds=sorted_log_odds,
        cdf=(midpoints - midpoints[0]) / (midpoints[-1] - midpoints[0]),
        location=location,
        scale=float(np.sqrt(weights @ (values - location) ** 2)),
    )


def sample(distributions: Sequence[EmpiricalDistribution], size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of all quantities. Shape: `(size, num_marginals)`."""
    uniform = rng.random((size, len(distributions)))
    return np.column_stack([own.quantiles(column) for own, column in zip(distributions, uniform.T, strict=True)])


def prob_best(distributions: Sequence[EmpiricalDistribution], margin: float = 0.0) -> np.ndarray:
    """P(Y_i >= max_j Y_j - margin), the integral of prod_j P(Y_j <= y + margin) over P(Y_i = dy), without drawing.

    Shape: `(num_marginals,)`. It sums to 1 where `margin` is 0.

    Raises:
        ConfigError: where `margin` is negative or infinite.
    """
    check_margin(margin)
    edges = cell_edges(distributions)
    if margin > 0:
        sorted_log_odds = np.sort(np.concatenate([distribution.log_odds for distribution in distributions]))
        edges = np.union1d(edges, _thin(np.sort(_shift_log_odds(sorted_log_odds, -margin))))
    own_cdf = cdf_at(distributions, edges)
    others_cdf = own_cdf if margin == 0 else cdf_at(distributions, _shift_log_odds(edges, margin))
    cdf_steps = np.diff(others_cdf, axis=1)
    # Shape: (num_marginals, num_cells)
    products = [product_of_others(others_cdf[:, :-1] + node * cdf_steps) for node in GAUSS_NODES]
    result = (np.diff(own_cdf, axis=1) * (products[0] + products[1]) / 2).sum(axis=1)
    return np.clip(result, 0, 1) if margin > 0 else result / result.sum()


def cell_edges(distributions: Sequence[EmpiricalDistribution]) -> np.ndarray:
    """The log odds between which all quantities are integrated, ascending."""
    return _thin(np.sort(np.concatenate([distribution.log_odds for distribution in distributions])))


def _thin(draws: np.ndarray) -> np.ndarray:
    """At most `MAX_CELLS` + 1 of the sorted draws, with both ends."""
    if len(draws) <= MAX_CELLS:
        return draws
    return draws[np.linspace(0, len(draws) - 1, MAX_CELLS + 1).astype(int)]


def _shift_log_odds(log_odds: np.ndarray, shift: float) -> np.ndarray:
    """The log odds of y + shift, infinite where that leaves (0, 1)."""
    return logit(np.clip(expit(log_odds) + shift, 0, 1))


def cdf_at(distributions: Sequence[EmpiricalDistribution], edges: np.ndarray) -> np.ndarray:
    """P(Y_i <= y) at each edge. Shape: `(num_marginals, num_edges)`."""
    return np.stack([np.interp(edges, distribution.log_odds, distribution.cdf) for distribution in distributions])
