"""The posterior of the rates behind counts that vary from document to document (Haffari et al., 2017, section 3).

    theta ~ Dirichlet(prior),  mu_d ~ Dirichlet(A theta),  c_d ~ Multinomial(N_d, mu_d)

With the rates mu_d of the documents integrated out,

    p(theta | c) ~ prod_k theta_k^(prior_k - 1) exp(S_k(A theta_k)),
    S_k(x) = sum_d log [Gamma(x + c_dk) / Gamma(x)]

It is drawn from by importance sampling; scripts/benchmarks/derivations.md has the derivation. The proposal is a
distribution over the simplex with one more set of parameters than the Dirichlet: gamma variables with scales of their
own. They are made of points that fill the unit cube evenly, always the same ones."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Tuple

import numpy as np
from scipy.special import gammaincinv, gammaln, softmax

from fiesta_allennlp.probability.rising_factorials import RisingFactorials, rising_factorials

SCRAMBLING = 2017
"""Seed of the one scrambling of Sobol's points that is ever used."""

FAR_LEFT = -20.0
"""Logarithms of quantiles below this follow from the first term of the series."""

GRAIN = 0.02
"""Shapes are rounded to multiples of this in the logarithm, so that few quantiles are computed."""

WIDENINGS = (1.0, 0.8, 0.6)
"""The proposal's shapes are multiplied by these in turn while too few draws would count."""

ENOUGH = 0.5
"""An effective share of the draws that needs no wider proposal."""

MOST_STEPS = 60
TOLERANCE = 1e-3
"""The mode is found when no logarithm of a rate moves by more than this."""

LOG_CONCENTRATION_SD = 2.0
"""Standard deviation of log A around its middle where A is learned."""

NUM_CELLS = 32
MOST_ZOOMS = 6
"""Where A is learned, log A has this many cells, which are moved to where its posterior is at most this often."""

NEGLIGIBLE = -12.0
"""Cells of log A with a density this far below the highest, in the logarithm, are left out."""


@lru_cache(maxsize=64)
def even_ranks(num_points: int, num_dimensions: int) -> np.ndarray:
    """Scrambled Sobol points, each coordinate as its rank among all. Shape: `(num_points, num_dimensions)`. Read only.

    Args:
        num_points: a power of two.
    """
    from scipy.stats import qmc

    points = qmc.Sobol(num_dimensions, seed=SCRAMBLING).random(num_points)
    ranks = points.argsort(axis=0).argsort(axis=0)
    ranks.flags.writeable = False
    return ranks


@lru_cache(maxsize=1024)
def log_gamma_quantiles(shape: float, num_points: int) -> np.ndarray:
    """The logarithms of the (r + 1/2) / `num_points` quantiles of a gamma variable with scale 1.

    Shape: `(num_points,)`. Read only.
    """
    probability = (np.arange(num_points) + 0.5) / num_points
    # P(X < x) = x^shape / Gamma(shape + 1) (1 + O(x)): also where x is too small to be a number.
    log_x = (np.log(probability) + gammaln(shape + 1)) / shape
    near = log_x > FAR_LEFT
    log_x[near] = np.log(gammaincinv(shape, probability[near]))
    log_x.flags.writeable = False
    return log_x


def rounded(shapes: np.ndarray) -> np.ndarray:
    """The nearest shapes on the grid of `GRAIN`. Same shape as `shapes`."""
    return np.exp(GRAIN * np.round(np.log(shapes) / GRAIN))


