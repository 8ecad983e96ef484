"""Gaussian processes over points: covariances, the posterior, and the improvement to expect of a point."""

from dataclasses import dataclass
from functools import lru_cache
from typing import List, Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import ndtr

NEIGHBOURS = 1 / 7
"""The share of all points that a point has as neighbours in a graph, on average."""


@dataclass(frozen=True, eq=False)
class Points:
    """All points that a search can run.

    Two records are equal only if they are the same object, so that what depends on the inputs alone is computed once.

    Attributes:
        inputs: every input scaled to [0, 1]. Shape: `(num_points, num_inputs)`.
    """

    inputs: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)


@lru_cache(maxsize=4)
def kernel_matrix(points: Points, kernel: str = "matern", length_scale: float = 1.0) -> np.ndarray:
    """Compute the covariances of all pairs of points, 1 on the diagonal.

    With r the distance over the length scale, `matern` (5/2) is (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) and `rbf`
    is exp(-r^2 / 2). Shape: `(num_points, num_points)`.
    """
    distance = cdist(points.inputs, points.inputs) / length_scale
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
    weights = np.where(are_neighbours(points, share), kernel_matrix(points, kernel, length_scale), 0.0)
    return np.diag(weights.sum(axis=1)) - weights


@lru_cache(maxsize=4)
def are_neighbours(points: Points, share: float) -> np.ndarray:
    """Return which pairs `laplacian` joins. Shape: `(num_points, num_points)`."""
    distance = cdist(points.inputs, points.inputs)
    np.fill_diagonal(distance, -1)
    rank = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1)  # 0 is the point itself
    nearer_rank = np.minimum(rank, rank.T)
    num_points = len(points)
    for k in range(1, num_points):
        neighbours = (nearer_rank > 0) & (nearer_rank <= k)
        if neighbours.sum() / num_points >= share * num_points:
            break
    return neighbours


@lru_cache(maxsize=4)
def graph_covariance(
    points: Points,
    kernel: str = "matern",
    length_scale: float = 1.0,
    share: float = NEIGHBOURS,
    beta: float = 0.5,
    sigma: float = 10.0,
) -> np.ndarray:
    """Compute the covariance of the finite-set Gaussian process of Zhang and Duh (2020), section 5.3.

    With Delta the Laplacian of the graph, it is (2 beta (Delta + I / sigma^2))^-1. With a larger `beta`, a point may
    differ less from the prior's mean, and with a larger `sigma` more. Shape: `(num_points, num_points)`.
    """
    delta = laplacian(points, kernel, length_scale, share)
    return np.linalg.inv(2 * beta * (delta + np.eye(len(points)) / sigma**2))


# The posterior of a Gaussian process over the points.

MIN_VARIANCE = 1e-18
"""In place of a variance that came out at 0 or below."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """The posterior at each of some points, without covariances between them. Shapes: `(num_points,)`."""

    mean: np.ndarray
    sd: np.ndarray


def predict(
    covariance: np.ndarray, rows: np.ndarray, *, seen: Sequence[int], values: np.ndarray, noise: float
) -> List[Prediction]:
    """Compute the posterior of one Gaussian process for each objective, all with mean 0 and the same covariance.

    It uses equations 1 and 2 of Zhang and Duh (2020).

    Args:
        covariance: the prior's covariance. Shape: `(num_all, num_all)`.
        rows: the rows to predict. Shape: `(num_points,)`.
        values: the values of the rows `seen`. Shape: `(num_seen, num_objectives)`.
        noise: the variance of a value's noise, above 0.
    """
    noisy_covariance = covariance[np.ix_(seen, seen)] + noise * np.eye(len(seen))
    factor, cross = cholesky(noisy_covariance, lower=True, check_finite=False), covariance[np.ix_(seen, rows)]
    means = cross.T @ cho_solve((factor, True), values, check_finite=False)
    explained = solve_triangular(factor, cross, lower=True, check_finite=False)
    variance = covariance[rows, rows] - np.einsum("ij,ij->j", explained, explained)
    sd = np.sqrt(np.maximum(variance, MIN_VARIANCE))
    return [Prediction(mean, sd) for mean in means.T]


def expected_improvement(prediction: Prediction, best: "float | np.ndarray") -> np.ndarray:
    """Compute E max(f - best, 0) = (mu - best) Phi(z) + s phi(z) with z = (mu - best) / s.

    Shape: that of `best` and the prediction together.
    """
    mean_improvement = prediction.mean - best
    z = mean_improvement / prediction.sd
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.maximum(mean_improvement * ndtr(z) + prediction.sd * density, 0)


def pareto_front(scores: np.ndarray) -> np.ndarray:
    """Return which points no other point dominates.

    A point dominates another if it is at least as high in every objective and higher in one. Shapes: `(num_points,
    num_objectives)` to `(num_points,)`.
    """
    is_as_high = (scores[:, None] >= scores[None]).all(axis=2)
    is_higher = (scores[:, None] > scores[None]).any(axis=2)
    return ~(is_as_high & is_higher).any(axis=0)


def expected_hypervolume_improvement(
    first: Prediction, second: Prediction, scores: np.ndarray, reference: np.ndarray
) -> np.ndarray:
    """Compute by how much each point is expected to increase the hypervolume of two independent objectives.

    This is the closed form of Emmerich et al. (2011). The front cuts the plane into strips along the first objective.
    In a strip from a to b above which the front has height h, a point adds E[max(f1 - a, 0) - max(f1 - b, 0)] E max(f2
    - h, 0).

    Args:
        scores: the scores of the points seen. Shape: `(num_seen, 2)`.
        reference: the lower bound of both objectives. Only the area above it counts. Shape: `(2,)`.
    """
    front = scores[pareto_front(scores)]
    front = np.unique(front[(front > reference).all(axis=1)], axis=0)
    # Shape: (num_strips,), the left ends and the heights; the last strip has no right end
    strip_edges, strip_heights = np.append(reference[0], front[:, 0]), np.append(front[:, 1], reference[1])
    widths = expected_improvement(first, strip_edges[:, None])
    widths[:-1] -= widths[1:].copy()
    return np.asarray((widths * expected_improvement(second, strip_heights[:, None])).sum(axis=0))
