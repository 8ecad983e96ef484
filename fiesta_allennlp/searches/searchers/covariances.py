"""Gaussian processes over points: kernels, the graph of near points, covariances and the posterior."""

from dataclasses import dataclass
from functools import lru_cache
from typing import List, Sequence

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.searchers.base import Points, check_above_zero, check_choice

KERNELS = ("matern", "rbf")
AS_LITTLE_AS = 1e-9
"""Added to a graph's Laplacian, which is singular where no labelled point can be reached."""


@lru_cache(maxsize=4)
def kernel_matrix(points: Points, kernel: str, length_scale: float) -> np.ndarray:
    """Compute the covariances of all pairs of points, 1 on the diagonal.

    With r the distance over the length scale, `matern` (5/2) is (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) and `rbf`
    is exp(-r^2 / 2). Shape: `(num_points, num_points)`.
    """
    from scipy.spatial.distance import cdist  # takes 0.2 s, and reports import this module

    return of_distance(cdist(points.inputs, points.inputs) / length_scale, kernel)


def of_distance(distance: np.ndarray, kernel: str) -> np.ndarray:
    """Compute the kernel at these distances, in units of the length scale. Shape: that of `distance`."""
    if kernel == "rbf":
        return np.exp(-(distance**2) / 2)
    scaled = np.sqrt(5) * distance
    return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)


@lru_cache(maxsize=4)
def laplacian(points: Points, kernel: str, length_scale: float, share: float) -> np.ndarray:
    """Compute Delta = D - W of a graph of near points, with weights by the kernel.

    The graph joins two points if either is among the k nearest of the other. k is the smallest number with which a
    point has `share` of the points as neighbours on average. Shape: `(num_points, num_points)`.
    """
    weights = np.where(joined(points, share), kernel_matrix(points, kernel, length_scale), 0.0)
    return np.diag(weights.sum(axis=1)) - weights


@lru_cache(maxsize=4)
def joined(points: Points, share: float) -> np.ndarray:
    """Return which pairs `laplacian` joins as neighbours. Among equally distant points, the first count as nearer.
    Shape: `(num_points, num_points)`.
    """
    from scipy.spatial.distance import cdist

    distance = cdist(points.inputs, points.inputs)
    np.fill_diagonal(distance, -1)
    rank = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1)  # 0 is the point itself
    either = np.minimum(rank, rank.T)
    number = len(points)
    for k in range(1, number):
        neighbours = (either > 0) & (either <= k)
        if neighbours.sum() / number >= share * number:
            break
    return neighbours


@lru_cache(maxsize=4)
def graph_covariance(
    points: Points, kernel: str, length_scale: float, share: float, beta: float, sigma: float
) -> np.ndarray:
    """Compute the covariance of the finite-set Gaussian process of Zhang and Duh (2020), section 5.3.

    It is (2 beta (Delta + I / sigma^2))^-1. Shape: `(num_points, num_points)`.
    """
    delta = laplacian(points, kernel, length_scale, share)
    return np.linalg.inv(2 * beta * (delta + np.eye(len(points)) / sigma**2))


def check_graph(kernel: str, length_scale: float, neighbours: float) -> None:
    """Check that the options give a graph.

    Raises:
        ConfigError: if an option gives no graph.
    """
    check_choice("kernel", kernel, KERNELS)
    check_above_zero("length_scale", length_scale)
    if not 0 < neighbours < 1:
        raise ConfigError(f"neighbours must be above 0 and below 1, a share of all points, but got {neighbours}.")


# The posterior of a Gaussian process over the points.

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
    """Return the Cholesky factor of the covariance of noisy values."""
    from scipy.linalg import cholesky

    return cholesky(covariance[np.ix_(rows, rows)] + noise * np.eye(len(rows)), lower=True, check_finite=False)