def log_sum_exp(values: np.ndarray) -> np.ndarray:
    """log sum exp over the last axis, of which one value is finite. Shape: `(..., n)` to `(...,)`."""
    top = values.max(axis=-1)
    return top + np.log(np.exp(values - top[..., None]).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class WeightedRates:
    """Draws of the rates, from the proposal, or with weights from the posterior.

    `log_rates` has the shape `(num_samples, num_kinds)`; `log_concentration`, `cell`, the cell of log A, and `weights`,
    which sum to 1, have the shape `(num_samples,)`.
    """

    log_rates: np.ndarray
    log_concentration: np.ndarray
    cell: np.ndarray
    weights: np.ndarray

    @property
    def effective(self) -> float:
        """The effective share of the draws, 1 / (num_samples sum w^2)."""
        return 1 / (len(self.weights) * float((self.weights**2).sum()))


@dataclass(frozen=True, eq=False)
class ScaledDirichlet:
    """theta_k = X_k / sum_j X_j with X_k ~ Gamma(b_k, rate c_k); another one in every cell of log A.

    With B = sum_k b_k the density is Gamma(B) prod_k [c_k^b_k theta_k^(b_k - 1) / Gamma(b_k)] (sum_k c_k theta_k)^-B.

    Attributes:
        shapes: b_k. `log_scales` has log c_k. Shapes: `(num_cells, num_kinds)`.
        edges: of the cells of log A. Shape: `(num_cells + 1,)`; of one cell, both may be equal.
        mass: probability of each cell, in which log A is uniform. Shape: `(num_cells,)`.
    """

    shapes: np.ndarray
    log_scales: np.ndarray
    edges: np.ndarray
    mass: np.ndarray

    def draw(self, num_samples: int) -> WeightedRates:
        """Evenly spread draws with equal weights, always the same. `num_samples` is a power of two."""
        num_cells, num_kinds = self.shapes.shape
        ranks = even_ranks(num_samples, num_kinds + 1)
        passed = np.cumsum(self.mass) / self.mass.sum()
        place = (ranks[:, -1] + 0.5) / num_samples
        cell = np.minimum(np.searchsorted(passed, place), num_cells - 1)
        inside = np.clip(1 - (passed[cell] - place) / self.mass[cell] * self.mass.sum(), 0, 1)
        quantiles = np.stack([log_gamma_quantiles(shape, num_samples) for shape in self.shapes.ravel().tolist()])
        rows = cell[:, None] * num_kinds + np.arange(num_kinds)
        log_x = quantiles[rows, ranks[:, :-1]] - self.log_scales[cell]
        return WeightedRates(
            log_rates=log_x - log_sum_exp(log_x)[:, None],
            log_concentration=self.edges[cell] + inside * np.diff(self.edges)[cell],
            cell=cell,
            weights=np.full(num_samples, 1 / num_samples),
        )

    def log_density(self, log_rates: np.ndarray, cell: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """The logarithm of the density of `log_rates` in their cell, without the factors theta_k^(b_k - 1) of the kinds
        that are not `kept`, and with theta_k^b_k for those that are. Shape: `(num_samples,)`."""
        total = self.shapes.sum(axis=1)
        constant = gammaln(total) + (self.shapes * self.log_scales - gammaln(self.shapes)).sum(axis=1)
        powers = (self.shapes[:, kept][cell] * log_rates[:, kept]).sum(axis=1)
        return constant[cell] + powers - total[cell] * log_sum_exp(self.log_scales[cell] + log_rates)


@dataclass(frozen=True, eq=False)
class RatesModel:
    """What is believed before any document.

    Attributes:
        prior: parameters of the Dirichlet prior, above 0. Shape: `(num_kinds,)`.
        concentration: A; the median of its prior where it is learned.
        learned: whether A is learned; log A is then normal, with `LOG_CONCENTRATION_SD`.
        num_samples: a power of two.
    """

    prior: np.ndarray
    concentration: float
    learned: bool
    num_samples: int

    def posterior(self, counts: np.ndarray) -> WeightedRates:
        """After these documents. Shape of `counts`: `(num_documents, num_kinds)`, whole numbers of at least 0.

        No chance is involved: equal counts give equal draws, in whatever order the documents came.
        """
        totals = counts.sum(axis=1, keepdims=True)
        target = _Target(self, rising_factorials(counts), rising_factorials(totals))
        edges = target.cells()
        best = target.weighted(target.proposal(edges, WIDENINGS[0]))
        for widening in WIDENINGS[1:]:
            if best.effective >= ENOUGH:
                break
            best = max(best, target.weighted(target.proposal(edges, widening)), key=lambda found: found.effective)
        return best


@dataclass(frozen=True, eq=False)
class _Target:
    """The posterior density of theta and log A, up to a factor."""

    model: RatesModel
    of_kinds: RisingFactorials
    of_totals: RisingFactorials

    def mode(self, log_concentration: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """At the highest density of log theta for each A: g_k = prior_k + dS_k / du_k and V_k = d^2 S_k / du_k^2, with
        u_k = log(A theta_k). There theta_k = g_k / sum_j g_j. Shapes: `(num_concentrations, num_kinds)` both.
        """
        prior, kept = self.model.prior, self.of_kinds.kept
        slope = np.tile(prior, (len(log_concentration), 1))
        curvature = np.zeros_like(slope)
        slope[:, kept] += self.of_kinds.num_positive
        log_rates = np.log(slope / slope.sum(axis=1, keepdims=True))
        for _ in range(MOST_STEPS):
            gained, curvature[:, kept] = self.of_kinds.derivatives(log_concentration[:, None] + log_rates[:, kept])
            slope[:, kept] = prior[kept] + gained
            excess = slope - slope.sum(axis=1, keepdims=True) * np.exp(log_rates)
            step = np.clip(excess / (slope - curvature), -1, 1)
            log_rates += step
            log_rates -= np.log(np.exp(log_rates).sum(axis=1, keepdims=True))
            if np.abs(step).max() < TOLERANCE:
                break
        return slope, curvature

    def proposal(self, edges: np.ndarray, widening: float) -> ScaledDirichlet:
        """With b = g - V and c = b / g its mode and its curvature there are those of the target."""
        middles = (edges[:-1] + edges[1:]) / 2
        slope, curvature = self.mode(middles)
        shapes = np.tile(self.model.prior, (len(middles), 1))
        kept = self.of_kinds.kept
        shapes[:, kept] = rounded(widening * (slope - curvature)[:, kept])
        log_scales = np.log(shapes / slope)
        if len(middles) == 1:
            return ScaledDirichlet(shapes, log_scales, edges, np.ones(1))
        flat = ScaledDirichlet(shapes, log_scales, edges, np.ones(len(middles)))
        log_modes = np.log(slope / slope.sum(axis=1, keepdims=True))
        # The ratio of both densities at their common mode is nearly that of their integrals.
        height = self.log_ratio(flat, log_modes, middles, np.arange(len(middles)))
        return ScaledDirichlet(shapes, log_scales, edges, np.exp(height - height.max()))

    def cells(self) -> np.ndarray:
        """The edges of cells that cover all of A that counts. Shape: `(num_cells + 1,)`."""
        middle = np.log(self.model.concentration)
        if not self.model.learned:
            return np.array([middle, middle])
        reach = 4 * LOG_CONCENTRATION_SD
        edges = np.linspace(middle - reach, middle + reach, NUM_CELLS + 1)
        for _ in range(MOST_ZOOMS):
            mass = self.proposal(edges, WIDENINGS[0]).mass
            counted = np.flatnonzero(np.log(np.maximum(mass, np.finfo(float).tiny)) > NEGLIGIBLE)
            first, last = max(counted[0] - 1, 0), min(counted[-1] + 2, NUM_CELLS)
            zoomed = np.linspace(edges[first], edges[last], NUM_CELLS + 1)
            if last - first > NUM_CELLS / 2:
                return zoomed
            edges = zoomed
        return edges

    def log_ratio(
        self, proposal: ScaledDirichlet, log_rates: np.ndarray, log_concentration: np.ndarray, cell: np.ndarray
    ) -> np.ndarray:
        """The logarithm of this density divided by the proposal's, for the cell's mass 1. Shape: `(num_samples,)`."""
        kept = self.of_kinds.kept
        u = log_concentration[:, None] + log_rates[:, kept]
        own = self.of_kinds.value(u).sum(axis=1) + (self.model.prior * log_rates)[:, kept].sum(axis=1)
        if self.model.learned:
            z = (log_concentration - np.log(self.model.concentration)) / LOG_CONCENTRATION_SD
            own = own - z**2 / 2 - self.of_totals.value(log_concentration[:, None]).sum(axis=1)
        return own - proposal.log_density(log_rates, cell, kept)

    def weighted(self, proposal: ScaledDirichlet) -> WeightedRates:
        drawn = proposal.draw(self.model.num_samples)
        log_weight = self.log_ratio(proposal, drawn.log_rates, drawn.log_concentration, drawn.cell)
        return replace(drawn, weights=softmax(log_weight - np.log(proposal.mass[drawn.cell])))
