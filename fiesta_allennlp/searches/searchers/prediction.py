"""The posterior of a Gaussian process over a finite number of points."""

from dataclasses import dataclass
from typing import List, Sequence

import numpy as np

LEAST_VARIANCE = 1e-18
"""In place of a variance that came out at 0 or below."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The posterior at each of some points, without covariances between them. Shapes: `(num_points,)`."""

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
) -> List[Prediction]:
    """Compute the posterior of one Gaussian process for each objective, all with mean 0 and the same covariance.

    It uses equations 1 and 2 of Zhang and Duh (2020). The points under way lower the variance but leave the mean: each
    counts as scored with its own prediction.

    Args:
        covariance: the prior's covariance. Shape: `(num_all, num_all)`.
        at: the rows to predict. Shape: `(num_points,)`.
        values: the values of the rows `seen`. Shape: `(num_seen, num_objectives)`.
        noise: the variance of a value's noise, above 0.
    """
    from scipy.linalg import cho_solve, solve_triangular

    factor = _factor(covariance, seen, noise)
    cross = covariance[np.ix_(seen, at)]
    means = cross.T @ cho_solve((factor, True), values, check_finite=False)
    if pending:
        known = [*seen, *pending]
        factor, cross = _factor(covariance, known, noise), covariance[np.ix_(known, at)]
    explained = solve_triangular(factor, cross, lower=True, check_finite=False)
    variance = covariance[at, at] - np.einsum("ij,ij->j", explained, explained)
    sd = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
    return [Prediction(mean, sd) for mean in means.T]


def _factor(covariance: np.ndarray, rows: Sequence[int], noise: float) -> np.ndarray:
    """The Cholesky factor of the covariance of noisy values."""
    from scipy.linalg import cholesky

    return cholesky(covariance[np.ix_(rows, rows)] + noise * np.eye(len(rows)), lower=True, check_finite=False)
