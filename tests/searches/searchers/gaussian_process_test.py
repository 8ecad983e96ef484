import numpy as np
import pytest

from fiesta_allennlp.searches.searchers import GpEhvi, GpEi, GraphEi, Points, SearchHistory
from fiesta_allennlp.searches.searchers.covariances import Prediction
from fiesta_allennlp.searches.searchers.gaussian_process import standardised
from fiesta_allennlp.searches.searchers.improvement import expected_improvement

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


def test_a_search_climbs_towards_the_better_end() -> None:
    history = SearchHistory(LINE, (0, 1), np.array([[0.0], [1.0]]))
    assert history.open[np.argmax(GpEi().criterion(history))] in (2, 3, 4)
    assert GpEi().propose(SearchHistory(LINE, (1, 3), np.array([[0.0], [1.0]])), 1, np.random.default_rng(1)) != [0]


def test_with_much_noise_two_equal_neighbours_weigh_more_than_one() -> None:
    sharp, dull = (GpEi(num_initial=1, noise=noise) for noise in (1e-6, 1.0))
    history = SearchHistory(LINE, (0, 2), np.array([[0.0], [1.0]]))
    values = sharp.values(history)
    assert (sharp.predictions(history, values)[0].sd < dull.predictions(history, values)[0].sd).all()


def test_the_graph_predicts_between_its_neighbours() -> None:
    searcher = GraphEi(neighbours=0.3, sigma=1e4, prior_mean=0)
    history = SearchHistory(LINE, (0, 4), np.array([[0.0], [1.0]]))
    means = searcher.predictions(history, searcher.values(history))[0].mean
    assert means == pytest.approx([-0.5, 0, 0.5], abs=1e-3)  # harmonic: -1 and 1 at the ends


def test_two_objectives_are_traded_off() -> None:
    scores = np.array([[0.0, 1.0], [1.0, 0.0]])
    history = SearchHistory(LINE, (0, 4), scores)
    found = GpEhvi().criterion(history)
    assert found[0] == pytest.approx(found[2])
    assert (found > 0).all()
