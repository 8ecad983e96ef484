from typing import List

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from fiesta_allennlp.reports.comparison import stochastic_order

SAMPLES = some.lists(some.integers(-20, 20), min_size=1, max_size=12)


def by_small_steps(first: np.ndarray, second: np.ndarray, num_steps: int) -> float:
    """Both integrals by sums over quantiles, as numpy has them."""
    middle = (np.arange(num_steps) + 0.5) / num_steps
    mine, theirs = (np.quantile(sample, middle, method="inverted_cdf") for sample in (first, second))
    return float(np.sum(np.where(mine < theirs, (mine - theirs) ** 2, 0)) / np.sum((mine - theirs) ** 2))


def test_a_share_worked_by_hand() -> None:
    # quantiles of the first 0, 4 and of the second 1, 1: a half of the squared distance 1/2 + 9/2 is 1/2 on the left
    order = stochastic_order(np.array([4.0, 0.0]), np.array([1.0, 1.0]))
    assert order is not None
    assert order.epsilon == pytest.approx(1 / 10)


@pytest.mark.parametrize(("size", "other"), [(10, 10), (7, 12), (30, 4)])
def test_it_is_the_integral_over_quantiles(size: int, other: int) -> None:
    rng = np.random.default_rng(size)
    first, second = rng.normal(0.3, 1, size), rng.normal(0, 2, other)
    order = stochastic_order(first, second)
    assert order is not None
    assert order.epsilon == pytest.approx(by_small_steps(first, second, size * other * 10), abs=1e-12)


def test_the_bound_is_that_of_a_bootstrap_made_one_by_one() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.5, 1, 20), rng.normal(0, 1, 15)
    made = [by_small_steps(rng.choice(first, 20), rng.choice(second, 15), 300) for _ in range(2000)]
    order = stochastic_order(first, second)
    assert order is not None
    expected = order.epsilon + stats.norm.ppf(0.95) * np.std(made)
    assert order.epsilon_min == pytest.approx(expected, rel=0.1)
    assert stochastic_order(first, second) == order


def test_normal_distributions_with_known_quantiles() -> None:
    """With means 1/2 and 0 and standard deviations 2 and 1 the quantiles 1/2 + 2 z and z cross at z = -1/2."""
    middle = (np.arange(4000) + 0.5) / 4000
    z = stats.norm.ppf(middle)
    order = stochastic_order((0.5 + 2 * z)[::8], z[::8])
    assert order is not None
    # int_{z < -1/2} (1/2 + z)^2 over 1/4 + 1, from moments of the truncated normal
    below, density = stats.norm.cdf(-0.5), stats.norm.pdf(-0.5)
    expected = (below * (0.25 + 1) - density * (1 - 0.5)) / 1.25
    assert order.epsilon == pytest.approx(expected, abs=0.01)


def test_equal_samples_tell_nothing() -> None:
    assert stochastic_order(np.array([1.0, 2.0]), np.array([2.0, 1.0])) is None


@settings(deadline=None, max_examples=40)
@given(SAMPLES, SAMPLES)
def test_the_two_directions_share_the_distance(first: List[int], second: List[int]) -> None:
    x, y = np.array(first, dtype=float), np.array(second, dtype=float)
    forth, back = stochastic_order(x, y), stochastic_order(y, x)
    if forth is None or back is None:
        assert sorted(set(first)) == sorted(set(second))
        assert forth is back is None
        return
    assert forth.epsilon + back.epsilon == pytest.approx(1)
    assert 0 <= forth.epsilon <= forth.epsilon_min <= 1
    moved = stochastic_order(x * 2 + 1, y * 2 + 1)
    assert moved is not None
    assert (moved.epsilon, moved.epsilon_min) == pytest.approx((forth.epsilon, forth.epsilon_min))
