from typing import List, Sequence, Tuple

import numpy as np
import pytest

from fiesta_allennlp import next_runs
from fiesta_allennlp.choosing.tiers import tell_apart, tier_letters


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
        ([], ["a", "a", "a", "a"]),
        ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], ["a", "b", "c", "d"]),
        ([(0, 3)], ["a", "ab", "ab", "b"]),
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
    noise = [0.001, -0.001, 0.002, -0.002]
    means = {"a": 0.9, "b": 0.899, "c": 0.8}
    rows = [{"candidate": n, "seed": k, "score": m + noise[k]} for n, m in means.items() for k in range(4)]
    answer = next_runs(rows, confidence=0.9)
    assert {c.name: c.tier for c in answer.result.candidates} == {"a": "a", "b": "a", "c": "b"}
    assert [entry["tier"] for entry in answer.result.content()["candidates"]] == ["a", "a", "b"]
    assert "tier" in str(answer).splitlines()[2]
    assert {c.tier for c in next_runs(rows[:1], candidates=["b"]).result.candidates} == {""}
