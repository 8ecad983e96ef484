"""Rates made of gamma variables with scales of their own: a distribution over the simplex with one more set of
parameters than the Dirichlet, by which its place and its width are chosen apart."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from fiesta_allennlp.probability.points import even_ranks, log_gamma_quantiles

GRAIN = 0.02
"""Shapes are rounded to multiples of this in the logarithm, so that few quantiles are computed."""


@dataclass(frozen=True, eq=False)
class Draws:
    """`log_rates` has the shape `(num_samples, num_kinds)`; `log_concentration` and `cell` `(num_samples,)`."""

    log_rates: np.ndarray
    log_concentration: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True, eq=False)
class ScaledDirichlet:
    """theta_k = X_k / sum_j X_j with X_k ~ Gamma(b_k, rate c_k); another one in every cell of log A.

    With B = sum_k b_k the density is Gamma(B) prod_k [c_k^b_k theta_k^(b_k - 1) / Gamma(b_k)] (sum_k c_k theta_k)^-B.

    # Parameters

    shapes, log_scales : b_k and log c_k. Shape: `(num_cells, num_kinds)`.
    edges : of the cells of log A. Shape: `(num_cells + 1,)`; of one cell, both may be equal.
    mass : probability of each cell, in which log A is uniform. Shape: `(num_cells,)`.
    """

    shapes: np.ndarray
    log_scales: np.ndarray
    edges: np.ndarray
    mass: np.ndarray

    def draw(self, num_samples: int) -> Draws:
        """Evenly spread draws, always the same. `num_samples` is a power of two."""
        num_cells, num_kinds = self.shapes.shape
        ranks = even_ranks(num_samples, num_kinds + 1)
        passed = np.cumsum(self.mass) / self.mass.sum()
        place = (ranks[:, -1] + 0.5) / num_samples
        cell = np.minimum(np.searchsorted(passed, place), num_cells - 1)
        inside = np.clip(1 - (passed[cell] - place) / self.mass[cell] * self.mass.sum(), 0, 1)
        quantiles = np.stack([log_gamma_quantiles(shape, num_samples) for shape in self.shapes.ravel().tolist()])
        rows = cell[:, None] * num_kinds + np.arange(num_kinds)
        log_x = quantiles[rows, ranks[:, :-1]] - self.log_scales[cell]
        return Draws(
            log_rates=log_x - log_sum_exp(log_x)[:, None],
            log_concentration=self.edges[cell] + inside * np.diff(self.edges)[cell],
            cell=cell,
        )

    def log_density(self, log_rates: np.ndarray, cell: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """The logarithm of the density of `log_rates` in their cell, without the factors theta_k^(b_k - 1) of the kinds
        that are not `kept`, and with theta_k^b_k for those that are. Shape: `(num_samples,)`."""
        total = self.shapes.sum(axis=1)
        constant = gammaln(total) + (self.shapes * self.log_scales - gammaln(self.shapes)).sum(axis=1)
        powers = (self.shapes[:, kept][cell] * log_rates[:, kept]).sum(axis=1)
        return constant[cell] + powers - total[cell] * log_sum_exp(self.log_scales[cell] + log_rates)


def rounded(shapes: np.ndarray) -> np.ndarray:
    """The nearest shapes on the grid of `GRAIN`. Same shape as `shapes`."""
    return np.exp(GRAIN * np.round(np.log(shapes) / GRAIN))


def log_sum_exp(values: np.ndarray) -> np.ndarray:
    """log sum exp over the last axis, of which one value is finite. Shape: `(..., n)` to `(...,)`."""
    top = values.max(axis=-1)
    return top + np.log(np.exp(values - top[..., None]).sum(axis=-1))
