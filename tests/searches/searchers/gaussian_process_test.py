import numpy as np
import pytest
from scipy.stats import norm

from fiesta_allennlp.searches.searchers import GpEi, GraphEi, Points, SearchHistory
from fiesta_allennlp.searches.searchers.covariances import Prediction
from fiesta_allennlp.searches.searchers.gaussian_process import standardised
from fiesta_allennlp.searches.searchers.improvement import (
    expected_hypervolume_improvement,
    expected_improvement,
    hypervolume,
    pareto_front,
)

LINE = Points(np.linspace(0, 1, 5)[:, None])


def test_standardised_scores_by_hand() -> None:
    assert standardised(np.array([[1.0, 7.0], [3.0, 7.0]])).tolist() == [[-1, 0], [1, 0]]


def test_what_is_known_and_not_is_told_by_the_prior_mean() -> None:
    # Both ends are seen. A length scale far below the distances leaves the prior for all others.
    history = SearchHistory(LINE, (0, 4), np.array([[2.0], [6.0]]))
    found = GpEi(length_scale=1e-3).criterion(history)
    prior = Prediction(np.full(3, -1.0), np.ones(3))  # in standard deviations; the best seen is at 1
    assert found == pytest.approx(expected_improvement(prior, 1.0))
    neutral = Prediction(np.zeros(3), np.ones(3))
    assert GpEi(length_scale=1e-3, prior_mean=0).criterion(history) == pytest.approx(expected_improvement(neutral, 1.0))
    raw = GpEi(length_scale=1e-3, scores="raw").criterion(history)
    assert raw == pytest.approx(expected_improvement(neutral, 6.0))


def test_the_graph_predicts_between_its_neighbours() -> None:
    searcher = GraphEi(neighbours=0.3, sigma=1e4, prior_mean=0)
    history = SearchHistory(LINE, (0, 4), np.array([[0.0], [1.0]]))
    means = searcher.predictions(history, searcher.values(history))[0].mean
    assert means == pytest.approx([-0.5, 0, 0.5], abs=1e-3)  # harmonic: -1 and 1 at the ends


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


def test_fronts_and_hypervolumes_by_hand() -> None:
    assert pareto_front(FRONT).tolist() == [True, True, True, False]
    assert pareto_front(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])).tolist() == [True, True, False]
    # Below a reference of (1, 0) the first one is not above it.
    expected = {(0.0, 0.0): 4 + 3 + 1 + 1, (1.0, 0.0): 3 + 1 + 1, (9.0, 9.0): 0}
    assert {reference: hypervolume(FRONT, np.array(reference)) for reference in expected} == expected
    origin, below = np.array([0.0, 0.0]), np.array([[-1.0, -1.0]])
    found = expected_hypervolume_improvement(prediction(0, 1), prediction(0, 1), below, origin)
    assert found == pytest.approx([1 / (2 * np.pi)]), "above nothing it is the product of improvements"


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
