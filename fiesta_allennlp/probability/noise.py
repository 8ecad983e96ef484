"""The posterior of several noise variances that are mostly alike, from sums of squares, by quadrature on a grid.

Arrays may have leading axes `...`, for many selections at once.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
from numpy.polynomial import legendre
from scipy.special import digamma, gammaln, zeta

PRIOR_DF_BY_CLASS = (2.5, 256.0)
"""How many observations the common scale is worth for the variance of an outlying and of an ordinary candidate."""

GRID_SIZE = 24
"""Grid points over the logarithm of the common variance, where its posterior is."""

WIDE_GRID_SIZE = 48
"""Grid points to find that place."""

_OUTLYING_SHARES, _SHARE_WEIGHTS = (values / 2 for values in legendre.leggauss(4))
_OUTLYING_SHARES = _OUTLYING_SHARES + 0.5
"""Gauss-Legendre nodes over the share of outlying candidates, which is uniform from 0 to 1."""


@dataclass(frozen=True, eq=False)
class CommonVariance:
    """Where the logarithm of the common variance s^2 is, and what follows for the precisions.

    `log_mean` and `log_sd` are the moments of log s^2, shape `(...,)`. `precision` is E[1 / sigma_i^2], shape
    `(..., num_candidates)`.
    """

    log_mean: np.ndarray
    log_sd: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True, eq=False)
class NoisePosterior:
    """Posterior of the noise variances sigma_i^2: a mixture of two classes for each candidate.

    Candidate i is outlying with the probability `weight[0, ..., i]` and ordinary with `weight[1, ..., i]`. `log_mean`
    and `log_variance` are the moments of log sigma_i^2 given its class. Shapes: `(2, ..., num_candidates)`.
    """

    weight: np.ndarray
    log_mean: np.ndarray
    log_variance: np.ndarray

    def match_scaled_inverse_chi_squared(self) -> Tuple[np.ndarray, np.ndarray]:
        """Compute degrees of freedom and scale of the scaled inverse chi-squared variables with the same log moments.

        With sigma^2 such a variable, normal noise gives Student-t with as many degrees of freedom. Shapes:
        `(2, ..., num_candidates)` both.
        """
        half_df = _inverse_trigamma(self.log_variance)
        return 2 * half_df, np.exp(self.log_mean + digamma(half_df)) / half_df


def common_variance(squares: np.ndarray, *, df: np.ndarray, initial: Optional[CommonVariance] = None) -> CommonVariance:
    """Compute the common variance and the precisions, under the model of `noise_posterior`.

    Args:
        squares: as for `noise_posterior`, and so is `df`.
        initial: a result for similar data, which saves half of the time.
    """
    squares, df = squares[..., None, :], df[..., None, :]
    classes = _ClassLikelihoods.from_df(df)
    if initial is None:
        grid = _wide_grid(squares, df)
        initial_mean, initial_sd = _mean_and_sd(grid, _joint_weights(classes.log_likelihood(grid, squares)[0])[1])
        initial_sd = np.maximum(initial_sd, (grid[..., 1] - grid[..., 0]) / 2)
    else:
        initial_mean, initial_sd = initial.log_mean, initial.log_sd
    log_scale_grid = _log_scale_grid(initial_mean, initial_sd)
    log_likelihood, total_squares = classes.log_likelihood(log_scale_grid, squares)
    weight, scale_weight = _joint_weights(log_likelihood)
    mean, sd = _mean_and_sd(log_scale_grid, scale_weight)
    return CommonVariance(
        log_mean=mean,
        log_sd=np.hypot(sd, mean - initial_mean),  # wide enough to follow where the data move on
        precision=(weight * classes.posterior_df / total_squares).sum(axis=(0, -2)),
    )


def noise_posterior(squares: np.ndarray, *, df: np.ndarray, common: CommonVariance) -> NoisePosterior:
    """Compute the posterior of sigma_i^2 from squares_i ~ sigma_i^2 chi^2(df_i), independent.

    Each sigma_i^2 is scaled inverse chi-squared around a common s^2, with `PRIOR_DF_BY_CLASS` degrees of freedom: 256
    for an ordinary candidate, whose noise is that of the others, or 2.5 for an outlying one, whose own runs decide. log
    s^2 is uniform, and so is the share q of outlying candidates. With class c and A_ci = d_c s^2 + squares_i::

        p(squares_i | s^2, c) ~ Gamma((d_c + df_i) / 2) / Gamma(d_c / 2) (d_c s^2)^(d_c / 2) A_ci^(-(d_c + df_i) / 2)

    The sum over the grids of s^2 and q gives the moments.

    Args:
        squares: above 0, as `df`, which need not be whole. Shapes: `(..., num_candidates)`.
        common: the result of `common_variance` for the same or similar data.
    """
    squares, df = squares[..., None, :], df[..., None, :]
    classes = _ClassLikelihoods.from_df(df)
    log_scale_grid = _log_scale_grid(common.log_mean, common.log_sd)
    log_likelihood, total_squares = classes.log_likelihood(log_scale_grid, squares)
    # Shape: (num_classes, ..., num_scales, num_candidates)
    weight, _ = _joint_weights(log_likelihood)
    class_weight = weight.sum(axis=-2)
    log_total = np.log(total_squares)
    mean_log_total = (weight * log_total).sum(axis=-2) / class_weight
    log_total_variance = (weight * (log_total - mean_log_total[..., None, :]) ** 2).sum(axis=-2) / class_weight
    half_df = classes.posterior_df[..., 0, :] / 2
    return NoisePosterior(
        weight=class_weight,
        log_mean=mean_log_total - np.log(2) - digamma(half_df),
        log_variance=zeta(2, half_df) + log_total_variance,
    )


@dataclass(frozen=True, eq=False)
class _ClassLikelihoods:
    """Parts of the likelihood that depend on `df` alone. The first axis is that of the classes.

    `prior_df` has the shape `(num_classes, ..., 1, 1)`; `posterior_df` and `log_constant`, the part of
    the log likelihood without the scores, have `(num_classes, ..., 1, num_candidates)`.
    """

    prior_df: np.ndarray
    posterior_df: np.ndarray
    log_constant: np.ndarray

    @classmethod
    def from_df(cls, df: np.ndarray) -> "_ClassLikelihoods":
        similarity = np.reshape(PRIOR_DF_BY_CLASS, (len(PRIOR_DF_BY_CLASS), *(1 for _ in df.shape)))
        posterior_df = similarity + df
        log_constant = gammaln(posterior_df / 2) - gammaln(similarity / 2)
        return cls(similarity, posterior_df, log_constant + similarity / 2 * np.log(similarity))

    def log_likelihood(self, log_scale_grid: np.ndarray, squares: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """log p(squares_i | s^2, class) up to a constant, and A_ci. Shapes: `(num_classes, ..., num_scales,
        num_candidates)` both."""
        total_squares = self.prior_df * np.exp(log_scale_grid)[..., None] + squares
        log_prior = self.prior_df / 2 * log_scale_grid[..., None]
        return self.log_constant + log_prior - self.posterior_df / 2 * np.log(total_squares), total_squares


def _joint_weights(log_likelihood: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The joint posterior of class and s^2, and that of s^2 alone.

    Shapes: `(num_classes, ..., num_scales, num_candidates)` and `(..., num_scales)`.
    """
    max_log_likelihood = log_likelihood.max(axis=0)
    outlying, ordinary = np.exp(log_likelihood - max_log_likelihood)
    # Shape: (num_shares, ..., num_scales, num_candidates)
    shares = _OUTLYING_SHARES.reshape(-1, *(1 for _ in outlying.shape))
    mixture = shares * outlying + (1 - shares) * ordinary
    log_max = max_log_likelihood.sum(axis=-1)
    log_max = log_max - log_max.max(axis=-1, keepdims=True)
    joint = mixture.prod(axis=-1) * np.exp(log_max) * _SHARE_WEIGHTS.reshape(-1, *(1 for _ in log_max.shape))
    joint /= joint.sum(axis=(0, -1), keepdims=True)
    scale_weight = joint.sum(axis=0)
    others = joint[..., None] / mixture
    weight = np.stack([outlying * (shares * others).sum(axis=0), ordinary * ((1 - shares) * others).sum(axis=0)])
    return np.maximum(weight, np.finfo(float).tiny), scale_weight


