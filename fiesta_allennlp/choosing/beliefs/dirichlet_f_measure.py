"""The F-measure of counts that vary from document to document (Haffari et al., 2017, section 3).

    theta ~ Dirichlet(prior),  mu_d ~ Dirichlet(A theta),  c_d ~ Multinomial(N_d, mu_d)

With the rates mu_d of the documents integrated out,

    p(theta | c) ~ prod_k theta_k^(prior_k - 1) exp(S_k(A theta_k)),
    S_k(x) = sum_d log [Gamma(x + c_dk) / Gamma(x)]

It is drawn from by importance sampling. The proposal is a distribution over the simplex with one more set of parameters
than the Dirichlet: gamma variables with scales of their own. They are made of points that fill the unit cube evenly,
always the same ones. From the draws of several quantities in (0, 1) follows P(best), by an integral.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Sequence, Tuple

import numpy as np
from scipy.special import digamma, expit, gammaincinv, gammaln, logit, softmax, zeta

from fiesta_allennlp.choosing.beliefs.belief import Belief, MeanPosterior
from fiesta_allennlp.choosing.beliefs.paired_measure import BINARY_PAIRS, check_beta, valid_counts
from fiesta_allennlp.choosing.probability.prob_best import check_margin, product_of_others
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.records import History

KNOWN_DF = 1e9
"""The degrees of freedom of a spread that is as good as known."""

MIN_SAMPLES = 64
CACHE_SIZE = 1024
"""The number of single candidates' posteriors to keep, because a step changes only one of them."""

SOBOL_SEED = 2017
"""Seed of the one scrambling of Sobol's points that is ever used."""

SERIES_LOG_QUANTILE = -20.0
"""Logarithms of quantiles below this follow from the first term of the series."""

SHAPE_GRID_STEP = 0.02
"""Shapes are rounded to multiples of this in the logarithm, so that few quantiles are computed."""

SHAPE_FACTORS = (1.0, 0.8, 0.6)
"""The proposal's shapes are multiplied by these in turn while too few draws would count."""

MIN_EFFECTIVE_SHARE = 0.5
"""An effective share of the draws that needs no wider proposal."""

MAX_STEPS = 60
TOLERANCE = 1e-3
"""The mode is found when no logarithm of a rate moves by more than this."""

MAX_CELLS = 4096
"""P(best) is integrated over at most twice as many cells. More change it in the fourth digit."""

GAUSS_NODES = (0.5 - 12**-0.5, 0.5 + 12**-0.5)
"""Nodes of a cell, with equal weights: exact for a product of up to 3 of its linear distribution functions."""


@lru_cache(maxsize=8)
def sobol_ranks(num_points: int, num_dimensions: int) -> np.ndarray:
    """Scrambled Sobol points, each coordinate as its rank among all. Shape: `(num_points, num_dimensions)`. Read only.

    Args:
        num_points: a power of two.
    """
    from scipy.stats import qmc

    points = qmc.Sobol(num_dimensions, seed=SOBOL_SEED).random(num_points)
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
    is_above_series = log_x > SERIES_LOG_QUANTILE
    log_x[is_above_series] = np.log(gammaincinv(shape, probability[is_above_series]))
    log_x.flags.writeable = False
    return log_x


