"""The tests of two samples agree with SciPy's, on samples with and without equal scores, small and large."""

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.reports.sample_tests import brown_forsythe, kolmogorov_smirnov, mann_whitney, wilcoxon

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
