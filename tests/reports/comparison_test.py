from typing import List, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from fiesta_allennlp.probability.student_t import correlated_t
from fiesta_allennlp.reports.candidates import Comparison, compare, mean_interval, welch_interval
from tests.reports.made_up import candidate

RNG = np.random.default_rng(5)
FIRST, SECOND = RNG.normal(0.65, 0.02, 12), RNG.normal(0.63, 0.04, 9)

SCORES = some.lists(some.integers(0, 8).map(lambda number: number / 8), max_size=8)


def compared(first: Sequence[float] = FIRST, second: Sequence[float] = SECOND) -> Comparison:
    return compare(candidate("a", first), candidate("b", second))


def test_intervals_are_those_of_scipy() -> None:
    paired = compared()
    differences = FIRST[:9] - SECOND
    assert paired.paired
    assert paired.paired_differences == pytest.approx(tuple(differences))
    assert paired.mean_difference == pytest.approx(differences.mean())
    assert paired.interval == pytest.approx(stats.ttest_1samp(differences, 0).confidence_interval())
    apart = compare(candidate("a", FIRST), candidate("b", SECOND, range(100, 109)))
    assert (apart.paired, apart.num_pairs) == (False, 0)
    assert apart.mean_difference == pytest.approx(FIRST.mean() - SECOND.mean())
    expected = stats.ttest_ind(FIRST, SECOND, equal_var=False).confidence_interval()
    assert apart.interval == pytest.approx(expected)
    assert mean_interval(FIRST) == pytest.approx(stats.ttest_1samp(FIRST, 0).confidence_interval())
    assert welch_interval(np.full(3, 2.0), np.ones(3)) == (1.0, 1.0)
    assert mean_interval(FIRST[:2]) is None and welch_interval(FIRST, FIRST[:2]) is None


def test_cliffs_delta_and_the_interval_of_equal_scores_by_hand() -> None:
    # of 9 pairs 5 are higher and 2 equal
    assert compared([1, 2, 3], [2, 2, 0]).cliffs_delta == pytest.approx(5 / 9 - 2 / 9)
    assert compared([0.5] * 6, [0.5] * 6).interval == (0.0, 0.0)


def test_pairs_are_of_means_on_splits_that_both_have() -> None:
    first = candidate("a", [0.5, 0.7, 0.9, 0.1], [11, 11, 12, 13])
    second = candidate("b", [0.2, 0.4, 0.3], [12, 11, 14])
    assert compare(first, second).paired_differences == pytest.approx((0.2, 0.7))


def test_new_data_needs_three_random_splits_of_a_known_share() -> None:
    first, second, two = candidate("a", (3, 5, 7)), candidate("b", (1, 4, 4)), candidate("b", (1, 4))
    found = compare(first, second, test_share=0.2).prob_new_data
    assert found == pytest.approx(correlated_t(np.array([2, 1, 3]), 0.2).prob_above_0())
    assert compare(first, second, test_share=0.2, minimise=True).prob_new_data == pytest.approx(1 - (found or 0))
    assert compare(first, second).prob_new_data is compare(first, two, test_share=0.2).prob_new_data is None


@settings(deadline=None, max_examples=40)
@given(SCORES, SCORES)
def test_it_is_fair_to_both_and_never_fails(first: List[float], second: List[float]) -> None:
    forth, back = compared(first, second), compared(second, first)
    assert (forth.cliffs_delta is None) == (not first or not second)
    if forth.cliffs_delta is not None:
        assert forth.cliffs_delta == pytest.approx(-back.cliffs_delta)
    numbers = [forth.mean_difference, *(forth.interval or ())]
    assert all(number is None or np.isfinite(number) for number in numbers)
