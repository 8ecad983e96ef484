import math

import pytest
from statsmodels.stats.power import TTestPower

from fiesta_allennlp.probability.power import fixed_size, num_documents


@pytest.mark.parametrize("effect", [0.04, 0.229, 3.0])
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.0125, 0.8), (0.05, 0.95)])
def test_agrees_with_statsmodels(effect: float, error: float, power: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=error, power=power, alternative="larger")
    assert num_documents(effect, error=error, power=power) == max(2, math.ceil(expected - 1e-6))


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
