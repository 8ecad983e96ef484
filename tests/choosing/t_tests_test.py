"""The tests of two means, against numbers worked by hand and SciPy's own."""

from typing import List, Sequence, Tuple

import numpy as np
import pytest

from fiesta_allennlp import next_runs
from fiesta_allennlp.choosing.t_tests import (
    TTest,
    holm,
    run_to_run_sd,
    t_test_power,
    tell_apart,
    tier_letters,
    welch_df,
)
from tests.score_tables import score_rows

FIRST, SECOND = np.array([0.84, 0.80, 0.83, 0.86, 0.82]), np.array([0.81, 0.80, 0.78, 0.82])


def test_paired_by_hand() -> None:
    # The differences 2, 1 and 3 have the mean 2, the sd 1, and t(0.975; 2) is 4.3027.
    test = TTest.paired(np.array([2.0, 1.0, 3.0]))
    assert (test.difference, test.df) == (2, 2) and test.standard_error == pytest.approx(1 / 3**0.5)
    assert test.interval(0.95) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)
    # P(t_2 > t) = (1 - t / sqrt(2 + t^2)) / 2, at t = 2 sqrt(3)
    assert test.p_value() == pytest.approx((1 - (12 / 14) ** 0.5) / 2)
    assert test.p_value(-1) == pytest.approx(1 - test.p_value())


def test_scores_without_variance_have_a_clear_answer() -> None:
    constant = np.full(4, 0.5)
    assert TTest.welch(constant + 0.25, constant).interval(0.95) == (0.25, 0.25)
    assert [TTest.paired(np.full(3, d)).p_value() for d in (0.25, 0.0, -0.25)] == [0, 1, 1]
    assert welch_df([0, 0], [4, 4]) == 6


@pytest.mark.parametrize("scale", [1e-150, 1e100])
def test_huge_and_tiny_scores_change_no_degree_of_freedom(scale: float) -> None:
    assert TTest.welch(scale * FIRST, scale * SECOND).df == pytest.approx(TTest.welch(FIRST, SECOND).df)


def test_holm_by_hand() -> None:
    # Sorted .01, .02, .03, .04 times 4, 3, 2, 1 are .04, .06, .06, .04; no value falls below the one before it.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.02]) == [0.02] and holm([0.6, 0.7]) == [1, 1] and holm([]) == []


def test_power_where_there_is_no_noise_or_no_doubt() -> None:
    assert t_test_power(0.1, standard_error=0.0, df=9, level=0.025) == 1
    assert t_test_power(-0.1, standard_error=0.0, df=9, level=0.025) == 0
    assert t_test_power(0.0, standard_error=1.0, df=9, level=0.025) == pytest.approx(0.025)
    assert t_test_power(1e6, standard_error=1.0, df=9, level=0.025) == 1


def test_the_run_to_run_sd_by_hand() -> None:
    # Differences of sd 1 come from two sds of 1 / sqrt(2); sds of 1 and 7 have the root mean square 5.
    assert run_to_run_sd(np.array([2.0, 1.0, 3.0]), []) == pytest.approx(0.5**0.5)
    sds = [np.array([0.0, 2**0.5]), np.array([0.0, 7 * 2**0.5])]
    assert run_to_run_sd(np.array([]), sds) == pytest.approx(5)


def matrix(number: int, pairs: Sequence[Tuple[int, int]]) -> np.ndarray:
    apart = np.zeros((number, number), dtype=bool)
    for first, second in pairs:
        apart[first, second] = apart[second, first] = True
    return apart


def test_holm_stops_at_the_first_pair_that_is_too_near() -> None:
    """Two-sided p of .010, .030 and .020 against .05 / 3, .05 / 2 and .05: the third is .03, below .05."""
    tails = np.array([[0.5, 0.005, 0.985], [0.995, 0.5, 0.99], [0.015, 0.01, 0.5]])
    assert tell_apart(tails, 0.05).sum() == 6
    assert (tell_apart(tails, 0.035) == matrix(3, [(0, 1)])).all(), "0.02 > 0.035 / 2"
    assert not tell_apart(tails, 0.02).any()


@pytest.mark.parametrize(
    ("pairs", "letters"),
    [
        ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], ["a", "b", "c", "d"]),
        ([(0, 2), (0, 3), (1, 3)], ["a", "ab", "bc", "c"]),
        ([(0, 1)], ["a", "b", "ab", "ab"]),
    ],
)
def test_two_share_a_letter_unless_they_are_told_apart(pairs: List[Tuple[int, int]], letters: List[str]) -> None:
    assert tier_letters(matrix(4, pairs), np.array([4.0, 3.0, 2.0, 1.0])) == letters
    assert tier_letters(matrix(4, pairs), np.zeros(4)) == letters, "equal means keep the order"


def test_letters_follow_the_means_and_never_end() -> None:
    assert tier_letters(matrix(2, [(0, 1)]), np.array([1.0, 2.0])) == ["b", "a"]
    everybody = [(i, j) for i in range(30) for j in range(i)]
    assert tier_letters(matrix(30, everybody), -np.arange(30.0))[24:28] == ["y", "z", "a1", "b1"]


def test_random_groups_are_those_of_the_pairs() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        apart = rng.random((7, 7)) < 0.4
        apart = np.triu(apart, 1) | np.triu(apart, 1).T
        letters = tier_letters(apart, rng.normal(size=7))
        for first in range(7):
            for second in range(7):
                assert bool(set(letters[first]) & set(letters[second])) == (not apart[first, second])


def test_the_tiers_of_a_table_are_in_its_column_and_in_json() -> None:
    noise = np.array([0.001, -0.001, 0.002, -0.002])
    rows = score_rows({"a": 0.9 + noise, "b": 0.899 + noise, "c": 0.8 + noise})
    answer = next_runs(rows, confidence=0.9)
    assert {c.name: c.tier for c in answer.result.candidates} == {"a": "a", "b": "a", "c": "b"}
    assert [entry["tier"] for entry in answer.result.content()["candidates"]] == ["a", "a", "b"]
    assert "tier" in str(answer).splitlines()[2]
    assert {c.tier for c in next_runs(rows[:1], candidates=["b"]).result.candidates} == {""}
