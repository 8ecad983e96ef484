"""What differences say of new data, and of the size of a fixed test."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from fiesta_allennlp.probability.new_data import correlated_t
from fiesta_allennlp.probability.power import fixed_size, num_documents

DIFFERENCES = np.array([0.01, 0.03, 0.02, 0.04, 0.0])


def test_a_number_worked_by_hand() -> None:
    """d = .02, s^2 = .00025 and (1/5 + .2/.8) s^2 = .0001125, so t = .02 / .010607 = 1.8856 with 4 df."""
    posterior = correlated_t(DIFFERENCES, 0.2)
    assert (posterior.mean, posterior.scale, posterior.df) == (pytest.approx(0.02), pytest.approx(0.0106066), 4)
    assert posterior.prob_above_0() == pytest.approx(stats.t.cdf(1.885618, 4), abs=1e-6)


def test_the_ends() -> None:
    """Equal candidates, a small test set, which leaves differences independent, and very many splits."""
    assert correlated_t(np.array([-0.1, 0.1]), 0.2).prob_above_0() == pytest.approx(0.5)
    assert correlated_t(np.zeros(3), 0.2).prob_above_0() == 0.5
    assert correlated_t(DIFFERENCES, 1e-12).scale == pytest.approx(stats.sem(DIFFERENCES))
    assert correlated_t(np.tile(DIFFERENCES, 2000), 0.2).scale == pytest.approx(DIFFERENCES.std() / 2, rel=1e-3)


@pytest.mark.parametrize("effect", [0.04, 0.229, 3.0])
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.0125, 0.95)])
def test_agrees_with_statsmodels(effect: float, error: float, power: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=error, power=power, alternative="larger")
    assert num_documents(effect, error=error, power=power) == max(2, math.ceil(expected - 1e-6))
    assert [num_documents(effect) for effect in (0.0, -0.3, math.nan, math.inf)] == [None, None, None, 2]


@pytest.mark.parametrize(
    ("scores", "effect"),
    [
        # Differences 0.1, 0.1, 0: mean 0.2 / 3, standard deviation 0.1 / sqrt(3).
        (
            {"a": {0: 0.9, 1: 0.5, 2: 0.7}, "b": {0: 0.8, 1: 0.4, 2: 0.7, 3: 0.5}, "c": {0: 0.1, 1: 0.2}},
            2 / math.sqrt(3),
        ),
        # One shared document is too few: sqrt(0.02 + 0.02) = 0.2. The best is one with two scores.
        ({"a": {0: 0.5, 1: 0.7}, "b": {1: 0.4, 2: 0.6}, "c": {0: 1.0}}, 0.5),
        ({"a": {0: 0.5, 1: 0.7}, "b": {0: 0.5, 1: 0.7}}, 0.0),
        ({"a": {0: 0.5, 1: 0.7}, "b": {0: 0.6}}, None),
    ],
)
def test_the_effect_is_of_pairs_where_documents_are_shared(scores: Any, effect: Any) -> None:
    found = fixed_size(scores)
    assert (found is None) is (effect is None)
    if found is not None:
        assert (found.best, found.second, found.effect) == ("a", "b", pytest.approx(effect))
        assert found.baseline_2 == num_documents(effect)
        assert found.baseline_all == num_documents(effect, error=0.05 / (len(scores) - 1))
