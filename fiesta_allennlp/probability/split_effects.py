"""Mean scores of candidates that were evaluated on shared splits: a two-way model with unequal noise."""

import math
from dataclasses import dataclass
from typing import Tuple

import numpy as np
from scipy.special import chdtri

from fiesta_allennlp.probability.noise import ODD_SHARE, NoisePosterior, noise_posterior, noise_that_stands_out

SPLIT_PRIOR = (4.0, 1.0)
"""Degrees of freedom and ratio: the variance between splits is about that of the noise, as in released scores."""

CANDIDATE_PRIOR = (1.0, 16.0)
"""Candidates' mean scores are Cauchy with a scale of four noise standard deviations: almost nothing is assumed."""

MAX_STEPS = 50
TOLERANCE = 1e-3
"""The fixed point is found when no precision changes by more than this part of itself."""

HELD = 1e-6
"""Where b is free, it can take up a shift of all candidates that are linked by common splits. Such shifts, of which
residuals know nothing, are held near 0 by so much of each candidate's information."""

SMALLEST_DF = 1e-2
"""A candidate whose scores all go into its split effects has no degrees of freedom left; it is given so many."""

SMALLEST = 1e-20
"""Noise variance below this share of the largest squared deviation is taken as this. It is so small that one run that
diverged does not hide the differences of all others."""


@dataclass(frozen=True, eq=False)
class Scores:
    """All finished scores of the candidates, by split.

    `counts` are numbers of evaluations and `sums` the sums of their scores, shape `(num_candidates, num_splits)`.
    `within` are the sums of squared deviations from the mean of each candidate and split, shape `(num_candidates,)`.
    Scores are centred and of a size about 1. Every candidate has two evaluations or more.
    """

    counts: np.ndarray
    sums: np.ndarray
    within: np.ndarray


@dataclass(frozen=True, eq=False)
class MeanScores:
    """mu_i = location_i + scale_i t(df_i), independent up to a common shift. Shapes: `(num_candidates,)`.

    `noise_sd` is the standard deviation of the noise that the candidates have in common, `own_noise_sd` that of each
    candidate whose noise stands out, 0 for the others; see `noise_that_stands_out`.
    """

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    noise_sd: float
    own_noise_sd: np.ndarray


def mean_scores(scores: Scores, *, odd_share: float = ODD_SHARE) -> MeanScores:
    """The posterior of the mean scores mu_i under::

        x_ik = mu_i + b_k + e_ik,  mu_i ~ N(m, omega^2),  b_k ~ N(0, tau^2),  e_ik ~ N(0, sigma_i^2)

    with a uniform m, the sigma_i^2 as in `fiesta_allennlp.probability.noise`, and tau^2 and omega^2 scaled inverse
    chi-squared, tied to the common noise scale by `SPLIT_PRIOR` and `CANDIDATE_PRIOR`. Where no two candidates share
    a split, the b_k are left out, for they cannot be told from the noise.

    Given precisions, mu and b are jointly normal, and the precisions follow from their squares: both in turn until
    nothing changes (variational Bayes). The squares of the noise are those of contrasts, in which mu and b are free,
    and the degrees of freedom that these take up are counted for each candidate, as in restricted maximum likelihood:
    tau then plays no part in the noise. The uncertainty about sigma_i^2 makes normal into Student-t.

    Args:
        odd_share: the prior probability that a candidate's noise has nothing to do with the others'.
    """
    fit = _fitted(scores, odd_share)
    df, variance = fit.noise.scaled_inverse_chi_squared()
    apart = _as_independent(fit.location, fit.covariance)
    scale = np.sqrt(apart * variance * fit.used_precision)
    own = noise_that_stands_out(fit.squares, df=fit.df, common=fit.noise.common)
    return MeanScores(fit.location, scale, np.maximum(df, 1.0), math.sqrt(fit.noise.common), np.sqrt(own))


@dataclass(frozen=True, eq=False)
class Effects:
    """One draw of all unknowns: `means` and `noise_sds`, shape `(num_candidates,)`; `splits`, shape `(num_splits,)`;
    and the sd of further splits' effects."""

    means: np.ndarray
    noise_sds: np.ndarray
    splits: np.ndarray
    split_sd: float


