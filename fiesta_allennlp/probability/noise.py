"""The posterior of several noise variances that are mostly alike, from sums of squares, by quadrature on a grid."""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

SIMILARITY = np.array([2.0, 256.0])[:, None, None]
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
    `(num_candidates,)`. `common` is the harmonic mean of s^2.
    """

    precision: np.ndarray
    log_mean: np.ndarray
    log_variance: np.ndarray
    common: float

    def scaled_inverse_chi_squared(self) -> Tuple[np.ndarray, np.ndarray]:
        """Degrees of freedom and scale of the scaled inverse chi-squared variables with the same log moments.

        With sigma^2 such a variable, normal noise gives Student-t with as many degrees of freedom. Shapes:
        `(num_candidates,)` both.
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
        squares: shape `(num_candidates,)`, above 0. `df` need not be whole.
        df: shape `(num_candidates,)`, above 0. `df` need not be whole.
        odd_share: the prior probability that a candidate is odd.
    """
    shares = np.array([odd_share, 1 - odd_share])[:, None, None]
    log_scale = _grid(squares, df, shares)
    log_class = _log_class(log_scale, squares, df, shares)
    log_either = np.logaddexp(*log_class)
    grid = _normalised(log_either.sum(axis=-1))
    # Shapes: (num_classes, num_scales, num_candidates)
    posterior_df = SIMILARITY + df
    total = SIMILARITY * np.exp(log_scale)[:, None] + squares
    weight = grid[:, None] * np.exp(log_class - log_either)
    log_mean = np.log(total / 2) - digamma(posterior_df / 2)
    mean = (weight * log_mean).sum(axis=(0, 1))
    variance = (weight * (polygamma(1, posterior_df / 2) + (log_mean - mean) ** 2)).sum(axis=(0, 1))
    return NoisePosterior(
        precision=(weight * posterior_df / total).sum(axis=(0, 1)),
        log_mean=mean,
        log_variance=variance,
        common=float(1 / (grid @ np.exp(-log_scale))),
    )


def noise_that_stands_out(squares: np.ndarray, *, df: np.ndarray, common: float) -> np.ndarray:
    """The noise variance of each candidate by its own scores alone, squares / df, if it stands out; 0 for the others.
    See `STANDS_OUT`.

    Args:
        squares: shape `(num_candidates,)`, as in `noise_posterior`. `df` too.
        common: the variance that the candidates have in common.
    """
    ratio, least_df = STANDS_OUT
    own = squares / df
    return np.where((own > ratio**2 * common) & (df > least_df), own, 0.0)


def _log_class(log_scale: np.ndarray, squares: np.ndarray, df: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """log p(squares_i, class | s^2) up to a constant. Shape: `(num_classes, num_scales, num_candidates)`."""
    posterior_df = SIMILARITY + df
    return (
        np.log(shares)
        + gammaln(posterior_df / 2)
        - gammaln(SIMILARITY / 2)
        + SIMILARITY / 2 * (np.log(SIMILARITY) + log_scale[:, None])
        - posterior_df / 2 * np.log(SIMILARITY * np.exp(log_scale)[:, None] + squares)
    )


def _grid(squares: np.ndarray, df: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Values of log s^2: first wherever any candidate's own variance is, then finely where the posterior is.

    Shape: `(NUM_SCALES,)`.
    """
    own = np.log(squares / df)
    wide = np.linspace(own.min() - 3, own.max() + 3 + 14 / max(df.sum(), 0.5), NUM_SCALES)
    weight = _normalised(np.logaddexp(*_log_class(wide, squares, df, shares)).sum(axis=-1))
    mean = weight @ wide
    sd = max(np.sqrt(weight @ (wide - mean) ** 2), (wide[1] - wide[0]) / 2)
    return np.linspace(mean - 6 * sd, mean + 8 * sd, NUM_SCALES)


def _normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum()


def _inverse_trigamma(value: np.ndarray) -> np.ndarray:
    """The x above 0 with trigamma(x) = value, by Newton's method on its reciprocal (Smyth, 2004)."""
    x = 0.5 + 1 / value
    for _ in range(5):
        trigamma = polygamma(1, x)
        x = x + trigamma * (1 - trigamma / value) / polygamma(2, x)
    return x
