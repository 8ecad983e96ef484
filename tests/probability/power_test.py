import math
from typing import Any

import pytest
from statsmodels.stats.power import TTestPower

from fiesta_allennlp.probability.power import fixed_size, num_documents


@pytest.mark.parametrize("effect", [0.04, 0.229, 3.0])
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.0125, 0.8), (0.05, 0.95)])
def test_agrees_with_statsmodels(effect: float, error: float, power: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=error, power=power, alternative="larger")
    assert num_documents(effect, error=error, power=power) == max(2, math.ceil(expected - 1e-6))


def test_ends_of_the_range() -> None:
    assert [num_documents(effect) for effect in (0.0, -0.3, math.nan, math.inf)] == [None, None, None, 2]
    assert num_documents(1e-4) == pytest.approx((1.6449 + 0.8416) ** 2 * 1e8, rel=1e-3)


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
