import numpy as np
import pytest
from scipy.stats import norm

from fiesta_allennlp.searches.searchers.covariances import Prediction
from fiesta_allennlp.searches.searchers.improvement import (
    expected_hypervolume_improvement,
    expected_improvement,
    hypervolume,
    pareto_front,
)

FRONT = np.array([[1.0, 4.0], [2.0, 3.0], [4.0, 1.0], [1.5, 2.0]])
"""The last one is dominated by the second."""


def prediction(mean: float, sd: float) -> Prediction:
    return Prediction(np.array([mean]), np.array([sd]))


@pytest.mark.parametrize(
    ("mean", "sd", "best", "expected"),
    [
        (0.0, 1.0, 0.0, 1 / np.sqrt(2 * np.pi)),
        (1.0, 1.0, 0.0, norm.cdf(1) + norm.pdf(1)),
        (3.0, 2.0, 4.0, -norm.cdf(-0.5) + 2 * norm.pdf(0.5)),
        (3.0, 1e-9, 2.5, 0.5),
        (2.0, 1e-9, 2.5, 0.0),
    ],
)
def test_expected_improvement_at_known_means_and_deviations(
    mean: float, sd: float, best: float, expected: float
) -> None:
    assert expected_improvement(prediction(mean, sd), best) == pytest.approx([expected], abs=1e-12)


def test_a_front_is_what_nothing_dominates() -> None:
    assert pareto_front(FRONT).tolist() == [True, True, True, False]
    assert pareto_front(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])).tolist() == [True, True, False]


def test_hypervolume_by_hand() -> None:
    assert hypervolume(FRONT, np.array([0.0, 0.0])) == 4 + 3 + 1 + 1
    assert hypervolume(FRONT, np.array([1.0, 0.0])) == 3 + 1 + 1  # the first one is not above it
    assert hypervolume(FRONT, np.array([9.0, 9.0])) == 0


@pytest.mark.parametrize("point", [(3.0, 2.5), (0.5, 5.0), (5.0, 0.5), (1.2, 1.2), (5.0, 5.0), (-1.0, 9.0)])
def test_ehvi_of_a_certain_point_is_the_difference_of_hypervolumes(point: "tuple[float, float]") -> None:
    reference = np.array([0.0, 0.0])
    gained = hypervolume(np.vstack([FRONT, point]), reference) - hypervolume(FRONT, reference)
    first, second = (prediction(mean, 1e-9) for mean in point)
    found = expected_hypervolume_improvement(first, second, FRONT, reference)
    assert found == pytest.approx([gained], abs=1e-7)


@pytest.mark.parametrize(("mean", "sd"), [((2.5, 2.5), (1.0, 0.5)), ((0.5, 0.5), (2.0, 2.0)), ((4.0, 1.0), (0.3, 1.5))])
def test_ehvi_is_the_mean_of_hypervolume_differences(mean: "tuple[float, float]", sd: "tuple[float, float]") -> None:
    reference = np.array([0.0, 0.0])
    draws = np.random.default_rng(3).normal(mean, sd, (2_000, 2))
    before = hypervolume(FRONT, reference)
    gains = [hypervolume(np.vstack([FRONT, draw]), reference) - before for draw in draws]
    first, second = (prediction(*pair) for pair in zip(mean, sd, strict=True))
    found = expected_hypervolume_improvement(first, second, FRONT, reference)
    assert found[0] == pytest.approx(np.mean(gains), abs=4 * np.std(gains) / np.sqrt(len(gains)))


def test_ehvi_above_nothing_is_the_product_of_improvements() -> None:
    found = expected_hypervolume_improvement(
        prediction(0, 1), prediction(0, 1), np.array([[-1.0, -1.0]]), np.array([0.0, 0.0])
    )
    assert found == pytest.approx([1 / (2 * np.pi)])
