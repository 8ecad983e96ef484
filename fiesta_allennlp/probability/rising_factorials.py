"""Logarithms of rising factorials, summed over documents: what counts tell of the rates behind them."""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from scipy.special import digamma, gammaln

STEP = 0.1
"""Distance of the nodes of a table, in log x. The cubic between them is off by 1e-7 of the number of documents."""

LEAST_NODES = 4
MOST_NODES = 400

SHIFT = 6
"""The asymptotic series of trigamma is taken this far to the right."""


@dataclass(frozen=True, eq=False)
class RisingFactorials:
    """S_k(x) = sum_d log [Gamma(x + c_dk) / Gamma(x)] for counts c_dk of each kind k over documents d.

    Only those kinds are kept that were counted at all, for the others are S_k = 0. Arguments are u = log x of the shape
    `(..., num_kept)`. Documents with equal counts of a kind are one term, so that the cost depends on the number of
    different counts alone.

    Attributes:
        kept: the kinds that were counted. Shape: `(num_kept,)`.
        num_positive: in how many documents each kind was counted. Shape: `(num_kept,)`.
        counts: each different count above 0, kind after kind. Shape: `(num_terms,)`.
        times: in how many documents it occurs. Shape: `(num_terms,)`.
        owner: the position in `kept` of each term. Shape: `(num_terms,)`.
    """

    kept: np.ndarray
    num_positive: np.ndarray
    counts: np.ndarray
    times: np.ndarray
    owner: np.ndarray

    def value(self, u: np.ndarray) -> np.ndarray:
        """S_k. Same shape as `u`."""
        x = np.exp(u)[..., self.owner]
        # Gamma(x) = Gamma(1 + x) / x, so that nothing overflows at small x.
        terms = self.times * (gammaln(x + self.counts) - gammaln(x + 1))
        return self.num_positive * u + self._sum(terms)

    def derivatives(self, u: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """dS_k / du and d^2 S_k / du^2. Same shapes as `u`."""
        x = np.exp(u)[..., self.owner]
        first = self.times * x * (digamma(x + self.counts) - digamma(x + 1))
        second = self.times * x**2 * (trigamma(x + self.counts) - trigamma(x + 1))
        slope = self._sum(first)
        return self.num_positive + slope, slope + self._sum(second)

    def tabulated(self, u: np.ndarray) -> np.ndarray:
        """S_k by a table and cubics, for many arguments. Shape: `(num_arguments, num_kept)`, also of `u`."""
        low, high = u.min(axis=0), u.max(axis=0)
        widest = float((high - low).max(initial=0))
        num_nodes = int(np.clip(np.ceil(widest / STEP) + 1, LEAST_NODES, MOST_NODES))
        step = np.maximum((high - low) / (num_nodes - 1), np.finfo(float).tiny)
        nodes = low + step * np.arange(num_nodes)[:, None]
        return _cubic((u - low) / step, self.value(nodes), step * self.derivatives(nodes)[0])

    def _sum(self, terms: np.ndarray) -> np.ndarray:
        """The sum of the terms of each kind. Shapes: `(..., num_terms)` to `(..., num_kept)`."""
        if not len(self.kept):
            return np.zeros((*terms.shape[:-1], 0))
        return np.add.reduceat(terms, np.searchsorted(self.owner, np.arange(len(self.kept))), axis=-1)


def rising_factorials(counts: np.ndarray) -> RisingFactorials:
    """From the counts of documents. Shape: `(num_documents, num_kinds)`."""
    num_positive = np.count_nonzero(counts, axis=0)
    kept = np.flatnonzero(num_positive)
    columns, documents = np.nonzero(counts.T)
    # Kind and count as one number, so that equal ones of all kinds are found at once.
    spread = float(counts.max(initial=0)) + 1
    terms, times = np.unique(columns * spread + counts[documents, columns], return_counts=True)
    owner, values = np.divmod(terms, spread)
    return RisingFactorials(
        kept=kept,
        num_positive=num_positive[kept].astype(float),
        counts=values,
        times=times.astype(float),
        owner=np.searchsorted(kept, owner),
    )


def trigamma(x: np.ndarray) -> np.ndarray:
    """The second derivative of log Gamma for x of at least 1, to nine digits, at a tenth of SciPy's cost."""
    y = x + SHIFT
    series = 1 / y + 1 / (2 * y**2) + 1 / (6 * y**3) - 1 / (30 * y**5) + 1 / (42 * y**7)
    for step in range(SHIFT):
        series += 1 / (x + step) ** 2
    return series


def _cubic(position: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Evaluate Hermite cubics between nodes at 0, 1, 2 ... for each column.

    Shapes: `position` and the result `(num_arguments, num_columns)`, `values` and `slopes` `(num_nodes, num_columns)`.
    """
    left = np.clip(position.astype(int), 0, len(values) - 2)
    t = position - left
    at = lambda table, index: np.take_along_axis(table, index, axis=0)  # noqa: E731
    v0, v1, s0, s1 = at(values, left), at(values, left + 1), at(slopes, left), at(slopes, left + 1)
    rise = v1 - v0
    return v0 + t * (s0 + t * (3 * rise - 2 * s0 - s1 + t * (s0 + s1 - 2 * rise)))
