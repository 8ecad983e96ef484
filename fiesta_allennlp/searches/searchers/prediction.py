"""The posterior of a Gaussian process over a finite number of points."""

from dataclasses import dataclass
from typing import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular


@dataclass(frozen=True, eq=False)
class Prediction:
    """The posterior at some points, each alone. Shapes: `(num_points,)`."""

    mean: np.ndarray
    sd: np.ndarray


def predict(
    covariance: np.ndarray,
    at: np.ndarray,
    *,
    seen: Sequence[int],
    values: np.ndarray,
    pending: Sequence[int] = (),
    noise: float,
) -> Prediction:
    """The posterior of a Gaussian process with mean 0 (equations 1 and 2 of Zhang and Duh, 2020).

    The points under way lower the variance but leave the mean: each counts as scored with its own prediction.

    # Parameters

    covariance : the prior's. Shape: `(num_all, num_all)`.
    at : the rows to predict. Shape: `(num_points,)`.
    values : of the rows `seen`. Shape: `(num_seen,)`.
    noise : variance of a value's noise, above 0.
    """
    mean = _mean(covariance, at, seen, values, noise)
    conditioned = [*seen, *pending]
    factor = _factor(covariance, conditioned, noise)
    explained = solve_triangular(factor, covariance[np.ix_(conditioned, at)], lower=True, check_finite=False)
    variance = covariance[at, at] - (explained**2).sum(axis=0)
    return Prediction(mean, np.sqrt(np.maximum(variance, 1e-18)))


def _mean(covariance: np.ndarray, at: np.ndarray, seen: Sequence[int], values: np.ndarray, noise: float) -> np.ndarray:
    weights = cho_solve((_factor(covariance, seen, noise), True), values, check_finite=False)
    return covariance[np.ix_(at, list(seen))] @ weights


def _factor(covariance: np.ndarray, rows: Sequence[int], noise: float) -> np.ndarray:
    """The Cholesky factor of the covariance of noisy values."""
    return cholesky(covariance[np.ix_(rows, rows)] + noise * np.eye(len(rows)), lower=True, check_finite=False)
