from typing import cast

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


def test_trains_the_first_of_the_two_with_probability_beta() -> None:
    assert choose(0.65, 0.49) == ["b"]
    assert choose(0.65, 0.29, beta=0.3) == ["b"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        # I is "b" (0.6 <= 0.65 < 0.9); J is "a" with 6/7 and "c" with 1/7.
        ((0.65, 0.5, 0.85), "a"),
        ((0.65, 0.5, 0.86), "c"),
        # I is "a"; J is "b" with 3/4 and "c" with 1/4.
        ((0.1, 0.9, 0.74), "b"),
        ((0.1, 0.9, 0.76), "c"),
    ],
)
def test_trains_the_second_drawn_from_the_others(numbers: "tuple[float, ...]", expected: str) -> None:
    assert choose(*numbers) == [expected]


def test_with_beta_1_it_is_thompson_sampling() -> None:
    # rng.random() is below 1, always: the leader, drawn from pi.
    assert choose(0.65, 0.999999, beta=1.0) == ["b"]
    TopTwo(belief=StudentT(), challenger="posterior", beta=1.0).check(["a", "b", "c"])


def test_where_nothing_is_left_for_the_others_they_are_equal() -> None:
    certain = {"a": 0.0, "b": 1.0, "c": 0.0}
    assert choose(0.5, 0.5, 0.49, pi=certain) == ["a"]
    assert choose(0.5, 0.5, 0.51, pi=certain) == ["c"]


def test_every_slot_draws_a_pair_of_its_own() -> None:
    assert choose(0.65, 0.4, 0.1, 0.9, 0.76, 0.1, 0.2, slots=3) == ["b", "c", "a"]


def test_frequencies_are_those_of_algorithm_2() -> None:
    # P(train i) = pi_i / 2 + sum_{j != i} pi_j / 2 x pi_i / (1 - pi_j)
    expected = [(PI[i] + sum(PI[j] * PI[i] / (1 - PI[j]) for j in PI if j != i)) / 2 for i in PI]
    strategy = TopTwoThompson(belief=StudentT())
    names = strategy.choose(NOW, Look(Decision("a", prob_best=PI)), 20000, np.random.default_rng(8))
    np.testing.assert_allclose([names.count(i) / len(names) for i in PI], expected, atol=0.012)


def test_ttts_is_the_papers_whatever_the_default_is() -> None:
    strategy = cast(TopTwoThompson, built("ttts"))
    assert (type(strategy), strategy.challenger, strategy.beta) == (TopTwoThompson, "posterior", 0.5)
    assert cast(TopTwoThompson, built("ttts", beta=1.0)).beta == 1.0


def test_pi_is_what_is_believed_now() -> None:
    pi = believed(NOW, StudentT()).decision.prob_best
    strategy = TopTwo(belief=StudentT(), beta=0.5)
    assert strategy.propose(NOW, 1, scripted(pi["a"] - 1e-9, 0.0)) == ["a"]
    assert strategy.propose(NOW, 1, scripted(pi["a"] + 1e-9, 0.0)) == ["b"]


def test_challenger_and_beta_come_from_params_and_are_checked() -> None:
    strategy = cast(TopTwo, built("top_two", beta=0.25))
    assert strategy.beta == 0.25
    strategy.check(["a", "b"])
    for beta in (0.0, 1.01, -1.0):
        with pytest.raises(
            ConfigError, match=f"beta must be above 0 and at most 1, such as 0.5, or left out, but got {beta}"
        ):
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
    behind = history({"a": [0.6] * 4, "b": [0.58] * 3, "c": [0.5] * 2})
    assert by_cost(behind, 0.1) == ["b"]
    assert by_cost(history({"a": [0.6] * 3, "b": [0.58] * 3, "c": [0.5] * 2}), 0.1) == ["a"]
    # The leader is "c" (0.95 > 0.9): "a" is ahead of it by the most, 33 against 20.
    assert by_cost(history({"a": [0.6] * 3, "b": [0.58] * 3, "c": [0.5] * 4}), 0.95) == ["a"]


def test_pending_evaluations_count_as_made() -> None:
    scores = {"a": [0.6] * 4, "b": [0.58] * 3, "c": [0.5] * 2}
    assert by_cost(history(scores, pending=["b", "b"]), 0.1) == ["a"]
    # Slot by slot: "b" catches up, then the leader goes on, then "b" again.
    assert by_cost(history(scores), 0.1, 0.1, 0.1, slots=3) == ["b", "a", "b"]


def test_the_logarithm_of_the_count_decides_between_near_costs() -> None:
    posterior = StudentTPosterior.simple(np.array([0.6, 0.5, 0.5]), np.array([0.05, 0.05, 0.05]), np.array([9.0] * 3))
    look = Look(Decision("a", prob_best=PI), posterior)
    now = history({"a": [0.6] * 9, "b": [0.5] * 8, "c": [0.5] * 4})
    assert TopTwo(belief=StudentT()).choose(now, look, 1, scripted(0.1)) == ["c"]