def _log_scale_grid(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Values of log s^2 around its moments. Shape: `(..., GRID_SIZE)`."""
    return np.linspace(mean - 6 * sd, mean + 8 * sd, GRID_SIZE, axis=-1)


def _wide_grid(squares: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Values of log s^2 wherever any candidate's own variance is. Shape: `(..., WIDE_GRID_SIZE)`."""
    log_variances = np.log(squares / df).squeeze(-2)
    extra = 14 / np.maximum(df.sum(axis=(-2, -1)), 0.5)
    return np.linspace(log_variances.min(axis=-1) - 3, log_variances.max(axis=-1) + 3 + extra, WIDE_GRID_SIZE, axis=-1)


def _mean_and_sd(values: np.ndarray, weight: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    mean = (weight * values).sum(axis=-1)
    return mean, np.sqrt((weight * (values - mean[..., None]) ** 2).sum(axis=-1))


def _inverse_trigamma(value: np.ndarray) -> np.ndarray:
    """The x above 0 with trigamma(x) = value, by Newton's method on its reciprocal (Smyth, 2004)."""
    x = 0.5 + 1 / value
    for _ in range(5):
        trigamma = zeta(2, x)
        x = x - trigamma * (1 - trigamma / value) / (2 * zeta(3, x))
    return x
