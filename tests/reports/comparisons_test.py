import itertools
from typing import Any, List, Optional, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from fiesta_allennlp.probability.student_t import correlated_t
from fiesta_allennlp.reports.comparisons import (
    Comparison,
    DevelopmentCorrelation,
    SingleScoreRisk,
    compare_scores,
    compute_single_score_risk,
    compute_welch_interval,
    correlate_development,
    prob_first_wins,
)
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.t_tests import compute_mean_interval
from tests.reports.made_up import candidate

SCORES = some.lists(some.integers(0, 4), min_size=1, max_size=4)


def risk_of(*candidates: CandidateResult, leading: str = "a") -> Optional[SingleScoreRisk]:
    return compute_single_score_risk(Result(leading, None, "f1", candidates))


def share_of_first(draws: Sequence[Sequence[float]]) -> float:
    """One by one: 1, or its share of a tie, wherever none is higher."""
    wins = [(draw[0] == max(draw)) / list(draw).count(max(draw)) for draw in draws]
    return float(np.mean(wins))


@settings(deadline=None, max_examples=30)
@given(some.lists(SCORES, min_size=2, max_size=4))
def test_every_way_of_drawing_is_counted(scores: List[List[int]]) -> None:
    drawn = [(np.array(row, dtype=float), np.full(len(row), 1 / len(row))) for row in scores]
    assert prob_first_wins(drawn) == pytest.approx(share_of_first(list(itertools.product(*scores))))
    assert prob_first_wins([(np.array([0.5]), np.ones(1))] * 40) == pytest.approx(1 / 40)


@pytest.mark.parametrize(
    ("a", "b", "seeds", "expected"),
    [
        # b beats a if 0.6 meets 0.5, but a is ahead on each of the five splits that both have.
        ([0.7, 0.5, 0.7, 0.7, 0.7], [0.6, 0.4, 0.1, 0.2, 0.3], [1, 2, 3, 4, 5], (1 / 25, 0.0, 5)),
        # Several runs on one split are drawn from.
        ([0.7, 0.5, 0.9, 0.9, 0.9, 0.9], [0.6, 0.4, 0.1, 0.1, 0.1, 0.1], [1, 1, 2, 3, 4, 5], (1 / 36, 1 / 20, 5)),
        ([0.7] * 4, [0.6] * 4, [1, 2, 3, 4], (0.0, None, 4)),
    ],
)
def test_one_run_and_one_run_on_one_split(a: Any, b: Any, seeds: Any, expected: Any) -> None:
    risk = risk_of(candidate("b", b, seeds=seeds), candidate("a", a, seeds=seeds), candidate("c", []))
    assert risk is not None
    assert risk.wrong_single == pytest.approx(expected[0])
    assert (risk.wrong_same_split, risk.num_common_splits) == (pytest.approx(expected[1]), expected[2])
    assert risk.wrong_best_of_3 is None


def test_without_a_rival_a_score_or_all_development_scores_nothing_is_said_of_them() -> None:
    a, b = candidate("a", [0.5], seeds=[1]), candidate("b", [0.4], seeds=[2])
    assert risk_of(a, candidate("c", [])) is risk_of(a, b, leading="c") is None
    some_missing = candidate("b", [0.5, 0.6], development_scores=(0.5, None))
    risk = risk_of(candidate("a", [0.5, 0.6], development_scores=(0.1, 0.2)), some_missing)
    assert risk is not None and risk.wrong_best_of_3 is None


