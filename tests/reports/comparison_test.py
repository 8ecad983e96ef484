from typing import List, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from fiesta_allennlp.probability.new_data import correlated_t
from fiesta_allennlp.reports.candidates import mean_interval
from fiesta_allennlp.reports.comparison import Comparison, compare, holm, stochastic_order, welch_interval, with_holm
from fiesta_allennlp.reports.sample_tests import brown_forsythe, kolmogorov_smirnov, mann_whitney, wilcoxon
from tests.reports.made_up import candidate

RNG = np.random.default_rng(5)
FIRST, SECOND = RNG.normal(0.65, 0.02, 12), RNG.normal(0.63, 0.04, 9)

SCORES = some.lists(some.integers(0, 8).map(lambda number: number / 8), max_size=8)


def compared(first: Sequence[float] = FIRST, second: Sequence[float] = SECOND) -> Comparison:
    return compare(candidate("a", first), candidate("b", second))


def test_each_test_is_corrected_over_the_comparisons_that_have_it() -> None:
    others = [candidate("b", SECOND), candidate("c", SECOND - 0.01), candidate("d", SECOND[:2])]
    corrected = with_holm([compare(candidate("a", FIRST), other) for other in others])
    for column in zip(*(comparison.tests for comparison in corrected), strict=True):
        plain = [test.p_value for test in column]
        assert plain[2] is column[2].p_holm is None
        assert [test.p_holm for test in column[:2]] == pytest.approx(holm(np.array(plain[:2])))


def test_holm_by_hand() -> None:
    """Of 0.01, 0.03 and 0.04, the products with 3, 2 and 1 are 0.03, 0.06 and 0.04, which rises to 0.06."""
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.9, 0.4])) == pytest.approx([0.9, 0.8])


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
    assert apart.cohens_d_paired is None
    assert mean_interval(FIRST) == pytest.approx(stats.ttest_1samp(FIRST, 0).confidence_interval())
    assert welch_interval(np.full(3, 2.0), np.ones(3)) == (1.0, 1.0)
    assert mean_interval(FIRST[:2]) is None and welch_interval(FIRST, FIRST[:2]) is None


def test_effect_sizes() -> None:
    comparison = compared([1, 2, 3], [2, 2, 0])
    # of 9 pairs 5 are higher and 2 equal
    assert comparison.vargha_delaney == pytest.approx(6 / 9)
    assert comparison.cliffs_delta == pytest.approx(5 / 9 - 2 / 9)
    assert comparison.cohens_d_paired == pytest.approx((2 / 3) / np.std([-1, 0, 3], ddof=1))


def test_pairs_are_of_means_on_splits_that_both_have() -> None:
    first = candidate("a", [0.5, 0.7, 0.9, 0.1], [11, 11, 12, 13])
    second = candidate("b", [0.2, 0.4, 0.3], [12, 11, 14])
    comparison = compare(first, second)
    assert comparison.pair_seeds == (11, 12)
    assert comparison.paired_differences == pytest.approx((0.2, 0.7))


@pytest.mark.parametrize(("first", "second"), [([], []), ([0.5], []), ([0.5], [0.4]), ([0.5, 0.6], [0.4, 0.3])])
def test_too_few_scores_are_said_and_not_tested(first: List[float], second: List[float]) -> None:
    comparison = compared(first, second)
    assert all(test.p_value is None and test.too_few.startswith("too few") for test in comparison.tests)
    assert f"{len(first)} and {len(second)} scores" in comparison.tests[0].too_few
    assert comparison.aso_epsilon_min is None
    assert with_holm([comparison]) == (comparison,)