@dataclass(frozen=True, eq=False)
class EffectsPosterior:
    """The posterior of `mean_scores` to draw from: given the variances, mu and b are jointly normal.

    The noise variances are scaled inverse chi-squared with `noise_df` and `noise_variance`, shape `(num_candidates,)`,
    all drawn at one quantile because they are mostly alike. The splits' variance is the same with `split_df` and
    `1 / split_precision`; it is 0 where no two candidates share a split.
    """

    scores: Scores
    location: np.ndarray
    noise_df: np.ndarray
    noise_variance: np.ndarray
    split_df: float
    split_precision: float
    candidate_precision: float

    def draw(self, rng: np.random.Generator) -> Effects:
        """One draw of the means, the splits that were seen, and the sds."""
        variance = self.noise_df * self.noise_variance / chdtri(self.noise_df, rng.random())
        split_precision = self.split_precision
        if np.isfinite(split_precision):
            split_precision *= rng.chisquare(self.split_df) / self.split_df
        joint = _Joint(self.scores, 1 / variance, split_precision, self.candidate_precision)
        means = rng.multivariate_normal(joint.location, joint.covariance, check_valid="ignore", method="eigh")
        weights = self.scores.counts / variance[:, None]
        total = weights.sum(axis=0) + split_precision
        expected = ((self.scores.sums / variance[:, None]).sum(axis=0) - weights.T @ means) / total
        splits = rng.normal(expected, np.sqrt(1 / total))
        return Effects(means, np.sqrt(variance), splits, float(split_precision**-0.5))


def effects_posterior(scores: Scores) -> EffectsPosterior:
    """What `mean_scores` believes, to draw from."""
    fit = _fitted(scores)
    df, variance = fit.noise.scaled_inverse_chi_squared()
    return EffectsPosterior(
        scores=scores,
        location=fit.location,
        noise_df=np.maximum(df, 1.0),
        noise_variance=variance,
        split_df=SPLIT_PRIOR[0] + scores.counts.shape[1],
        split_precision=float(fit.split_precision),
        candidate_precision=float(fit.candidate_precision),
    )


def _fitted(scores: Scores, odd_share: float = ODD_SHARE) -> "_Fit":
    """The fixed point."""
    fit = _Fit(scores, odd_share)
    for _ in range(MAX_STEPS):
        if fit.step() < TOLERANCE:
            break
    return fit


class _Fit:
    """The fixed point under way. `location` and `covariance` are of mu, given the precisions used."""

    def __init__(self, scores: Scores, odd_share: float) -> None:
        self.scores = scores
        self.odd_share = odd_share
        self.sizes = scores.counts.sum(axis=1)
        self.has_splits = bool(((scores.counts > 0).sum(axis=0) > 1).any())
        means = scores.sums.sum(axis=1) / self.sizes
        spread = _squares(scores, means[:, None]).sum() / max((self.sizes - 1).sum(), 1)
        self.smallest = SMALLEST * max(spread, float(np.var(means)), np.finfo(float).tiny)
        common = max(spread, self.smallest) / 2
        self.precision = np.full(len(means), 1 / common)
        self.split_precision = 1 / common if self.has_splits else np.inf
        self.candidate_precision = 1 / max(float(np.var(means)), common / 4)

    def step(self) -> float:
        """Go on once. The largest relative change of a precision."""
        self.squares, self.df = self._contrasts()
        split_squares, candidate_squares = self._normal_part()
        self.noise: NoisePosterior = noise_posterior(self.squares, df=self.df, odd_share=self.odd_share)
        before = [*self.precision, self.candidate_precision, self.split_precision]
        self.used_precision = self.precision
        self.precision = self.noise.precision
        self.candidate_precision = self._precision(candidate_squares, len(self.sizes) - 1, CANDIDATE_PRIOR)
        if self.has_splits:
            self.split_precision = self._precision(split_squares, self.scores.counts.shape[1], SPLIT_PRIOR)
        now = np.array([*self.precision, self.candidate_precision, self.split_precision])
        finite = np.isfinite(now)
        return float(np.abs(now[finite] / np.array(before)[finite] - 1).max())

    def _precision(self, squares: float, df: int, prior: Tuple[float, float]) -> float:
        """E[1 / variance] of mu or b from their squares; the prior is tied to the common noise variance."""
        prior_df, ratio = prior
        return (prior_df + df) / (prior_df * ratio * self.noise.common + squares)

    def _contrasts(self) -> Tuple[np.ndarray, np.ndarray]:
        """Squares of the noise and their degrees of freedom, by candidate, with free mu and b (fixed effects).

        Where too few splits are shared for that, b is left out, and what splits do counts as noise.
        """
        squares, df = self._residuals(split_precision=0.0 if self.has_splits else np.inf)
        if df.sum() < 1:
            squares, df = self._residuals(split_precision=np.inf)
        return np.maximum(squares, self.smallest * self.sizes), np.maximum(df, SMALLEST_DF)

    def _residuals(self, *, split_precision: float) -> Tuple[np.ndarray, np.ndarray]:
        joint = _Joint(self.scores, self.precision, split_precision, 0.0)
        squares = _squares(self.scores, joint.location[:, None] + joint.split)
        df = self.sizes - self.precision * (joint.fitted_variance * self.scores.counts).sum(axis=1)
        return squares, df

    def _normal_part(self) -> Tuple[float, float]:
        """mu and b given all precisions. Expected sums of squares of b, and of mu about its mean."""
        joint = _Joint(self.scores, self.precision, self.split_precision, self.candidate_precision)
        self.location, self.covariance = joint.location, joint.covariance
        centred = self.location - self.location.mean()
        candidate_squares = np.sum(centred**2) + np.trace(self.covariance) - self.covariance.mean() * len(centred)
        return float(np.sum(joint.split**2 + joint.split_variance)), float(candidate_squares)


