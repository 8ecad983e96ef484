import numpy as np
import pytest

from fiesta_allennlp.searches.searchers import GraphEif, Points, SearchHistory
from fiesta_allennlp.searches.searchers.graph_eif import expected_influence, harmonic, scaled

PATH = np.array([[1.0, -1, 0], [-1, 3, -2], [0, -2, 2]])
"""The Laplacian of three points in a row with weights 1 and 2."""


def test_the_prediction_and_influence_on_a_path_of_three() -> None:
    assert harmonic(PATH, np.array([1]), [0, 2], np.array([1.0, 0.0])) == pytest.approx([1 / 3])
    assert harmonic(PATH, np.array([1, 2]), [0], np.array([0.7])) == pytest.approx([0.7, 0.7])
    # Only the middle is free, with f = 1/3. With the label 0 the sum of 1 - f is 0 + 1 + 1, with 1 that of f is 2.
    found = expected_influence(PATH, np.array([1]), [0, 2], np.array([1.0, 0.0]))
    assert found == pytest.approx([2 / 3 * 2 + 1 / 3 * 2])
    # A part of the graph without a score is predicted to be bad.
    delta = np.kron(np.eye(2), np.array([[1.0, -1], [-1, 1]]))
    assert harmonic(delta, np.array([1, 2, 3]), [0], np.array([1.0])) == pytest.approx([1, 0, 0], abs=1e-6)
    assert scaled(np.array([10.0, 20.0, 12.5])).tolist() == [0, 1, 0.25]
    assert scaled(np.array([3.0, 3.0])).tolist() == [1, 1]


def test_the_expected_influence_is_that_of_new_predictions() -> None:
    rng = np.random.default_rng(2)
    weights = np.triu(rng.random((6, 6)), 1)
    weights = weights + weights.T
    delta = np.diag(weights.sum(axis=1)) - weights
    free, labelled, labels = np.array([0, 2, 3, 5]), [1, 4], np.array([1.0, 0.2])
    f = harmonic(delta, free, labelled, labels)
    expected = []
    for place, k in enumerate(free):
        sums = {}
        for label in (0.0, 1.0):
            others = np.setdiff1d(free, [k])
            again = harmonic(delta, others, [*labelled, int(k)], np.array([*labels, label]))
            sums[label] = again.sum() + labels.sum() + label
        expected.append((1 - f[place]) * (6 - sums[0.0]) + f[place] * sums[1.0])
    assert expected_influence(delta, free, labelled, labels) == pytest.approx(expected)


def test_a_pending_point_counts_as_predicted() -> None:
    points = Points(np.linspace(0, 1, 8)[:, None])
    history = SearchHistory(points, (0, 7), np.array([[1.0], [0.0]]))
    searcher = GraphEif(neighbours=0.3)
    alone = searcher.criterion(history)
    after = searcher.criterion(history.starting(3))
    assert len(after) == len(alone) - 1
    assert not np.allclose(after, np.delete(alone, 2))
