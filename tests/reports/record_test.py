import itertools
from typing import List, Optional, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from fiesta_allennlp.choosing.t_tests import compute_mean_interval
from fiesta_allennlp.reports.record import Comparison, compare_scores
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.facts import prob_first_wins
from fiesta_allennlp.selecting.results.result import Result
from tests.reports.made_up import candidate

SCORES = some.lists(some.integers(0, 4), min_size=1, max_size=4)


def share_wrong(*candidates: CandidateResult, leading: str = "a") -> Optional[float]:
    return Result(leading, None, "f1", candidates).single_runs_wrong


def share_of_first(draws: Sequence[Sequence[float]]) -> float:
    """One by one: 1, or its share of a tie, wherever none is higher."""
    wins = [(draw[0] == max(draw)) / list(draw).count(max(draw)) for draw in draws]
    return float(np.mean(wins))


@settings(deadline=None, max_examples=30)
@given(some.lists(SCORES, min_size=2, max_size=4))
def test_every_way_of_drawing_is_counted(scores: List[List[int]]) -> None:
    assert prob_first_wins([np.array(row, dtype=float) for row in scores]) == pytest.approx(
        share_of_first(list(itertools.product(*scores)))
    )
    assert prob_first_wins([np.array([0.5])] * 40) == pytest.approx(1 / 40)


def test_a_single_run_of_each_names_another_one_by_hand() -> None:
    b = candidate("b", [0.6, 0.4, 0.1, 0.2, 0.3])
    a = candidate("a", [0.7, 0.5, 0.7, 0.7, 0.7])
    assert share_wrong(b, a, candidate("c", [])) == pytest.approx(1 / 25), "where 0.6 meets 0.5"
    assert share_wrong(b, a, candidate("gone", [0.9], state="failed")) == pytest.approx(1 / 25)
    lower = Result("a", None, "-f1", (candidate("a", [0.2]), candidate("b", [0.1, 0.3])))
    assert lower.single_runs_wrong == pytest.approx(0.5), "a lower score is better"
    assert share_wrong(a, candidate("c", [])) is share_wrong(a, b, leading="c") is None


RNG = np.random.default_rng(5)
FIRST, SECOND = RNG.normal(0.65, 0.02, 12), RNG.normal(0.63, 0.04, 9)

EIGHTHS = some.lists(some.integers(0, 8).map(lambda number: number / 8), max_size=8)


def compared(first: Sequence[float] = FIRST, second: Sequence[float] = SECOND) -> Comparison:
    return compare_scores(candidate("a", first), candidate("b", second))


def test_intervals_are_those_of_scipy() -> None:
    paired = compared()
    differences = FIRST[:9] - SECOND
    assert paired.paired
    assert paired.paired_differences == pytest.approx(tuple(differences))
    assert paired.mean_difference == pytest.approx(differences.mean())
    assert paired.interval == pytest.approx(stats.ttest_1samp(differences, 0).confidence_interval())
    apart = compare_scores(candidate("a", FIRST), candidate("b", SECOND, range(100, 109)))
    assert (apart.paired, apart.num_pairs) == (False, 0)
    assert apart.mean_difference == pytest.approx(FIRST.mean() - SECOND.mean())
    expected = stats.ttest_ind(FIRST, SECOND, equal_var=False).confidence_interval()
    assert apart.interval == pytest.approx(expected)
    assert compute_mean_interval(FIRST) == pytest.approx(stats.ttest_1samp(FIRST, 0).confidence_interval())
    same = compare_scores(candidate("a", [2.0] * 3, [1, 2, 3]), candidate("b", [1.0] * 3, [4, 5, 6]))
    few = compare_scores(candidate("a", [*FIRST], [*range(len(FIRST))]), candidate("b", [*FIRST[:2]], [8, 9]))
    assert same.interval == (1.0, 1.0) and compute_mean_interval(FIRST[:2]) is few.interval is None


def test_pairs_are_of_means_on_splits_that_both_have() -> None:
    first = candidate("a", [0.5, 0.7, 0.9, 0.1], [11, 11, 12, 13])
    second = candidate("b", [0.2, 0.4, 0.3], [12, 11, 14])
    assert compare_scores(first, second).paired_differences == pytest.approx((0.2, 0.7))


@settings(deadline=None, max_examples=40)
@given(EIGHTHS, EIGHTHS)
def test_it_never_fails(first: List[float], second: List[float]) -> None:
    forth = compared(first, second)
    assert all(number is None or np.isfinite(number) for number in [forth.mean_difference, *(forth.interval or ())])
    assert compared([0.5] * 6, [0.5] * 6).interval == (0.0, 0.0)
