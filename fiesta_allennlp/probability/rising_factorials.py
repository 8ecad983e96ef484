"""Logarithms of rising factorials, summed over documents: what counts tell of the rates behind them."""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from scipy.special import digamma, gammaln, zeta


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
        x = np.exp(u)
        # Gamma(x) = Gamma(1 + x) / x, so that nothing overflows at small x.
        return self.num_positive * u + self._sum(gammaln(self._ends(x)) - gammaln(x + 1)[..., self.owner])

    def derivatives(self, u: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """dS_k / du and d^2 S_k / du^2. Same shapes as `u`."""
        x = np.exp(u)
        ends = self._ends(x)
        slope = x * self._sum(digamma(ends) - digamma(x + 1)[..., self.owner])
        # zeta(2, x) is the derivative of digamma(x).
        curvature = x**2 * self._sum(zeta(2, ends) - zeta(2, x + 1)[..., self.owner])
        return self.num_positive + slope, slope + curvature

    def _ends(self, x: np.ndarray) -> np.ndarray:
        """x + c of each term. Shapes: `(..., num_kept)` to `(..., num_terms)`."""
        return x[..., self.owner] + self.counts

    def _sum(self, terms: np.ndarray) -> np.ndarray:
        """The sum of the terms of each kind over all documents. Shapes: `(..., num_terms)` to `(..., num_kept)`."""
        if not len(self.kept):
            return np.zeros((*terms.shape[:-1], 0))
        return np.add.reduceat(self.times * terms, np.searchsorted(self.owner, np.arange(len(self.kept))), axis=-1)


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
