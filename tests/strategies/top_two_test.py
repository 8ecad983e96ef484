from typing import cast

import numpy as np
import pytest

from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.strategies import TopTwoThompson
from fiesta_allennlp.strategies.stopping import believed
from tests.strategies.histories import THREE_EACH, history
from tests.strategies.scripted import scripted
from tests.strategies.simulation import build

PI = {"a": 0.6, "b": 0.3, "c": 0.1}
NOW = history(THREE_EACH)


def choose(*numbers: float, pi: "dict[str, float]" = PI, slots: int = 1, beta: float = 0.5) -> "list[str]":
    return TopTwoThompson(belief=StudentT(), beta=beta).choose(NOW, pi, slots, scripted(*numbers))


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
    names = strategy.choose(NOW, PI, 20000, np.random.default_rng(8))
    np.testing.assert_allclose([names.count(i) / len(names) for i in PI], expected, atol=0.012)


def test_pi_is_what_is_believed_now() -> None:
    pi = believed(NOW, StudentT()).prob_best
    strategy = TopTwoThompson(belief=StudentT())
    assert strategy.propose(NOW, 1, scripted(pi["a"] - 1e-9, 0.0)) == ["a"]
    assert strategy.propose(NOW, 1, scripted(pi["a"] + 1e-9, 0.0)) == ["b"]


def test_beta_comes_from_params_and_is_checked() -> None:
    strategy = cast(TopTwoThompson, build("ttts", beta=0.25))
    assert strategy.beta == 0.25
    strategy.check(["a", "b"])
    for beta in (0.0, 1.0, -1.0):
        with pytest.raises(ConfigError, match=f"beta must be above 0 and below 1, such as 0.5, but got {beta}"):
            build("ttts", beta=beta).check(["a", "b"])