def test_the_best_of_three_development_runs() -> None:
    scores, development = {"a": [0.9, 0.5, 0.7], "b": [0.6, 0.8]}, {"a": [0.1, 0.3, 0.3], "b": [0.2, 0.4]}
    risk = risk_of(*(candidate(n, scores[n], development_scores=development[n]) for n in "ab"))
    assert risk is not None
    chosen = {}
    for name in "ab":
        chosen[name] = []
        for runs in itertools.product(range(len(scores[name])), repeat=3):
            # by identity: of several runs drawn that share the best development score, each distinct one alike
            best = max(development[name][run] for run in runs)
            tied = sorted({run for run in runs if development[name][run] == best})
            chosen[name].append((tied, [scores[name][run] for run in tied]))
    wins = [np.mean([[x > y for x in mine] for y in theirs]) for _, mine in chosen["a"] for _, theirs in chosen["b"]]
    assert risk.wrong_best_of_3 == pytest.approx(1 - np.mean(wins))


def test_ranks_are_correlated_overall_and_within_candidates() -> None:
    a = CandidateResult("a", scores=(0.1, 0.2, 0.3, 0.4), development_scores=(0.5, 0.7, 0.6, 0.9))
    b = CandidateResult("b", scores=(0.6, 0.5, 0.7), development_scores=(0.2, None, 0.4))
    correlation = correlate_development([a, b])
    # ranks 1 2 3 4 and 1 3 2 4: rho = 1 - 6 (1 + 1) / (4 * 15)
    assert correlation.by_candidate == {"a": pytest.approx(0.8)}
    ranks = [stats.rankdata(x) for x in ([0.1, 0.2, 0.3, 0.4, 0.6, 0.7], [0.5, 0.7, 0.6, 0.9, 0.2, 0.4])]
    assert correlation.overall == pytest.approx(stats.pearsonr(*ranks).statistic)
    assert correlation.num_evaluations == 6
    constant = CandidateResult("a", scores=(0.1, 0.2, 0.3), development_scores=(0.5,) * 3)
    assert correlate_development([constant]) == DevelopmentCorrelation(None, 3)
    assert correlate_development([candidate("a", [0.1, 0.2, 0.3])]) is None


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
    assert compute_welch_interval(np.full(3, 2.0), np.ones(3)) == (1.0, 1.0)
    assert compute_mean_interval(FIRST[:2]) is None and compute_welch_interval(FIRST, FIRST[:2]) is None


def test_cliffs_delta_and_the_interval_of_equal_scores_by_hand() -> None:
    # of 9 pairs 5 are higher and 2 equal
    assert compared([1, 2, 3], [2, 2, 0]).cliffs_delta == pytest.approx(5 / 9 - 2 / 9)
    assert compared([0.5] * 6, [0.5] * 6).interval == (0.0, 0.0)


def test_pairs_are_of_means_on_splits_that_both_have() -> None:
    first = candidate("a", [0.5, 0.7, 0.9, 0.1], [11, 11, 12, 13])
    second = candidate("b", [0.2, 0.4, 0.3], [12, 11, 14])
    assert compare_scores(first, second).paired_differences == pytest.approx((0.2, 0.7))


def test_new_data_needs_three_random_splits_of_a_known_share() -> None:
    first, second, two = candidate("a", (3, 5, 7)), candidate("b", (1, 4, 4)), candidate("b", (1, 4))
    prob_better = compare_scores(first, second, test_share=0.2).prob_new_data
    assert prob_better == pytest.approx(correlated_t(np.array([2, 1, 3]), 0.2).prob_above_0())
    assert compare_scores(first, second, test_share=0.2, minimise=True).prob_new_data == pytest.approx(
        1 - (prob_better or 0)
    )
    assert (
        compare_scores(first, second).prob_new_data is compare_scores(first, two, test_share=0.2).prob_new_data is None
    )


@settings(deadline=None, max_examples=40)
@given(EIGHTHS, EIGHTHS)
def test_it_is_fair_to_both_and_never_fails(first: List[float], second: List[float]) -> None:
    forth, back = compared(first, second), compared(second, first)
    assert (forth.cliffs_delta is None) == (not first or not second)
    if forth.cliffs_delta is not None:
        assert forth.cliffs_delta == pytest.approx(-back.cliffs_delta)
    numbers = [forth.mean_difference, *(forth.interval or ())]
    assert all(number is None or np.isfinite(number) for number in numbers)
