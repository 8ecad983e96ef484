"""Expected influence on a graph of near points."""

from typing import List

import numpy as np

from fiesta_allennlp.searches.searchers.base import Searcher, SearchHistory
from fiesta_allennlp.searches.searchers.covariances import AS_LITTLE_AS, check_graph, laplacian


@Searcher.register("graph_eif")
class GraphEif(Searcher):
    """Expected influence on a graph of near points (Zhang and Duh, 2020, section 5.2).

    It runs the point whose score would change the predictions of all others most. f is the harmonic prediction from
    labels in [0, 1]. f^(k,v) is the prediction after point k got the label v (equation 8)::

        a(k) = (1 - f_k) sum_i (1 - f_i^(k,0)) + f_k sum_i f_i^(k,1)

    The paper gives labels 0 and 1 by a random walk that it does not define. Here a label is the score, scaled so that
    the worst one seen has 0 and the best one 1. The points under way have their predictions as labels.

    Args:
        kernel: the kernel that weighs the edges of the graph.
        length_scale: the length scale of this kernel.
        neighbours: the share of all points that a point has as neighbours, on average.
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        length_scale: float = 0.5,
        neighbours: float = 1 / 7,
        num_initial: int = 3,
    ) -> None:
        super().__init__(num_initial=num_initial)
        check_graph(kernel, length_scale, neighbours)
        self.graph = (kernel, length_scale, neighbours)

    def criterion(self, history: SearchHistory) -> np.ndarray:
        delta = laplacian(history.points, *self.graph)
        labels = scaled(history.known[:, 0])
        seen, pending = list(history.seen), list(history.pending)
        if pending:
            free = np.setdiff1d(np.arange(len(history.points)), seen)
            guessed = harmonic(delta, free, seen, labels)[np.searchsorted(free, pending)]
            seen, labels = seen + pending, np.concatenate([labels, guessed])
        return expected_influence(delta, history.open, seen, labels)


def scaled(scores: np.ndarray) -> np.ndarray:
    """Scale scores from 0, the worst, to 1, the best. All are 1 if they are equal."""
    width = scores.max() - scores.min()
    return (scores - scores.min()) / width if width > 0 else np.ones_like(scores)


def harmonic(delta: np.ndarray, free: np.ndarray, labelled: List[int], labels: np.ndarray) -> np.ndarray:
    """Compute f_U = -Delta_UU^-1 Delta_UL f_L (equation 7).

    The label of a free point is the weighted mean of its neighbours' labels. Shape: `(num_free,)`.
    """
    return _inverse(delta, free) @ -delta[np.ix_(free, labelled)] @ labels


def expected_influence(delta: np.ndarray, free: np.ndarray, labelled: List[int], labels: np.ndarray) -> np.ndarray:
    """Compute a(k) of every free point k, with one inverse for all points.

    With G = Delta_UU^-1, the label v of k changes the prediction of i by (v - f_k) G_ik / G_kk. The sums run over all
    points. The labelled points add the same to f and to 1 - f for every k. Shape: `(num_free,)`.
    """
    inverse = _inverse(delta, free)
    f = inverse @ -delta[np.ix_(free, labelled)] @ labels
    reach = inverse.sum(axis=0) / np.diag(inverse)
    low = len(f) + (1 - labels).sum() - f.sum() + f * reach
    high = labels.sum() + f.sum() + (1 - f) * reach
    return (1 - f) * low + f * high


def _inverse(delta: np.ndarray, free: np.ndarray) -> np.ndarray:
    from scipy.linalg import inv

    block = delta[np.ix_(free, free)] + AS_LITTLE_AS * np.eye(len(free))
    return np.asarray(inv(block, check_finite=False))
