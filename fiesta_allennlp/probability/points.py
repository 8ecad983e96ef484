"""Points that fill the unit cube evenly, and gamma variables made of them: always the same ones, without any chance."""

from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv, gammaln

SCRAMBLING = 2017
"""Seed of the one scrambling of Sobol's points that is ever used."""

FAR_LEFT = -20.0
"""Logarithms of quantiles below this follow from the first term of the series."""


@lru_cache(maxsize=64)
def even_ranks(num_points: int, num_dimensions: int) -> np.ndarray:
    """Scrambled Sobol points, each coordinate as its rank among all. Shape: `(num_points, num_dimensions)`. Read only.

    # Parameters

    num_points : a power of two.
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