def test_scores_that_do_not_vary_give_no_number_that_is_none() -> None:
    comparison = compared([0.5] * 6, [0.5] * 6)
    assert comparison.tests[1].p_value is None and "do not differ" in comparison.tests[1].too_few
    assert comparison.tests[3].p_value is None and "too few" in comparison.tests[3].too_few
    assert (comparison.mean_difference, comparison.interval) == (0.0, (0.0, 0.0))
    assert (comparison.cohens_d_paired, comparison.aso_epsilon, comparison.cliffs_delta) == (None, None, 0)


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
    for mine, theirs in zip(forth.tests, back.tests, strict=True):
        assert (mine.p_value is None) == (theirs.p_value is None) == bool(mine.too_few)
        if mine.p_value is not None and theirs.p_value is not None:
            assert mine.p_value == pytest.approx(theirs.p_value)
            assert 0 <= mine.p_value <= 1
    if forth.cliffs_delta is not None and back.cliffs_delta is not None:
        assert forth.cliffs_delta == pytest.approx(-back.cliffs_delta)
    numbers = [forth.mean_difference, *(forth.interval or ()), forth.cohens_d_paired, forth.aso_epsilon_min]
    assert all(number is None or np.isfinite(number) for number in numbers)


def by_small_steps(first: np.ndarray, second: np.ndarray, num_steps: int) -> float:
    """Both integrals by sums over quantiles, as numpy has them."""
    middle = (np.arange(num_steps) + 0.5) / num_steps
    mine, theirs = (np.quantile(sample, middle, method="inverted_cdf") for sample in (first, second))
    return float(np.sum(np.where(mine < theirs, (mine - theirs) ** 2, 0)) / np.sum((mine - theirs) ** 2))


def test_a_share_worked_by_hand() -> None:
    # quantiles of the first 0, 4 and of the second 1, 1: a half of the squared distance 1/2 + 9/2 is 1/2 on the left
    order = stochastic_order(np.array([4.0, 0.0]), np.array([1.0, 1.0]))
    assert order is not None and order[0] == pytest.approx(1 / 10)


def test_the_bound_is_that_of_a_bootstrap_made_one_by_one() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.5, 1, 20), rng.normal(0, 1, 15)
    made = [by_small_steps(rng.choice(first, 20), rng.choice(second, 15), 300) for _ in range(2000)]
    order = stochastic_order(first, second)
    expected = order[0] + stats.norm.ppf(0.95) * np.std(made)
    assert order[1] == pytest.approx(expected, rel=0.1)
    assert stochastic_order(first, second) == order


SIZES = [(3, 3), (3, 9), (8, 12), (9, 9), (12, 30), (60, 55)]


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("digits", [9, 1])
def test_two_samples(n: int, m: int, digits: int) -> None:
    rng = np.random.default_rng(n + m)
    x, y = rng.normal(0.3, 1.0, n).round(digits), rng.normal(0.0, 1.5, m).round(digits)
    for own, theirs in (
        (kolmogorov_smirnov(x, y), stats.ks_2samp(x, y)),
        (brown_forsythe(x, y), stats.levene(x, y, center="median")),
        (mann_whitney(x, y), stats.mannwhitneyu(x, y)),
    ):
        assert own == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("number", "digits"), [(3, 9), (12, 9), (50, 9), (12, 1), (80, 9), (80, 1)])
def test_pairs(number: int, digits: int) -> None:
    differences = np.random.default_rng(number).normal(0.1, 1.0, number).round(digits)
    theirs = stats.wilcoxon(differences[differences != 0])
    assert wilcoxon(differences) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)


def test_equal_distances_by_hand() -> None:
    """Of the 2^20 signs of 20 equal ranks, as many as of 20 coins have at most 5 heads, twice."""
    differences = np.array([1.0] * 15 + [-1.0] * 5)
    assert wilcoxon(differences).p_value == pytest.approx(stats.binomtest(5, 20).pvalue)


def test_samples_that_do_not_vary() -> None:
    same = np.ones(5)
    with np.errstate(all="ignore"):
        assert np.isnan(brown_forsythe(same, same).p_value)
        assert mann_whitney(same, same).p_value == stats.mannwhitneyu(same, same).pvalue
    assert kolmogorov_smirnov(same, same) == (0.0, 1.0)
