"""By how much a point is expected to improve on what was seen, with one objective and with two."""

from typing import List, NamedTuple

import numpy as np
from scipy.special import ndtr

from fiesta_allennlp.searches.searchers.prediction import Prediction


class Strip(NamedTuple):
    """What lies below a front between two of its points: from `left` to `right` in the first objective, as high as
    `height` in the second."""

    left: float
    right: float
    height: float


def expected_improvement(prediction: Prediction, best: float) -> np.ndarray:
    """E max(f - best, 0) = (mu - best) Phi(z) + s phi(z) with z = (mu - best) / s. Shape: `(num_points,)`."""
    return expected_excess(best, prediction)


def expected_excess(level: "float | np.ndarray", prediction: Prediction) -> np.ndarray:
    """E max(f - level, 0) at each point. Shape: that of `level` and the prediction together."""
    ahead = prediction.mean - level
    z = ahead / prediction.sd
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.maximum(ahead * ndtr(z) + prediction.sd * density, 0)


def pareto_front(scores: np.ndarray) -> np.ndarray:
    """Which points no other one dominates: none is as high in every objective and higher in one. Shapes:
    `(num_points, num_objectives)` to `(num_points,)`."""
    as_high = (scores[:, None] >= scores[None]).all(axis=2)
    higher = (scores[:, None] > scores[None]).any(axis=2)
    return ~(as_high & higher).any(axis=0)


def hypervolume(scores: np.ndarray, reference: np.ndarray) -> float:
    """The area that two-dimensional scores dominate above a reference. Shapes: `(num_points, 2)` and `(2,)`."""
    *strips, _ = _strips(scores, reference)
    return float(sum((strip.right - strip.left) * (strip.height - reference[1]) for strip in strips))


def expected_hypervolume_improvement(
    first: Prediction, second: Prediction, scores: np.ndarray, reference: np.ndarray
) -> np.ndarray:
    """By how much a point is expected to increase the hypervolume of two independent objectives (Emmerich et al.,
    2011), in closed form. The front cuts the plane into strips along the first objective. In a strip from a to b above
    which the front has height h, a point adds E[max(f1 - a, 0) - max(f1 - b, 0)] E max(f2 - h, 0).

    # Parameters

    scores : of the points seen. Shape: `(num_seen, 2)`.
    reference : only what is above it in both objectives counts. Shape: `(2,)`.
    """
    expected = np.zeros(len(first.mean))
    for strip in _strips(scores, reference):
        beyond = expected_excess(strip.right, first) if np.isfinite(strip.right) else 0.0
        expected += (expected_excess(strip.left, first) - beyond) * expected_excess(strip.height, second)
    return expected


def _strips(scores: np.ndarray, reference: np.ndarray) -> List[Strip]:
    """Those of a front above its reference, from left to right. The last one has no end."""
    front = scores[pareto_front(scores)]
    front = np.unique(front[(front > reference).all(axis=1)], axis=0)
    edges = [float(reference[0]), *front[:, 0].tolist(), np.inf]
    heights = [*front[:, 1].tolist(), float(reference[1])]
    return [Strip(*strip) for strip in zip(edges[:-1], edges[1:], heights, strict=True)]
