import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from fiesta_allennlp.probability.power import effect_apart, effect_of_pairs, fixed_size, num_documents, power_of_test


@pytest.mark.parametrize("effect", [0.04, 0.0459, 0.118, 0.229, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.0125, 0.8), (0.05, 0.95)])
def test_agrees_with_statsmodels(effect: float, error: float, power: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=error, power=power, alternative="larger")
    assert num_documents(effect, error=error, power=power) == max(2, math.ceil(expected - 1e-6))


@pytest.mark.parametrize("number", [2, 5, 40, 3000])
def test_the_power_agrees_with_statsmodels(number: int) -> None:
    expected = TTestPower().power(0.3, nobs=number, alpha=0.05, alternative="larger")
    assert power_of_test(number, 0.3, 0.05) == pytest.approx(expected, abs=1e-8)


def test_the_number_is_the_least_one() -> None:
    number = num_documents(0.1)
    assert number is not None
    assert power_of_test(number, 0.1, 0.05) >= 0.8 > power_of_test(number - 1, 0.1, 0.05)


def test_a_number_of_r() -> None:
    # power.t.test(delta = 0.5, sd = 1, sig.level = 0.05, power = 0.8, type = "paired", alternative = "one.sided")
    # gives n = 26.13751.
    assert num_documents(0.5) == 27


def test_ends_of_the_range() -> None:
    assert num_documents(0.0) is None
    assert num_documents(-0.3) is None
    assert num_documents(math.nan) is None
    assert num_documents(math.inf) == 2
    tiny = num_documents(1e-4)
    assert tiny == pytest.approx((1.6449 + 0.8416) ** 2 * 1e8, rel=1e-3)


def test_effects_worked_by_hand() -> None:
    assert effect_of_pairs(np.array([0.0, 0.2])) == pytest.approx(0.1 / (0.1 * math.sqrt(2)))
    assert effect_of_pairs(np.zeros(3)) == 0
    assert effect_of_pairs(np.full(3, 0.5)) == math.inf
    # Variances 0.02 and 0.02, means 0.6 and 0.5.
    assert effect_apart(np.array([0.5, 0.7]), np.array([0.4, 0.6])) == pytest.approx(0.1 / 0.2)


def test_shared_documents_are_compared_in_pairs() -> None:
    scores = {"a": {0: 0.9, 1: 0.5, 2: 0.7}, "b": {0: 0.8, 1: 0.4, 2: 0.7, 3: 0.5}, "c": {0: 0.1, 1: 0.2}}
    found = fixed_size(scores)
    assert found is not None
    assert (found.best, found.second) == ("a", "b")
    # Differences 0.1, 0.1, 0: mean 0.2 / 3, standard deviation 0.1 / sqrt(3).
    assert found.effect == pytest.approx(2 / math.sqrt(3))
    assert found.baseline_2 == num_documents(2 / math.sqrt(3))
    assert found.baseline_all == num_documents(2 / math.sqrt(3), error=0.025)


def test_documents_that_are_not_shared_are_compared_apart() -> None:
    found = fixed_size({"a": {0: 0.5, 1: 0.7}, "b": {1: 0.4, 2: 0.6}, "c": {0: 1.0}})
    assert found is not None
    assert (found.best, found.second) == ("a", "b")
    assert found.effect == pytest.approx(0.5)


def test_nothing_to_compare() -> None:
    assert fixed_size({"a": {0: 0.5, 1: 0.7}, "b": {0: 0.6}}) is None
    equal = fixed_size({"a": {0: 0.5, 1: 0.7}, "b": {0: 0.5, 1: 0.7}})
    assert equal is not None
    assert (equal.effect, equal.baseline_2, equal.baseline_all) == (0, None, None)