class _Joint:
    """mu and b, jointly normal given the precisions of noise, b and mu. A precision of 0 leaves them free.

    `location` and `covariance` are of mu, `split` and `split_variance` of b, `fitted_variance` of mu_i + b_k, shape
    `(num_candidates, num_splits)`.
    """

    def __init__(self, scores: Scores, noise: np.ndarray, split: float, candidate: float) -> None:
        # Shape: (num_candidates, num_splits)
        weights = noise[:, None] * scores.counts
        split_total = weights.sum(axis=0) + split
        shares = weights / split_total
        own = weights.sum(axis=1)
        size = len(own)
        # Shape: (num_candidates, num_candidates)
        information = candidate * (np.eye(size) - 1 / size) - shares @ weights.T
        information.flat[:: size + 1] += own * (1 + HELD)
        self.covariance = np.linalg.inv(information)
        weighted = noise[:, None] * scores.sums
        self.location = self.covariance @ (weighted.sum(axis=1) - shares @ weighted.sum(axis=0))
        # Shape: (num_splits,)
        self.split = (weighted.sum(axis=0) - weights.T @ self.location) / split_total
        crossed = self.covariance @ shares
        self.split_variance = 1 / split_total + (shares * crossed).sum(axis=0)
        self.fitted_variance = np.diag(self.covariance)[:, None] + self.split_variance - 2 * crossed


def _squares(scores: Scores, expected: np.ndarray) -> np.ndarray:
    """Sums of squared deviations of each candidate's scores from `expected`. Shape: `(num_candidates,)`."""
    means = scores.sums / np.maximum(scores.counts, 1)
    return scores.within + np.sum(scores.counts * (means - expected) ** 2, axis=1)


def _as_independent(location: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Variances v_i of independent variables whose differences to the leading candidate l have the right variances.

    V_ij = Var(mu_i - mu_j). v_l is the mean of Cov(mu_l - mu_i, mu_l - mu_j) over the three nearest rivals, and
    v_j = V_lj - v_l. P(best) was within .003 of that of the joint normal with histories as selections make them.
    Shape: `(num_candidates,)`.
    """
    leader = int(np.argmax(location))
    variance = np.diag(covariance)
    difference = np.maximum(variance[leader] + variance - 2 * covariance[leader], 0)
    others = np.delete(np.arange(len(location)), leader)
    if len(others) == 1:
        return np.full(2, difference[others[0]] / 2)
    distance = (location[leader] - location[others]) / np.sqrt(np.maximum(difference[others], np.finfo(float).tiny))
    nearest = others[np.argsort(distance, kind="stable")[:3]]
    shared = (
        variance[leader]
        - covariance[leader][nearest][:, None]
        - covariance[leader][nearest]
        + covariance[np.ix_(nearest, nearest)]
    )
    pairs = shared[np.triu_indices(len(nearest), 1)]
    own = np.clip(pairs.mean(), 0.05 * difference[nearest].min(), 0.95 * difference[others].min())
    result = difference - own
    result[leader] = own
    return result
