from typing import Any, cast

import numpy as np
import pytest

from fiesta_allennlp.beliefs import StudentT, StudentTPosterior
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.strategies import TopTwo, TopTwoThompson
from fiesta_allennlp.strategies.base import Look, believed
from tests.strategies.histories import THREE_EACH, history
from tests.strategies.scripted import scripted
from tests.strategies.simulation import built

PI = {"a": 0.6, "b": 0.3, "c": 0.1}
NOW = history(THREE_EACH)


def choose(*numbers: float, pi: "dict[str, float]" = PI, slots: int = 1, beta: float = 0.5) -> "list[str]":
    strategy = TopTwo(belief=StudentT(), challenger="posterior", beta=beta)
    return strategy.choose(NOW, Look(Decision("a", prob_best=pi)), slots, scripted(*numbers))


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        # The first of the two, I, is "b" (0.6 <= 0.65 < 0.9); it is trained with probability beta.
        ((0.65, 0.49), {}, "b"),
        ((0.65, 0.29), {"beta": 0.3}, "b"),
        # Else J is: "a" with 6/7 and "c" with 1/7; where I is "a", "b" with 3/4 and "c" with 1/4.
        ((0.65, 0.5, 0.85), {}, "a"),
        ((0.65, 0.5, 0.86), {}, "c"),
        ((0.1, 0.9, 0.74), {}, "b"),
        ((0.1, 0.9, 0.76), {}, "c"),
        # With nothing left for the others they are equal.
        ((0.5, 0.5, 0.49), {"pi": {"a": 0.0, "b": 1.0, "c": 0.0}}, "a"),
        ((0.5, 0.5, 0.51), {"pi": {"a": 0.0, "b": 1.0, "c": 0.0}}, "c"),
        # With beta 1 it is Thompson sampling: rng.random() is always below 1.
        ((0.65, 0.999999), {"beta": 1.0}, "b"),
    ],
)
def test_algorithm_2_by_hand(numbers: "tuple[float, ...]", options: Any, expected: str) -> None:
    assert choose(*numbers, **options) == [expected]


def test_every_slot_draws_a_pair_of_its_own() -> None:
    assert choose(0.65, 0.4, 0.1, 0.9, 0.76, 0.1, 0.2, slots=3) == ["b", "c", "a"]


def test_pi_is_what_is_believed_now() -> None:
    pi = believed(NOW, StudentT()).decision.prob_best
    strategy = TopTwo(belief=StudentT(), beta=0.5)
    assert strategy.propose(NOW, 1, scripted(pi["a"] - 1e-9, 0.0)) == ["a"]
    assert strategy.propose(NOW, 1, scripted(pi["a"] + 1e-9, 0.0)) == ["b"]


def test_challenger_and_beta_come_from_params_and_are_checked() -> None:
    paper = cast(TopTwoThompson, built("ttts"))
    assert (type(paper), paper.challenger, paper.beta) == (TopTwoThompson, "posterior", 0.5)
    assert cast(TopTwoThompson, built("ttts", beta=1.0)).beta == 1.0
    built("top_two", beta=0.25).check(["a", "b"])
    for beta in (0.0, 1.01):
        with pytest.raises(ConfigError, match=f"beta must be above 0 and at most 1, .* got {beta}"):
            built("top_two", beta=beta).check(["a", "b"])
    with pytest.raises(ConfigError, match="challenger must be cost or posterior but got 'best'"):
        built("top_two", challenger="best").check(["a", "b"])


POSTERIOR = StudentTPosterior.simple(
    np.array([0.60, 0.58, 0.50]), np.array([0.003, 0.004, 0.0]), np.array([9.0, 9.0, 9.0])
)
"""z_ab = .02 / .005 = 4, z_ac = .1 / .003 = 33, z_bc = .08 / .004 = 20."""


def by_cost(now: History, *numbers: float, slots: int = 1) -> "list[str]":
    look = Look(Decision("a", prob_best=PI), POSTERIOR)
    return TopTwo(belief=StudentT()).choose(now, look, slots, scripted(*numbers))


def test_the_one_of_leader_and_nearest_that_lags_is_trained() -> None:
    # The leader is "a" (0.1 < 0.6); its challenger "b", for 4^2 / 2 is less than 33^2 / 2.
    behind = {"a": [0.6] * 4, "b": [0.58] * 3, "c": [0.5] * 2}
    assert by_cost(history(behind), 0.1) == ["b"]
    assert by_cost(history({**behind, "a": [0.6] * 3}), 0.1) == ["a"]
    # The leader is "c" (0.95 > 0.9): "a" is ahead of it by the most, 33 against 20.
    assert by_cost(history({"a": [0.6] * 3, "b": [0.58] * 3, "c": [0.5] * 4}), 0.95) == ["a"]
    assert by_cost(history(behind, pending=["b", "b"]), 0.1) == ["a"], "pending evaluations count as made"
    # Slot by slot: "b" catches up, then the leader goes on, then "b" again.
    assert by_cost(history(behind), 0.1, 0.1, 0.1, slots=3) == ["b", "a", "b"]


def test_the_logarithm_of_the_count_decides_between_near_costs() -> None:
    posterior = StudentTPosterior.simple(np.array([0.6, 0.5, 0.5]), np.array([0.05, 0.05, 0.05]), np.array([9.0] * 3))
    look = Look(Decision("a", prob_best=PI), posterior)
    now = history({"a": [0.6] * 9, "b": [0.5] * 8, "c": [0.5] * 4})
    assert TopTwo(belief=StudentT()).choose(now, look, 1, scripted(0.1)) == ["c"]
