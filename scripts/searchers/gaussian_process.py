"""Searchers that model the scores: by a Gaussian process, over a kernel or a graph of near points, or by the graph
itself."""

from abc import abstractmethod
from typing import Any, List, Optional

import numpy as np
from scipy.linalg import inv

from searchers.base import Points, Searcher, SearchHistory
from searchers.covariances import (
    LAPLACIAN_JITTER,
    expected_hypervolume_improvement,
    expected_improvement,
    graph_covariance,
    kernel_matrix,
    laplacian,
    predict,
)

PRIOR_MEAN = -1.0
"""The unit is the sd of the scores. At 0 a search spends runs on far corners that are worse than they could be; the
lower it is, the longer the search stays near the best points that it knows."""


class GaussianProcess(Searcher):
    """A Gaussian process for each objective, with fixed parameters that are not fitted.

    The criterion is the expected improvement of the first objective on the best score seen; or, for two objectives, of
    the hypervolume above a reference 1 below the worst value seen or predicted, in the units of the scores.

    Args:
        scores: `standardised`, by the mean and the standard deviation of the scores seen, or `raw`, as in Zhang and Duh
            (2020).
        prior_mean: the expected score of a point far from all points seen, in the units of `scores`. The default is -1
            for standardised scores and 0 for raw ones.
        noise: the variance of a score's noise, in the units of `scores`, above 0. With a large value, a score that is
            the best by luck draws fewer runs to its neighbours.
    """

    def __init__(
        self, *, scores: str = "standardised", prior_mean: Optional[float] = None, noise: float = 1e-6
    ) -> None:
        self.scores = scores
        self.prior_mean = prior_mean if prior_mean is not None else 0.0 if scores == "raw" else PRIOR_MEAN
        self.noise = noise

    @abstractmethod
    def covariance(self, points: Points) -> np.ndarray:
        """Compute the prior covariance of all points. Shape: `(num_points, num_points)`."""

    def values(self, history: SearchHistory) -> np.ndarray:
        """Compute the values that the process models, with prior mean 0. Shape: `(num_seen, num_objectives)`."""
        scores = history.scores if self.scores == "raw" else standardise(history.scores)
        return scores - self.prior_mean

    def criterion(self, history: SearchHistory) -> np.ndarray:
        values = self.values(history)[:, : self.num_objectives]
        first, *second = predict(
            self.covariance(history.points),
            history.open,
            seen=history.seen,
            values=values,
            noise=self.noise,
        )
        if not second:
            return expected_improvement(first, values.max())
        worst = np.minimum(values.min(axis=0), [first.mean.min(), second[0].mean.min()])
        return expected_hypervolume_improvement(first, second[0], values, worst - 1)


def standardise(scores: np.ndarray) -> np.ndarray:
    """Scale each objective to mean 0 and standard deviation 1, or to 0 if all scores are equal."""
    sd = scores.std(axis=0)
    return (scores - scores.mean(axis=0)) / np.where(sd > 0, sd, 1)


class GpEi(GaussianProcess):
    """Bayesian optimisation with a Gaussian process and expected improvement (Schonlau et al., 1998).

    The process has variance 1 over a kernel.

    Args:
        kernel: `matern` (with nu = 5/2) or `rbf`.
        length_scale: the length scale of all inputs, which are scaled to [0, 1].
    """

    def __init__(self, *, kernel: str = "matern", length_scale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel = kernel
        self.length_scale = length_scale

    def covariance(self, points: Points) -> np.ndarray:
        return kernel_matrix(points, self.kernel, self.length_scale)


class GpEhvi(GpEi):
    """Bayesian optimisation of two objectives with a Gaussian process for each.

    The criterion is the expected improvement of the hypervolume (Emmerich et al., 2011).
    """

    num_objectives = 2


class GraphEi(GaussianProcess):
    """Expected improvement over the finite-set Gaussian process of a graph: GB_EI of Zhang and Duh (2020).

    The process is on a graph of near points (section 5.3). With Delta the graph's Laplacian, the covariance is
    (2 beta (Delta + I / sigma^2))^-1.

    Args:
        kernel: the kernel that weighs the edges, `matern` (with nu = 5/2) or `rbf`.
        length_scale: the length scale of this kernel.
        neighbours: the share of all points that a point has as neighbours, on average.
        beta: the factor in the covariance. With a larger value, a point may differ less from the prior's mean.
        sigma: the scale in the covariance. With a larger value, a point may differ more from the prior's mean.
    """

    def __init__(
        self,
        *,
        kernel: str = "matern",
        length_scale: float = 1.0,
        neighbours: float = 1 / 7,
        beta: float = 0.5,
        sigma: float = 10.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.graph = (kernel, length_scale, neighbours)
        self.beta = beta
        self.sigma = sigma

    def covariance(self, points: Points) -> np.ndarray:
        return graph_covariance(points, *self.graph, self.beta, self.sigma)


class GraphEhvi(GraphEi):
    """Expected improvement of the hypervolume of two objectives over the finite-set Gaussian process of a graph.

    This is GB of table 4 of Zhang and Duh (2020).
    """

    num_objectives = 2


class GraphEif(Searcher):
    """Expected influence on a graph of near points (Zhang and Duh, 2020, section 5.2).

    It runs the point whose score would change the predictions of all others most. f is the harmonic prediction from
    labels in [0, 1]. f^(k,v) is the prediction after point k got the label v (equation 8)::

        a(k) = (1 - f_k) sum_i (1 - f_i^(k,0)) + f_k sum_i f_i^(k,1)

    The paper gives labels 0 and 1 by a random walk that it does not define. Here a label is the score, scaled so that
    the worst one seen has 0 and the best one 1.

    Args:
        kernel: the kernel that weighs the edges of the graph.
        length_scale: the length scale of this kernel.
        neighbours: the share of all points that a point has as neighbours, on average.
    """

    def __init__(self, *, kernel: str = "rbf", length_scale: float = 0.5, neighbours: float = 1 / 7) -> None:
        self.graph = (kernel, length_scale, neighbours)

    def criterion(self, history: SearchHistory) -> np.ndarray:
        delta = laplacian(history.points, *self.graph)
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