def log_sum_exp(values: np.ndarray) -> np.ndarray:
    """log sum exp over the last axis, of which one value is finite. Shape: `(..., n)` to `(...,)`."""
    maximum = values.max(axis=-1)
    return maximum + np.log(np.exp(values - maximum[..., None]).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class WeightedRateDraws:
    """Draws of the rates. `log_rates` has the shape `(num_samples, num_kinds)`; `weights`, which sum to 1, have the
    shape `(num_samples,)`."""

    log_rates: np.ndarray
    weights: np.ndarray

    @property
    def effective_share(self) -> float:
        """The effective share of the draws, 1 / (num_samples sum w^2)."""
        return 1 / (len(self.weights) * float((self.weights**2).sum()))


@dataclass(frozen=True, eq=False)
class RatePosterior:
    """The posterior of the rates after documents.

    1. The mode in log theta. With u_k = log(A theta_k), let g_k be prior_k + dS_k / du_k and V_k be d^2 S_k / du_k^2.
       At the mode theta_k = g_k / sum_j g_j, which a few Newton steps find.
    2. A proposal with this mode and nearly the curvature there: theta_k = X_k / sum_j X_j with X_k ~ Gamma(b_k, rate
       c_k), b = g - V and c = b / g. A kind that was never counted has b_k = prior_k. With B = sum_k b_k, the density
       is Gamma(B) prod_k [c_k^b_k theta_k^(b_k - 1) / Gamma(b_k)] (sum_k c_k theta_k)^-B.
    3. Importance weights, posterior over proposal, make the draws exact. Their effective share is 0.95 to 1 for four
       kinds and A = 1. It was at least 0.2 for 4 to 36 kinds, A from 0.05 to 1e6 and 1 to 40 documents.

    In a Gibbs sampler, each count is a sum of Bernoulli variables with the probabilities A theta_k / (A theta_k + j).
    Their sums are numbers of tables, with the mean g_k - prior_k and the variance V_k; given them, theta is Dirichlet.

    Args:
        prior: parameters of the Dirichlet prior, above 0. Shape: `(num_kinds,)`.
        concentration: A.
        counts: whole numbers of at least 0. Shape: `(num_documents, num_kinds)`.
    """

    prior: np.ndarray
    concentration: float
    counts: np.ndarray

    def draw(self, num_samples: int) -> WeightedRateDraws:
        """Draw `num_samples` rates, a power of two. No chance is involved: equal counts give equal draws, in whatever
        order the documents came."""
        gradient, curvature = self.find_mode()
        draws = self.draw_from_proposal(gradient, gradient - curvature, num_samples)
        for shape_factor in SHAPE_FACTORS[1:]:
            if draws.effective_share >= MIN_EFFECTIVE_SHARE:
                break
            wider_draws = self.draw_from_proposal(gradient, shape_factor * (gradient - curvature), num_samples)
            draws = max(draws, wider_draws, key=lambda rates: rates.effective_share)
        return draws

    def find_mode(self) -> Tuple[np.ndarray, np.ndarray]:
        """Return g and V at the highest density of log theta. Shapes: `(num_kinds,)` both."""
        gradient = self.prior + np.count_nonzero(self.counts, axis=0)
        log_rates = np.log(gradient / gradient.sum())
        for _ in range(MAX_STEPS):
            likelihood_gradient, curvature = self.derivatives(np.log(self.concentration) + log_rates)
            gradient = self.prior + likelihood_gradient
            step = np.clip((gradient - gradient.sum() * np.exp(log_rates)) / (gradient - curvature), -1, 1)
            log_rates += step
            log_rates -= np.log(np.exp(log_rates).sum())
            if np.abs(step).max() < TOLERANCE:
                break
        return gradient, curvature

    def draw_from_proposal(self, gradient: np.ndarray, shapes: np.ndarray, num_samples: int) -> WeightedRateDraws:
        """Draw from the proposal, and weight by the posterior."""
        seen = self.counts.any(axis=0)
        shapes = np.where(seen, np.exp(SHAPE_GRID_STEP * np.round(np.log(shapes) / SHAPE_GRID_STEP)), self.prior)
        log_scales, num_kinds = np.log(shapes / gradient), len(shapes)
        # One more dimension than kinds: the points differ with their number of dimensions.
        ranks = sobol_ranks(num_samples, num_kinds + 1)[:, :-1]
        quantiles = np.stack([log_gamma_quantiles(shape, num_samples) for shape in shapes.tolist()])
        log_x = quantiles[np.arange(num_kinds), ranks] - log_scales
        log_rates = log_x - log_sum_exp(log_x)[:, None]
        # A kind without answers has its prior in both densities, which is left out: its rate may be too small a number.
        log_posterior = self.log_likelihood(np.log(self.concentration) + log_rates[:, seen], self.counts[:, seen])
        log_posterior = log_posterior + (self.prior * log_rates)[:, seen].sum(axis=1)
        log_proposal = (shapes * log_rates)[:, seen].sum(axis=1) - shapes.sum() * log_sum_exp(log_scales + log_rates)
        return WeightedRateDraws(log_rates, softmax(log_posterior - log_proposal))

    def derivatives(self, u: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Compute dS_k / du_k and d^2 S_k / du_k^2. Shapes: `(num_kinds,)`, as `u`."""
        x, counts = np.exp(u), np.maximum(self.counts, 1)
        # Gamma(x) = Gamma(1 + x) / x, so that nothing overflows at small x, and a count of 1 adds nothing.
        first_derivative = x * (digamma(x + counts) - digamma(x + 1)).sum(axis=0)
        # zeta(2, x) is the derivative of digamma(x).
        curvature = x**2 * (zeta(2, x + counts) - zeta(2, x + 1)).sum(axis=0)
        return np.count_nonzero(self.counts, axis=0) + first_derivative, first_derivative + curvature

    @staticmethod
    def log_likelihood(u: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Compute sum_k S_k(exp(u_k)). Shapes: `(num_samples, num_kinds)` to `(num_samples,)`."""
        result = np.zeros(len(u))
        for log_x, kind_counts in zip(u.T, counts.T, strict=True):
            distinct_counts, multiplicities = np.unique(kind_counts[kind_counts > 0], return_counts=True)
            x = np.exp(log_x)
            result += multiplicities.sum() * log_x
            result += (multiplicities * (gammaln(x[:, None] + distinct_counts) - gammaln(x + 1)[:, None])).sum(axis=1)
        return result


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


def _thin(draws: np.ndarray) -> np.ndarray:
    """At most `MAX_CELLS` + 1 of the sorted draws, with both ends."""
    if len(draws) <= MAX_CELLS:
        return draws
    return draws[np.linspace(0, len(draws) - 1, MAX_CELLS + 1).astype(int)]


def _shift_log_odds(log_odds: np.ndarray, shift: float) -> np.ndarray:
    """The log odds of y + shift, infinite where that leaves (0, 1)."""
    return logit(np.clip(expit(log_odds) + shift, 0, 1))


class FMeasurePosterior(MeanPosterior):
    """Independent F-measures, or accuracies, in the order of `History.active`.

    Each is represented by weighted draws.
    """

    def __init__(self, distributions: Sequence[EmpiricalDistribution]) -> None:
        self.distributions = distributions
        self.location = np.array([distribution.location for distribution in distributions])
        self.scale = np.array([measure.scale for measure in distributions])
        self.df, self.noise_variance = np.full(len(distributions), KNOWN_DF), float(np.mean(self.scale**2))

    def interval(self, level: float) -> np.ndarray:
        """Compute the equal-tailed credible interval of each measure. Shape: `(num_candidates, 2)`.

        Args:
            level: probability of the interval, such as 0.95.
        """
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        return np.array([distribution.quantiles(tails) for distribution in self.distributions])

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        """Compute P(Y_i >= max_j Y_j - margin), the integral of prod_j P(Y_j <= y + margin) over P(Y_i = dy), without
        drawing.

        Shape: `(num_candidates,)`. It sums to 1 if `margin` is 0.

        Raises:
            ConfigError: if `margin` is negative or infinite.
        """
        check_margin(margin)
        sorted_log_odds = np.sort(np.concatenate([distribution.log_odds for distribution in self.distributions]))
        edges = _thin(sorted_log_odds)  # between which all quantities are integrated
        if margin > 0:
            edges = np.union1d(edges, _thin(np.sort(_shift_log_odds(sorted_log_odds, -margin))))
        own_cdf = self._cdf_at(edges)
        others_cdf = own_cdf if margin == 0 else self._cdf_at(_shift_log_odds(edges, margin))
        cdf_steps = np.diff(others_cdf, axis=1)
        # Shape: (num_candidates, num_cells)
        products = [product_of_others(others_cdf[:, :-1] + node * cdf_steps) for node in GAUSS_NODES]
        result = (np.diff(own_cdf, axis=1) * (products[0] + products[1]) / 2).sum(axis=1)
        return np.clip(result, 0, 1) if margin > 0 else result / result.sum()

    def _cdf_at(self, edges: np.ndarray) -> np.ndarray:
        """P(Y_i <= y) at each edge. Shape: `(num_candidates, num_edges)`."""
        return np.stack([np.interp(edges, measure.log_odds, measure.cdf) for measure in self.distributions])


@Belief.register("dirichlet_f_measure")
class DirichletFMeasure(Belief):
    """Models the F-measure of each candidate by its counts of right and wrong answers in documents. Use it to reproduce
    the paper; `paired_measure` needs fewer documents, and models more metrics.

    The model is that of Haffari et al. (2017, section 3). Each answer of candidate i is a true positive, false
    positive, false negative or true negative. The candidate's rates of these kinds, theta_i, have a Dirichlet prior.
    The rates in document d vary around them, mu_d ~ Dirichlet(A theta_i), and the counts are multinomial with mu_d. The
    measure is computed from the rates theta_i: it is that of all items, not the mean over documents. Candidates are
    independent given their rates, even if they answered the same documents, so differences look more uncertain than
    they are.

    Where documents are alike (A is large), every answer counts. Where they differ much (A = 1), the posterior depends
    on how many documents each kind of answer occurred in. A system with 1% errors and one with 6% are then told apart
    by a few documents each, long before their mean F-measures are.

    Every run must report its counts as metrics `count:tp`, `count:fp`, `count:fn` and `count:tn`. One run of each
    candidate is enough to begin with.

    The posterior uses the same fixed points for every draw. It is a function of the counts alone, whatever their order,
    and involves no chance. `RatePosterior` contains the derivation.

    Args:
        beta: weight of precision against recall, F = 1 / (beta / precision + (1 - beta) / recall), from 0 to 1. 0.5
            gives F1.
        concentration: A, how similar documents are; small if they differ much. 1 in the paper. A value above the truth
            makes the posterior too sure; a value below it costs documents.
        prior_concentration: the sum of the prior's four parameters. 1 in the paper.
        num_samples: number of draws that represent the posterior of a candidate, a power of 2. With 1,024, P(best) was
            within 0.001 of its value with 16,384.

    Raises:
        ConfigError: if a parameter is outside its range.
    """

    min_evaluations = 1
    needs_counts = True

    def __init__(
        self,
        *,
        beta: float = 0.5,
        concentration: float = 1.0,
        prior_concentration: float = 1.0,
        num_samples: int = 1024,
    ) -> None:
        check_beta(beta)
        for name, value in {"concentration": concentration, "prior_concentration": prior_concentration}.items():
            if not 1e-3 <= value <= 1e9:
                raise ConfigError(f"{name} must be from 0.001 to 1e9, such as 1, but is {value}.")
        if num_samples < MIN_SAMPLES or math.log2(num_samples) % 1:
            raise ConfigError(f"num_samples must be a power of 2, at least {MIN_SAMPLES}, but is {num_samples}.")
        self._params = beta, concentration, prior_concentration, num_samples

    def posterior(self, history: History) -> FMeasurePosterior:
        tables = [self._count_table(history, name) for name in history.active]
        # The order of documents plays no part, not even in the last digit of a sum.
        return FMeasurePosterior([_estimate(table[np.lexsort(table.T)].tobytes(), *self._params) for table in tables])

    def _count_table(self, history: History, candidate: str) -> np.ndarray:
        counts = valid_counts(history, candidate, self.min_evaluations)
        if unexpected := sorted(set(counts.kinds) - set(BINARY_PAIRS)):
            raise ScoreError(
                f"dirichlet_f_measure needs the counts {', '.join(BINARY_PAIRS)} of a binary task but candidate "
                f"'{candidate}' has {unexpected[0]}. Use paired_measure."
            )
        return counts.columns_for(list(BINARY_PAIRS))


@lru_cache(maxsize=CACHE_SIZE)
def _estimate(
    count_bytes: bytes, beta: float, concentration: float, prior_concentration: float, num_samples: int
) -> EmpiricalDistribution:
    """The posterior of one candidate's measure, kept for these counts."""
    counts = np.frombuffer(count_bytes).reshape(-1, len(BINARY_PAIRS))
    prior = np.full(len(BINARY_PAIRS), prior_concentration / len(BINARY_PAIRS))
    draws = RatePosterior(prior, concentration, counts).draw(num_samples)
    return empirical_distribution(measure_log_odds(draws.log_rates, beta), draws.weights)


def measure_log_odds(log_rates: np.ndarray, beta: float) -> np.ndarray:
    """Compute log(F / (1 - F)) = log(tp / (beta fp + (1 - beta) fn)) of rates in the order of `BINARY_PAIRS`.

    F is 1 / (beta / precision + (1 - beta) / recall), as Haffari et al. (2017, section 3) weight it. With `beta` 1/2 it
    is F1; F_b in the other convention has beta = 1 / (1 + b^2). Shapes: `(num_samples, 4)` to `(num_samples,)`.
    """
    weights = {1: beta, 2: 1 - beta}
    log_errors = [log_rates[:, column] + np.log(weight) for column, weight in weights.items() if weight > 0]
    return log_rates[:, 0] - log_sum_exp(np.stack(log_errors, axis=-1))
