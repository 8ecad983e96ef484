import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from fiesta_allennlp.searches.searchers.base import Points
from fiesta_allennlp.searches.searchers.covariances import (
    graph_covariance,
    joined,
    kernel_matrix,
    laplacian,
    of_distance,
    predict,
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
    many = Points(np.random.default_rng(1).random((70, 3)))
    assert 10 <= joined(many, 1 / 7).sum() / 70 < 12, "the least number of neighbours on average"


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


KERNELS = {"matern": Matern(0.7, nu=2.5), "rbf": RBF(0.7)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_posterior_is_that_of_scikit_learn(kernel: str) -> None:
    rng = np.random.default_rng(1)
    points = Points(rng.random((9, 3)))
    seen, values, at = [4, 0, 7], np.array([0.5, -1.0, 2.0]), np.array([1, 2, 3, 8])
    theirs = GaussianProcessRegressor(KERNELS[kernel], alpha=0.01, optimizer=None).fit(points.inputs[seen], values)
    mean, sd = theirs.predict(points.inputs[at], return_std=True)
    (ours,) = predict(kernel_matrix(points, kernel, 0.7), at, seen=seen, values=values[:, None], noise=0.01)
    assert ours.mean == pytest.approx(mean)
    assert ours.sd == pytest.approx(sd)


def test_a_pending_point_lowers_the_variance_and_leaves_the_mean_and_objectives_are_predicted_apart() -> None:
    covariance, at = kernel_matrix(Points(np.linspace(0, 1, 5)[:, None]), "matern", 0.5), np.array([1, 2])
    given = {"seen": [0], "values": np.array([[1.0]]), "noise": 1e-6}
    (after,) = predict(covariance, at, pending=[3], **given)
    (guessed,) = predict(covariance, np.array([3]), **given)
    # As if it were seen at its own prediction, also beside another objective.
    values = np.array([[5.0, 1.0], [2.0, guessed.mean[0]]])
    _, believed = predict(covariance, at, seen=[0, 3], values=values, noise=1e-6)
    assert after.sd == pytest.approx(believed.sd)
    assert after.mean == pytest.approx(believed.mean, abs=1e-5)
