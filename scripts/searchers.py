"""The searchers of Zhang and Duh (2020): what they know, and how they choose the next point."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, List, Tuple

import numpy as np
from gaussian_processes import (
    NEIGHBOURS,
    Points,
    expected_hypervolume_improvement,
    expected_improvement,
    kernel_matrix,
    laplacian,
    predict,
)
from scipy.linalg import inv

NUM_INITIAL = 3
"""Random points that every search of the paper begins with. They count as runs, so no target is reached before."""

PRIOR_MEAN = -1.0
"""The unit is the sd of the scores. At 0 a search spends runs on far corners that are worse than they could be; the
lower it is, the longer the search stays near the best points that it knows."""

NOISE = 1e-6
"""The variance of a score's noise, in the units of the scores."""

LAPLACIAN_JITTER = 1e-9
"""Added to a graph's Laplacian, which is singular where no labelled point can be reached."""


@dataclass(frozen=True, eq=False)
class SearchHistory:
    """The runs of a search, in their order.

    Attributes:
        seen: the row of each run. No row is there twice.
        scores: higher is better in every objective. Shape: `(num_seen, num_objectives)`.
    """

    points: Points
    seen: Tuple[int, ...] = ()
    scores: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))

    @cached_property
    def open(self) -> np.ndarray:
        """The rows that have not been run, in ascending order. Shape: `(num_open,)`."""
        return np.setdiff1d(np.arange(len(self.points)), self.seen)


class Searcher(ABC):
    """Chooses which point to run next, from the history alone.

    The first points are random. Then the searcher proposes the point with the highest criterion, and a random one if
    several are equal.
    """

    def propose(self, history: SearchHistory, rng: np.random.Generator) -> int:
        """Return the row to run next."""
        if len(history.seen) < NUM_INITIAL:
            return int(rng.choice(history.open))
        values = self.criterion(history)
        return int(rng.choice(history.open[values == values.max()]))

    @abstractmethod
    def criterion(self, history: SearchHistory) -> np.ndarray:
        """Compute how promising each open row is. Shape: `(num_open,)`."""


class Random(Searcher):
    """Random search: every open point is equally good (Bergstra and Bengio, 2012)."""

    def criterion(self, history: SearchHistory) -> np.ndarray:
        return np.zeros(len(history.open))


class GaussianProcess(Searcher):
    """A Gaussian process for each objective, with fixed parameters that are not fitted.

    The criterion of one objective is the expected improvement on the best score seen (Schonlau et al., 1998). For two
    objectives, it is that of the hypervolume above a reference 1 below the worst value seen or predicted, in the units
    of the scores (Emmerich et al., 2011).

    Args:
        covariance: computes the prior covariance of all points: `kernel_matrix`, or `graph_covariance` for GB of the
            paper.
        is_raw: whether the scores are as they are, as in the paper, instead of scaled by mean and standard deviation.
        prior_mean: the expected score of a point far from all points seen, in the units of the scores.
    """

    def __init__(
        self,
        covariance: Callable[[Points], np.ndarray] = kernel_matrix,
        *,
        is_raw: bool = False,
        prior_mean: float = PRIOR_MEAN,
    ) -> None:
        self.covariance = covariance
        self.is_raw = is_raw
        self.prior_mean = prior_mean

    def criterion(self, history: SearchHistory) -> np.ndarray:
        # The process of the values has prior mean 0. Shape: (num_seen, num_objectives)
        values = (history.scores if self.is_raw else standardise(history.scores)) - self.prior_mean
        covariance = self.covariance(history.points)
        first, *second = predict(covariance, history.open, seen=history.seen, values=values, noise=NOISE)
        if not second:
            return expected_improvement(first, values.max())
        worst = np.minimum(values.min(axis=0), [first.mean.min(), second[0].mean.min()])
        return expected_hypervolume_improvement(first, second[0], values, worst - 1)


def standardise(scores: np.ndarray) -> np.ndarray:
    """Scale each objective to mean 0 and standard deviation 1, or to 0 if all scores are equal."""
    sd = scores.std(axis=0)
    return (scores - scores.mean(axis=0)) / np.where(sd > 0, sd, 1)


class GraphEif(Searcher):
    """Expected influence on a graph of near points (Zhang and Duh, 2020, section 5.2).

    It runs the point whose score would change the predictions of all others most. f is the harmonic prediction from
    labels in [0, 1]. f^(k,v) is the prediction after point k got the label v (equation 8)::

        a(k) = (1 - f_k) sum_i (1 - f_i^(k,0)) + f_k sum_i f_i^(k,1)

    The paper gives labels 0 and 1 by a random walk that it does not define. Here a label is the score, scaled so that
    the worst one seen has 0 and the best one 1.

    Args:
        kernel: the kernel that weighs the edges of the graph, with length scale 0.5.
    """

    def __init__(self, kernel: str = "rbf") -> None:
        self.kernel = kernel

    def criterion(self, history: SearchHistory) -> np.ndarray:
        delta = laplacian(history.points, self.kernel, 0.5, NEIGHBOURS)
        return expected_influence(delta, history.open, list(history.seen), scale_to_unit(history.scores[:, 0]))


def scale_to_unit(scores: np.ndarray) -> np.ndarray:
    """Scale scores from 0, the worst, to 1, the best. All are 1 if they are equal."""
    range_width = scores.max() - scores.min()
    return (scores - scores.min()) / range_width if range_width > 0 else np.ones_like(scores)


def predict_harmonic(delta: np.ndarray, unlabelled: np.ndarray, labelled: List[int], labels: np.ndarray) -> np.ndarray:
    """Compute f_U = -Delta_UU^-1 Delta_UL f_L (equation 7).

    The label of a free point is the weighted mean of its neighbours' labels. Shape: `(num_free,)`.
    """
    return _inverse_laplacian(delta, unlabelled) @ -delta[np.ix_(unlabelled, labelled)] @ labels


def expected_influence(
    delta: np.ndarray, unlabelled: np.ndarray, labelled: List[int], labels: np.ndarray
) -> np.ndarray:
    """Compute a(k) of every free point k, with one inverse for all points.

    With G = Delta_UU^-1, the label v of k changes the prediction of i by (v - f_k) G_ik / G_kk. The sums run over all
    points. The labelled points add the same to f and to 1 - f for every k. Shape: `(num_free,)`.
    """
    inverse = _inverse_laplacian(delta, unlabelled)
    f = inverse @ -delta[np.ix_(unlabelled, labelled)] @ labels
    total_influence = inverse.sum(axis=0) / np.diag(inverse)
    sum_after_label_0 = len(f) + (1 - labels).sum() - f.sum() + f * total_influence
    sum_after_label_1 = labels.sum() + f.sum() + (1 - f) * total_influence
    return (1 - f) * sum_after_label_0 + f * sum_after_label_1


def _inverse_laplacian(delta: np.ndarray, unlabelled: np.ndarray) -> np.ndarray:
    block = delta[np.ix_(unlabelled, unlabelled)] + LAPLACIAN_JITTER * np.eye(len(unlabelled))
    return np.asarray(inv(block, check_finite=False))
