import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, polygamma

from fiesta_allennlp.probability.rising_factorials import rising_factorials, trigamma

COUNTS = np.array([[3, 0, 0, 7], [1, 0, 2, 7], [3, 0, 0, 0]], dtype=float)


def test_a_product_worked_by_hand() -> None:
    # 2 * 3 * 4 of the count 3, and 2 of the count 1.
    found = rising_factorials(np.array([[3.0], [1.0]]))
    assert_allclose(np.exp(found.value(np.log([2.0]))), [24 * 2])


def test_kinds_are_summed_apart_and_those_never_counted_are_left_out() -> None:
    found = rising_factorials(COUNTS)
    assert found.kept.tolist() == [0, 2, 3]
    assert found.num_positive.tolist() == [3, 1, 2]
    x = np.array([0.3, 2.0, 40.0])
    expected = (gammaln(x + COUNTS[:, found.kept]) - gammaln(x)).sum(axis=0)
    assert_allclose(found.value(np.log(x)), expected, rtol=1e-12)
    assert_allclose(found.value(np.log(np.tile(x, (5, 2, 1)))), np.tile(expected, (5, 2, 1)), rtol=1e-12)


def test_equal_counts_are_one_term() -> None:
    assert len(rising_factorials(np.tile(COUNTS, (500, 1))).counts) == 4


@pytest.mark.parametrize("x", [1e-8, 0.1, 1.0, 1000.0])
def test_derivatives(x: float) -> None:
    found = rising_factorials(COUNTS * 50)
    u, step = np.log(np.full(3, x)), 1e-4
    first, second = found.derivatives(u)
    assert_allclose(first, (found.value(u + step) - found.value(u - step)) / (2 * step), rtol=1e-6)
    around = found.derivatives(u + step)[0] - found.derivatives(u - step)[0]
    assert_allclose(second, around / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("spread", [1e-9, 0.3, 12.0])
def test_a_table_agrees(spread: float) -> None:
    found = rising_factorials(np.random.default_rng(1).poisson(40, (300, 4)).astype(float))
    u = np.random.default_rng(2).uniform(-1 - spread, -1, (200, 4)) * [1, 0.5, 0.1, 1]
    assert_allclose(found.tabulated(u), found.value(u), atol=1e-4)


def test_nothing_was_counted() -> None:
    found = rising_factorials(np.zeros((4, 3)))
    assert found.value(np.zeros((7, 0))).shape == (7, 0)
    assert found.tabulated(np.zeros((7, 0))).shape == (7, 0)


def test_trigamma() -> None:
    x = np.concatenate([np.linspace(1, 30, 200), [1e3, 1e9]])
    assert_allclose(trigamma(x), polygamma(1, x), rtol=1e-9)
