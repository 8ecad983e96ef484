"""The posterior of several noise variances that are mostly alike, from sums of squares, by quadrature on a grid.

Arrays may have leading axes `...`, for many selections at once.
"""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
from numpy.polynomial import legendre
from scipy.special import digamma, gammaln, zeta

SIMILARITY = (4.0, 256.0)
"""How many observations the common scale is worth for the variance of an outlying and of an ordinary candidate."""

NUM_SCALES = 24
"""Grid points over the logarithm of the common variance, where its posterior is."""

NUM_WIDE = 48
"""Grid points to find that place."""

_SHARES, _SHARE_WEIGHTS = (values / 2 for values in legendre.leggauss(4))
_SHARES = _SHARES + 0.5
"""Gauss-Legendre nodes over the share of outlying candidates, which is uniform from 0 to 1."""


@dataclass(frozen=True, eq=False)
class CommonNoise:
    """Where the logarithm of the common variance s^2 is, and what follows for the precisions.

    `mean` and `sd` are the moments of log s^2, shape `(...,)`. `precision` is E[1 / sigma_i^2], shape
    `(..., num_candidates)`.
    """

    mean: np.ndarray
    sd: np.ndarray
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

    def scaled_inverse_chi_squared(self) -> Tuple[np.ndarray, np.ndarray]:
        """Compute degrees of freedom and scale of the scaled inverse chi-squared variables with the same log moments.

        With sigma^2 such a variable, normal noise gives Student-t with as many degrees of freedom. Shapes:
        `(2, ..., num_candidates)` both.
        """
        half_df = _inverse_trigamma(self.log_variance)
        return 2 * half_df, np.exp(self.log_mean + digamma(half_df)) / half_df


def common_noise(squares: np.ndarray, *, df: np.ndarray, near: Optional[CommonNoise] = None) -> CommonNoise:
    """Compute the common variance and the precisions, under the model of `noise_posterior`.

    Args:
        squares: as for `noise_posterior`, and so is `df`.
        near: a result for similar data, which saves half of the time.
    """
    squares, df = squares[..., None, :], df[..., None, :]
    classes = _Classes.of(df)
    if near is None:
        wide = _wide_grid(squares, df)
        near_mean, near_sd = _moments(wide, _class_weights(classes.likelihood(wide, squares)[0])[1])
        near_sd = np.maximum(near_sd, (wide[..., 1] - wide[..., 0]) / 2)
    else:
        near_mean, near_sd = near.mean, near.sd
    log_scale = np.linspace(near_mean - 6 * near_sd, near_mean + 8 * near_sd, NUM_SCALES, axis=-1)
    likelihood, total = classes.likelihood(log_scale, squares)
    weight, grid = _class_weights(likelihood)
    mean, sd = _moments(log_scale, grid)
    return CommonNoise(
        mean=mean,
        sd=np.hypot(sd, mean - near_mean),  # wide enough to follow where the data move on
        precision=(weight * classes.posterior_df / total).sum(axis=(0, -2)),
    )


def noise_posterior(squares: np.ndarray, *, df: np.ndarray, near: CommonNoise) -> NoisePosterior:
    """Compute the posterior of sigma_i^2 from squares_i ~ sigma_i^2 chi^2(df_i), independent.

    Each sigma_i^2 is scaled inverse chi-squared around a common s^2, with `SIMILARITY` degrees of freedom: 256 for an
    ordinary candidate, whose noise is that of the others, or 1 for an outlying one, whose own runs decide. log s^2 is
    uniform, and so is the share q of outlying candidates. With class c and A_ci = d_c s^2 + squares_i::

        p(squares_i | s^2, c) ~ Gamma((d_c + df_i) / 2) / Gamma(d_c / 2) (d_c s^2)^(d_c / 2) A_ci^(-(d_c + df_i) / 2)

    The sum over the grids of s^2 and q gives the moments.

    Args:
        squares: above 0, as `df`, which need not be whole. Shapes: `(..., num_candidates)`.
        near: the result of `common_noise` for the same or similar data.
    """
    squares, df = squares[..., None, :], df[..., None, :]
    classes = _Classes.of(df)
    log_scale = np.linspace(near.mean - 6 * near.sd, near.mean + 8 * near.sd, NUM_SCALES, axis=-1)
    likelihood, total = classes.likelihood(log_scale, squares)
    # Shape: (num_classes, ..., num_scales, num_candidates)
    weight, _ = _class_weights(likelihood)
    class_weight = weight.sum(axis=-2)
    log_total = np.log(total)
    mean_log_total = (weight * log_total).sum(axis=-2) / class_weight
    spread = (weight * (log_total - mean_log_total[..., None, :]) ** 2).sum(axis=-2) / class_weight
    half_df = classes.posterior_df[..., 0, :] / 2
    return NoisePosterior(
        weight=class_weight,
        log_mean=mean_log_total - np.log(2) - digamma(half_df),
        log_variance=zeta(2, half_df) + spread,
    )


