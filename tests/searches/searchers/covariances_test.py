import numpy as np
import pytest

from fiesta_allennlp.searches.searchers.base import Points
from fiesta_allennlp.searches.searchers.covariances import (
    graph_covariance,
    joined,
    kernel_matrix,
    laplacian,
    of_distance,
)


def on_a_line(*places: float) -> Points:
    return Points(np.array(places)[:, None])


def test_kernels_at_known_distances() -> None:
    assert of_distance(np.array([0.0, 1.0]), "rbf") == pytest.approx([1, np.exp(-0.5)])
    root = np.sqrt(5)
    assert of_distance(np.array([0.0, 1.0]), "matern") == pytest.approx([1, (1 + root + 5 / 3) * np.exp(-root)])
    assert kernel_matrix(on_a_line(0, 0.5), "rbf", 0.5)[0, 1] == pytest.approx(np.exp(-0.5))


def test_neighbours_are_joined_if_one_is_near_the_other() -> None:
    # The nearest of each: 0 - 1, 1 - 0, 2 - 1, so the middle one has two neighbours.
    points = on_a_line(0, 0.4, 1.0)
    assert joined(points, 1 / 3).tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert joined(points, 0.6).sum() == 6


def test_the_least_number_of_neighbours_on_average() -> None:
    points = Points(np.random.default_rng(1).random((70, 3)))
    assert 10 <= joined(points, 1 / 7).sum() / 70 < 12


def test_a_laplacian_by_hand() -> None:
    delta = laplacian(on_a_line(0, 0.4, 1.0), "rbf", 1.0, 1 / 3)
    near, far = np.exp(-0.08), np.exp(-0.18)
    assert delta == pytest.approx(np.array([[near, -near, 0], [-near, near + far, -far], [0, -far, far]]))


def test_the_covariance_of_a_graph_by_hand() -> None:
    # Two points with weight w: 2 beta (Delta + I / sigma^2) = [[w + 1, -w], [-w, w + 1]], whose determinant is 2 w + 1.
    points = on_a_line(0, 1)
    w = np.exp(-0.5)
    found = graph_covariance(points, "rbf", 1.0, 0.5, 0.5, 1.0)
    assert found == pytest.approx(np.array([[w + 1, w], [w, w + 1]]) / (2 * w + 1))
