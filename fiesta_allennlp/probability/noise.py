"""The posterior of several noise variances that are mostly alike, from sums of squares, by quadrature on a grid.

Arrays may have leading axes `...`, for many selections at once.
"""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from scipy.special import digamma, gammaln, zeta

SIMILARITY = (2.0, 256.0)
"""How many observations the common scale is worth for one candidate's variance: an odd one's, an ordinary one's."""

ODD_SHARE = 0.03
"""Prior probability that a candidate's noise is odd."""

STANDS_OUT = (1.3, 2.4)
"""A candidate's own noise stands out if its sd is so many times the common one, from so many degrees of freedom."""

NUM_SCALES = 40
"""Grid points over the logarithm of the common variance."""


@dataclass(frozen=True, eq=False)
class NoisePosterior:
    """What is known of the noise variances sigma_i^2.

    `precision` is E[1 / sigma_i^2], `log_mean` and `log_variance` are the moments of log sigma_i^2; all of shape
    `(..., num_candidates)`. `common` is the harmonic mean of s^2, of shape `(...,)`.
    """

    precision: np.ndarray
    log_mean: np.ndarray
    log_variance: np.ndarray
    common: np.ndarray

    def scaled_inverse_chi_squared(self) -> Tuple[np.ndarray, np.ndarray]:
        """Degrees of freedom and scale of the scaled inverse chi-squared variables with the same log moments.

        With sigma^2 such a variable, normal noise gives Student-t with as many degrees of freedom. Shapes:
        `(..., num_candidates)` both.
        """
        half_df = _inverse_trigamma(self.log_variance)
        return 2 * half_df, np.exp(self.log_mean + digamma(half_df)) / half_df


def noise_posterior(squares: np.ndarray, *, df: np.ndarray, odd_share: float = ODD_SHARE) -> NoisePosterior:
    """The posterior of sigma_i^2 from squares_i ~ sigma_i^2 chi^2(df_i), independent.

    Each sigma_i^2 is scaled inverse chi-squared around a common s^2, with `SIMILARITY` degrees of freedom: 256 for an
    ordinary candidate, whose noise is that of the others, or 2 for an odd one, whose own evaluations decide. log s^2 is
    uniform. With class c and A_ci = d_c s^2 + squares_i::

        p(squares_i | s^2, c) ~ Gamma((d_c + df_i) / 2) / Gamma(d_c / 2) (d_c s^2)^(d_c / 2) A_ci^(-(d_c + df_i) / 2)

    and the sum over classes and the grid of s^2 gives the moments.

    Args:
        squares: shape `(..., num_candidates)`, above 0. `df` need not be whole.
        df: shape `(..., num_candidates)`, above 0. `df` need not be whole.
        odd_share: the prior probability that a candidate is odd.
    """
    squares, df = squares[..., None, :], df[..., None, :]
    classes = _Classes.of(df, odd_share)
    log_scale = _grid(squares, df, classes)
    log_class, total = classes.log_likelihood(log_scale, squares)
    log_either = np.logaddexp(*log_class)
    grid = _normalised(log_either.sum(axis=-1))
    # Shapes: (num_classes, ..., num_scales, num_candidates)
    half_df = classes.posterior_df / 2
    weight = grid[..., None] * np.exp(log_class - log_either)
    log_mean = np.log(total / 2) - digamma(half_df)
    mean = (weight * log_mean).sum(axis=(0, -2))
    trigamma = zeta(2, half_df)
    variance = (weight * (trigamma + (log_mean - mean[..., None, :]) ** 2)).sum(axis=(0, -2))
    return NoisePosterior(
        precision=(weight * classes.posterior_df / total).sum(axis=(0, -2)),
        log_mean=mean,
        log_variance=variance,
        common=1 / (grid * np.exp(-log_scale)).sum(axis=-1),
    )


def noise_that_stands_out(squares: np.ndarray, *, df: np.ndarray, common: "float | np.ndarray") -> np.ndarray:
    """The noise variance of each candidate by its own scores alone, squares / df, if it stands out; 0 for the others.
    See `STANDS_OUT`.

    Args:
        squares: shape `(..., num_candidates)`, as in `noise_posterior`. `df` too.
        common: the variance that the candidates have in common. Shape: `(...,)`.
    """
    ratio, least_df = STANDS_OUT
    own = squares / df
    return np.where((own > ratio**2 * np.asarray(common)[..., None]) & (df > least_df), own, 0.0)


@dataclass(frozen=True, eq=False)
class _Classes:
    """What the classes of candidates have by `df` alone. The first axis is that of the classes.

    `similarity` has the shape `(num_classes, ..., 1, 1)`; `posterior_df` and `log_constant`, the part of
    `log_likelihood` without the scores, have `(num_classes, ..., 1, num_candidates)`.
    """

    similarity: np.ndarray
    posterior_df: np.ndarray
    log_constant: np.ndarray

    @classmethod
    def of(cls, df: np.ndarray, odd_share: float) -> "_Classes":
        shape = (len(SIMILARITY), *(1 for _ in df.shape))
        similarity, shares = np.reshape(SIMILARITY, shape), np.reshape([odd_share, 1 - odd_share], shape)
        posterior_df = similarity + df
        log_constant = np.log(shares) + gammaln(posterior_df / 2) - gammaln(similarity / 2)
        return cls(similarity, posterior_df, log_constant + similarity / 2 * np.log(similarity))

    def log_likelihood(self, log_scale: np.ndarray, squares: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """log p(squares_i, class | s^2) up to a constant, and A_ci. Shapes: `(num_classes, ..., num_scales,
        num_candidates)` both."""
        total = self.similarity * np.exp(log_scale)[..., None] + squares
        prior = self.similarity / 2 * log_scale[..., None]
        return self.log_constant + prior - self.posterior_df / 2 * np.log(total), total


def _grid(squares: np.ndarray, df: np.ndarray, classes: _Classes) -> np.ndarray:
    """Values of log s^2: first wherever any candidate's own variance is, then finely where the posterior is.

    Shape: `(..., NUM_SCALES)`.
    """
    own = np.log(squares / df).squeeze(-2)
    beyond = 14 / np.maximum(df.sum(axis=(-2, -1)), 0.5)
    wide = np.linspace(own.min(axis=-1) - 3, own.max(axis=-1) + 3 + beyond, NUM_SCALES, axis=-1)
    weight = _normalised(np.logaddexp(*classes.log_likelihood(wide, squares)[0]).sum(axis=-1))
    mean = (weight * wide).sum(axis=-1)
    spread = np.sqrt((weight * (wide - mean[..., None]) ** 2).sum(axis=-1))
    sd = np.maximum(spread, (wide[..., 1] - wide[..., 0]) / 2)
    return np.linspace(mean - 6 * sd, mean + 8 * sd, NUM_SCALES, axis=-1)


def _normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


def _inverse_trigamma(value: np.ndarray) -> np.ndarray:
    """The x above 0 with trigamma(x) = value, by Newton's method on its reciprocal (Smyth, 2004)."""
    x = 0.5 + 1 / value
    for _ in range(5):
        trigamma = zeta(2, x)
        x = x - trigamma * (1 - trigamma / value) / (2 * zeta(3, x))
    return x