@dataclass(frozen=True, eq=False)
class _Classes:
    """Parts of the likelihood that depend on `df` alone. The first axis is that of the classes.

    `similarity` has the shape `(num_classes, ..., 1, 1)`; `posterior_df` and `log_constant`, the part of
    the log likelihood without the scores, have `(num_classes, ..., 1, num_candidates)`.
    """

    similarity: np.ndarray
    posterior_df: np.ndarray
    log_constant: np.ndarray

    @classmethod
    def of(cls, df: np.ndarray) -> "_Classes":
        similarity = np.reshape(SIMILARITY, (len(SIMILARITY), *(1 for _ in df.shape)))
        posterior_df = similarity + df
        log_constant = gammaln(posterior_df / 2) - gammaln(similarity / 2)
        return cls(similarity, posterior_df, log_constant + similarity / 2 * np.log(similarity))

    def likelihood(self, log_scale: np.ndarray, squares: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """log p(squares_i | s^2, class) up to a constant, and A_ci. Shapes: `(num_classes, ..., num_scales,
        num_candidates)` both."""
        total = self.similarity * np.exp(log_scale)[..., None] + squares
        prior = self.similarity / 2 * log_scale[..., None]
        return self.log_constant + prior - self.posterior_df / 2 * np.log(total), total


def _class_weights(log_likelihood: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The joint posterior of class and s^2, and that of s^2 alone.

    Shapes: `(num_classes, ..., num_scales, num_candidates)` and `(..., num_scales)`.
    """
    largest = log_likelihood.max(axis=0)
    outlying, ordinary = np.exp(log_likelihood - largest)
    # Shape: (num_shares, ..., num_scales, num_candidates)
    shares = _SHARES.reshape(-1, *(1 for _ in outlying.shape))
    mixture = shares * outlying + (1 - shares) * ordinary
    log_largest = largest.sum(axis=-1)
    log_largest = log_largest - log_largest.max(axis=-1, keepdims=True)
    joint = mixture.prod(axis=-1) * np.exp(log_largest) * _SHARE_WEIGHTS.reshape(-1, *(1 for _ in log_largest.shape))
    joint /= joint.sum(axis=(0, -1), keepdims=True)
    grid = joint.sum(axis=0)
    remainder = joint[..., None] / mixture
    weight = np.stack([outlying * (shares * remainder).sum(axis=0), ordinary * ((1 - shares) * remainder).sum(axis=0)])
    return np.maximum(weight, np.finfo(float).tiny), grid


def _wide_grid(squares: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Values of log s^2 wherever any candidate's own variance is. Shape: `(..., NUM_WIDE)`."""
    log_variances = np.log(squares / df).squeeze(-2)
    beyond = 14 / np.maximum(df.sum(axis=(-2, -1)), 0.5)
    return np.linspace(log_variances.min(axis=-1) - 3, log_variances.max(axis=-1) + 3 + beyond, NUM_WIDE, axis=-1)


def _moments(values: np.ndarray, weight: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    mean = (weight * values).sum(axis=-1)
    return mean, np.sqrt((weight * (values - mean[..., None]) ** 2).sum(axis=-1))


def _inverse_trigamma(value: np.ndarray) -> np.ndarray:
    """The x above 0 with trigamma(x) = value, by Newton's method on its reciprocal (Smyth, 2004)."""
    x = 0.5 + 1 / value
    for _ in range(5):
        trigamma = zeta(2, x)
        x = x - trigamma * (1 - trigamma / value) / (2 * zeta(3, x))
    return x
