"""The noise that all candidates have in common, from one number for each candidate and unit.

Arrays of numbers have the shape `(num_selections, num_candidates, num_units)`, with NaN where a candidate has none.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import numpy as np
from scipy.special import digamma, polygamma

PRIOR_DF = 4.0
"""d0, the degrees of freedom that the noise of all candidates adds to the variance of a lead."""

MIN_VARIANCE_SHARE = 0.001
"""The least of the variances that are pooled, as a share of their mean: a constant candidate would pull them to 0."""

MAX_UNIT_SHARE = 0.98
"""The greatest share of the variance that effects of units explain."""

ROUNDING = 1e-13
"""Deviations smaller than this share of the numbers are rounding errors."""


@dataclass(frozen=True, eq=False)
class PooledNoise:
    """The noise that all candidates have in common. Shape of each: `(num_selections,)`.

    Attributes:
        variance: s0^2, of the numbers around the means of candidates and the effects of units.
        unit_share: b, the share of the whole variance that effects of units explain.
        df: d, the degrees of freedom that `variance` adds to the variance of a lead.
        varied: whether anything varied. If not, there is no estimate, and `variance` is 1.
    """

    variance: np.ndarray
    unit_share: np.ndarray
    df: np.ndarray
    varied: np.ndarray


class Table:
    """The numbers of each candidate around its own mean, and what is counted and summed of them.

    Args:
        numbers: shape `(num_selections, num_candidates, num_units)`.
        unseen_squares: squared deviations that the numbers of a candidate do not show and that count as well; none by
            default. Shape: `(num_selections, num_candidates)`.
    """

    def __init__(self, numbers: np.ndarray, unseen_squares: Optional[np.ndarray] = None) -> None:
        is_there = ~np.isnan(numbers)
        # float: products of matrices of it follow. Shape: (num_selections, num_candidates, num_units)
        self.is_there = is_there.astype(float)
        # Shape: (num_selections, num_candidates)
        self.num_units = self.is_there.sum(axis=2)
        numbers = np.where(is_there, numbers, 0.0)
        self.own_means = numbers.sum(axis=2) / np.maximum(self.num_units, 1)
        self.deviations = np.where(is_there, numbers - self.own_means[:, :, None], 0.0)
        self.unseen_squares = np.zeros(self.num_units.shape) if unseen_squares is None else unseen_squares
        self.resolution = (ROUNDING * np.abs(numbers).max(axis=2)) ** 2

    @cached_property
    def num_common(self) -> np.ndarray:
        """The number of common units of each pair. Shape: `(num_selections, num_candidates, num_candidates)`."""
        return self.is_there @ self.is_there.swapaxes(1, 2)

    @property
    def variances(self) -> np.ndarray:
        """The variance of each candidate's numbers; 0 with a single unit. Shape: `(num_selections, num_candidates)`."""
        sums_of_squares = (self.deviations**2).sum(axis=2) + self.unseen_squares
        variances = sums_of_squares / np.maximum(self.num_units - 1, 1)
        return np.where(variances > self.resolution, variances, 0.0)

    @property
    def difference_variances(self) -> np.ndarray:
        """Half the variance of each pair's differences on common units. Shape: that of `num_common`."""
        common = self.is_there.swapaxes(1, 2)
        sums, squares = self.deviations @ common, self.deviations**2 @ common
        products = self.deviations @ self.deviations.swapaxes(1, 2)
        both = squares + squares.swapaxes(1, 2)
        difference_sums = sums - sums.swapaxes(1, 2)
        sums_of_squares = both - 2 * products - difference_sums**2 / np.maximum(self.num_common, 1)
        sums_of_squares += self.unseen_squares[:, :, None] + self.unseen_squares[:, None, :]
        resolution = self.resolution[:, :, None] + self.resolution[:, None, :] + ROUNDING * both
        variances = sums_of_squares / np.maximum(self.num_common - 1, 1) / 2
        return np.where(variances > resolution, variances, 0.0)


def pool_noise(table: Table) -> PooledNoise:
    """Pool the noise of all candidates.

    v_i are the half variances of the differences of all pairs of candidates with at least 2 common units, each at least
    0.1% of their mean, and d_i their degrees of freedom, the common units - 1 (Smyth, 2004)::

        log s0^2 = sum w_i (log v_i - psi(d_i / 2) + log(d_i / 2)) / sum w_i,   w_i = 1 / psi1(d_i / 2)

    In the same way, s^2 comes from the variances of the single candidates. It is at least s0^2, and::

        b = min(0.98, 1 - s0^2 / s^2)

    Without such a pair, s0 = s and b = 0. With q variances pooled into s0, d = d0 (1 - 1 / q): what a variance learns
    from itself does not count.
    """
    pairs = np.triu_indices(table.num_units.shape[1], 1)
    of_pairs = _pool(table.difference_variances[:, pairs[0], pairs[1]], table.num_common[:, pairs[0], pairs[1]] - 1)
    of_candidates = _pool(table.variances, table.num_units - 1)
    has_pairs = of_pairs.number > 0
    variance = np.where(has_pairs, of_pairs.variance, of_candidates.variance)
    number = np.where(has_pairs, of_pairs.number, of_candidates.number)
    varied = variance > 0
    variance = np.where(varied, variance, 1.0)
    unit_share = np.minimum(MAX_UNIT_SHARE, 1 - variance / np.maximum(of_candidates.variance, variance))
    return PooledNoise(variance, unit_share, PRIOR_DF * (1 - 1 / np.maximum(number, 1)), varied)


@dataclass(frozen=True, eq=False)
class _Pool:
    """A pooled variance and how many went into it. Shape: `(num_selections,)` both."""

    variance: np.ndarray
    number: np.ndarray


def _pool(variances: np.ndarray, df: np.ndarray) -> _Pool:
    """Pool variances that have at least one degree of freedom. Shape of both: `(num_selections, num_variances)`."""
    is_known = df > 0
    number = is_known.sum(axis=1)
    mean = np.where(is_known, variances, 0.0).sum(axis=1) / np.maximum(number, 1)
    # df are whole numbers: the functions of each are computed once.
    half_df = np.arange(1, max(int(df.max(initial=1)), 1) + 1) / 2
    places = np.maximum(df.astype(int), 1) - 1
    weights = np.where(is_known, (1 / polygamma(1, half_df))[places], 0.0)
    floored = np.maximum(variances, MIN_VARIANCE_SHARE * mean[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_variances = np.log(floored) + (np.log(half_df) - digamma(half_df))[places]
        pooled = np.exp(np.where(is_known, weights * log_variances, 0.0).sum(axis=1) / weights.sum(axis=1))
    return _Pool(np.where(mean > 0, pooled, 0.0), number)
