"""Predictions and criteria of searchers by hand and by other libraries."""

import numpy as np
import pytest
from gaussian_processes import (
    Points,
    Prediction,
    expected_hypervolume_improvement,
    expected_improvement,
    graph_covariance,
    kernel_matrix,
    laplacian,
    pareto_front,
    predict,
)
from scipy.stats import norm
from searchers import expected_influence, predict_harmonic, scale_to_unit


def on_a_line(*places: float) -> Points:
    return Points(np.array(places)[:, None])


def test_a_laplacian_and_the_covariance_of_a_graph_by_hand() -> None:
    delta = laplacian(on_a_line(0, 0.4, 1.0), "rbf", 1.0, 1 / 3)
    near, far = np.exp(-0.08), np.exp(-0.18)
    assert delta == pytest.approx(np.array([[near, -near, 0], [-near, near + far, -far], [0, -far, far]]))
    # Two points with weight w: 2 beta (Delta + I / sigma^2) = [[w + 1, -w], [-w, w + 1]], whose determinant is 2 w + 1.
    points = on_a_line(0, 1)
    w = np.exp(-0.5)
    found = graph_covariance(points, "rbf", 1.0, 0.5, 0.5, 1.0)
    assert found == pytest.approx(np.array([[w + 1, w], [w, w + 1]]) / (2 * w + 1))


@pytest.mark.parametrize("kernel", ["matern", "rbf"])
def test_the_posterior_is_that_of_scikit_learn(kernel: str) -> None:
    theirs = pytest.importorskip("sklearn.gaussian_process")
    their_kernel = theirs.kernels.Matern(0.7, nu=2.5) if kernel == "matern" else theirs.kernels.RBF(0.7)
    rng = np.random.default_rng(1)
    points = Points(rng.random((9, 3)))
    seen, values, at = [4, 0, 7], np.array([0.5, -1.0, 2.0]), np.array([1, 2, 3, 8])
    fit = theirs.GaussianProcessRegressor(their_kernel, alpha=0.01, optimizer=None).fit(points.inputs[seen], values)
    mean, sd = fit.predict(points.inputs[at], return_std=True)
    (ours,) = predict(kernel_matrix(points, kernel, 0.7), at, seen=seen, values=values[:, None], noise=0.01)
    assert ours.mean == pytest.approx(mean)
    assert ours.sd == pytest.approx(sd)


FRONT = np.array([[1.0, 4.0], [2.0, 3.0], [4.0, 1.0], [1.5, 2.0]])
"""The last one is dominated by the second."""


def prediction(mean: float, sd: float) -> Prediction:
    return Prediction(np.array([mean]), np.array([sd]))


def test_expected_improvement_at_known_means_and_deviations() -> None:
    for mean, sd, best, expected in (
        (0.0, 1.0, 0.0, 1 / np.sqrt(2 * np.pi)),
        (1.0, 1.0, 0.0, norm.cdf(1) + norm.pdf(1)),
        (3.0, 2.0, 4.0, -norm.cdf(-0.5) + 2 * norm.pdf(0.5)),
        (3.0, 1e-9, 2.5, 0.5),
        (2.0, 1e-9, 2.5, 0.0),
    ):
        assert expected_improvement(prediction(mean, sd), best) == pytest.approx([expected], abs=1e-12)


def hypervolume(scores: np.ndarray) -> float:
    """The area that scores dominate above 0, from the right on."""
    area, height = 0.0, 0.0
    for x, y in sorted(map(tuple, np.maximum(scores, 0)), reverse=True):
        area, height = area + x * max(0.0, y - height), max(height, y)
    return area


CERTAIN = (1e-9, 1e-9)


@pytest.mark.parametrize(
    ("mean", "sd"),
    [
        ((2.5, 2.5), (1.0, 0.5)),
        ((0.5, 5.0), CERTAIN),
        ((1.2, 1.2), CERTAIN),
        ((-1.0, 9.0), CERTAIN),
    ],
)
def test_ehvi_is_the_mean_of_hypervolume_differences(mean: "tuple[float, float]", sd: "tuple[float, float]") -> None:
    assert pareto_front(FRONT).tolist() == [True, True, True, False]
    assert pareto_front(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])).tolist() == [True, True, False]
    assert hypervolume(FRONT) == 4 + 3 + 1 + 1
    draws = np.random.default_rng(3).normal(mean, sd, (2_000, 2))
    gains = [hypervolume(np.vstack([FRONT, draw])) - hypervolume(FRONT) for draw in draws]
    first, second = (prediction(*pair) for pair in zip(mean, sd, strict=True))
    found = expected_hypervolume_improvement(first, second, FRONT, np.array([0.0, 0.0]))
    assert found[0] == pytest.approx(np.mean(gains), abs=1e-7 + 4 * np.std(gains) / np.sqrt(len(gains)))
    below = np.array([[-1.0, 1.0], [5.0, -1.0]])  # neither is above the reference
    alone = expected_hypervolume_improvement(prediction(0, 1), prediction(0, 1), below, np.array([0.0, 0.0]))
    assert alone == pytest.approx([1 / (2 * np.pi)]), "above nothing it is the product of improvements"


def test_the_prediction_on_a_path_of_three() -> None:
    path = np.array([[1.0, -1, 0], [-1, 3, -2], [0, -2, 2]])  # weights 1 and 2
    assert predict_harmonic(path, np.array([1]), [0, 2], np.array([1.0, 0.0])) == pytest.approx([1 / 3])
    # A part of the graph without a score is predicted to be bad.
    delta = np.kron(np.eye(2), np.array([[1.0, -1], [-1, 1]]))
    assert predict_harmonic(delta, np.array([1, 2, 3]), [0], np.array([1.0])) == pytest.approx([1, 0, 0], abs=1e-6)
    assert scale_to_unit(np.array([10.0, 20.0, 12.5])).tolist() == [0, 1, 0.25]


def test_the_expected_influence_is_that_of_new_predictions() -> None:
    rng = np.random.default_rng(2)
    weights = np.triu(rng.random((6, 6)), 1)
    weights = weights + weights.T
    delta = np.diag(weights.sum(axis=1)) - weights
    free, labelled, labels = np.array([0, 2, 3, 5]), [1, 4], np.array([1.0, 0.2])
    f = predict_harmonic(delta, free, labelled, labels)
    expected = []
    for place, k in enumerate(free):
        sums = {}
        for label in (0.0, 1.0):
            others = np.setdiff1d(free, [k])
            again = predict_harmonic(delta, others, [*labelled, int(k)], np.array([*labels, label]))
            sums[label] = again.sum() + labels.sum() + label
        expected.append((1 - f[place]) * (6 - sums[0.0]) + f[place] * sums[1.0])
    assert expected_influence(delta, free, labelled, labels) == pytest.approx(expected)
