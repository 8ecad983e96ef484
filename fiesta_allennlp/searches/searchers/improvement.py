"""The expected improvement of a point on what was seen, with one objective and with two."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fiesta_allennlp.searches.searchers.covariances import Prediction


@dataclass(frozen=True, eq=False)
class Strips:
    """The area below a front and above its reference, cut at the first objective of each of the front's k points.

    Attributes:
        edges: the left ends of the strips, from left to right. The last strip begins at the last point and has no end.
            Shape: `(k + 1,)`.
        heights: the height of the front in each strip. Shape: `(k + 1,)`.
    """

    edges: np.ndarray
    heights: np.ndarray


def expected_improvement(prediction: Prediction, best: "float | np.ndarray") -> np.ndarray:
    """Compute E max(f - best, 0) = (mu - best) Phi(z) + s phi(z) with z = (mu - best) / s.

    Shape: that of `best` and the prediction together.
    """
    ahead = prediction.mean - best
    z = ahead / prediction.sd
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.maximum(ahead * ndtr(z) + prediction.sd * density, 0)


def pareto_front(scores: np.ndarray) -> np.ndarray:
    """Return which points no other point dominates.

    A point dominates another if it is at least as high in every objective and higher in one. Shapes: `(num_points,
    num_objectives)` to `(num_points,)`.
    """
    as_high = (scores[:, None] >= scores[None]).all(axis=2)
    higher = (scores[:, None] > scores[None]).any(axis=2)
    return ~(as_high & higher).any(axis=0)


def hypervolume(scores: np.ndarray, reference: np.ndarray) -> float:
    """Compute the area that two-dimensional scores dominate above a reference. Shapes: `(num_points, 2)` and `(2,)`."""
    strips = _strips(scores, reference)
    return float(np.diff(strips.edges) @ (strips.heights[:-1] - reference[1]))


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
    strips = _strips(scores, reference)
    beyond = expected_improvement(first, strips.edges[:, None])
    beyond[:-1] -= beyond[1:].copy()
    return np.asarray((beyond * expected_improvement(second, strips.heights[:, None])).sum(axis=0))


def _strips(scores: np.ndarray, reference: np.ndarray) -> Strips:
    front = scores[pareto_front(scores)]
    front = np.unique(front[(front > reference).all(axis=1)], axis=0)
    return Strips(np.concatenate([reference[:1], front[:, 0]]), np.concatenate([front[:, 1], reference[1:]]))
