"""Almost Stochastic Order: how far one distribution of scores is from lying above another one.

Del Barrio, Cuesta-Albertos and Matran (2018); for deep learning Dror, Shlomov and Reichart (ACL 2019).
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np
from scipy import stats

LEVEL = 0.95
NUM_RESAMPLES = 1000
SEED = 20190728
"""Of the resamples, so that a report is the same whenever it is made."""


@dataclass(frozen=True)
class StochasticOrder:
    """`epsilon` is 0 where `first` is stochastically larger than `second`, 1 where it is the other way round.

    `epsilon_min` is its upper 95 % bound; below 1/2, `first` is almost stochastically larger at that level.
    """

    epsilon: float
    epsilon_min: float


def stochastic_order(first: np.ndarray, second: np.ndarray) -> Optional[StochasticOrder]:
    """Almost Stochastic Order of two samples, of shapes `(n,)` and `(m,)`.

    With the empirical quantile functions F^-1 of `first` and G^-1 of `second`,

        epsilon = int (G^-1 - F^-1)_+^2 dt / int (F^-1 - G^-1)^2 dt

    which is exact here, for both are steps. epsilon_min = epsilon + z(.95) s, cut to [0, 1], where s is the standard
    deviation of epsilon over bootstrap resamples of both samples. That is the bound of Dror et al. (2019), section 4,
    with the resamples as large as the samples. None where the samples are equal, so that nothing can be told.
    """
    epsilon = _violations(first[None], second[None])[0]
    if np.isnan(epsilon):
        return None
    rng = np.random.default_rng(SEED)
    resampled = _violations(*(rng.choice(x, size=(NUM_RESAMPLES, len(x))) for x in (first, second)))
    spread = np.nanstd(resampled, ddof=1) if np.isfinite(resampled).sum() > 1 else 0.0
    bound = np.clip(epsilon + stats.norm.ppf(LEVEL) * spread, 0, 1)
    return StochasticOrder(float(epsilon), float(bound))


def _violations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """epsilon of many pairs of samples, of shapes `(num_pairs, n)` and `(num_pairs, m)`; NaN where both are equal.

    Shape: `(num_pairs,)`.
    """
    first, second = np.sort(first, axis=1), np.sort(second, axis=1)
    size, other = first.shape[1], second.shape[1]
    # steps of both quantile functions, as whole numbers of 1 / (size * other)
    steps = np.union1d(np.arange(size + 1) * other, np.arange(other + 1) * size)
    begins, widths = steps[:-1], np.diff(steps)
    # Shape: (num_pairs, num_steps)
    below = second[:, begins // size] - first[:, begins // other]
    total = below**2 @ widths
    with np.errstate(invalid="ignore"):
        return (np.maximum(below, 0) ** 2 @ widths) / total
