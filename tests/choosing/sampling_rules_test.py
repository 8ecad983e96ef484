"""Thompson sampling, its batches, and top-two sampling, given what the generator draws."""

from dataclasses import replace
from typing import Any, Optional, cast
from unittest.mock import Mock

import numpy as np
import pytest

from fiesta_allennlp.choosing import BatchThompson, Thompson, TopTwo, TopTwoThompson
from fiesta_allennlp.choosing.beliefs import StudentT, StudentTPosterior
from fiesta_allennlp.choosing.sampling_rules import draw_names
from fiesta_allennlp.choosing.strategy import Decision, analyse
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from tests.choosing.histories import THREE_EACH, evaluation, history, request
from tests.choosing.simulation import built

STARTED = history(THREE_EACH)


def scripted(*numbers: float) -> np.random.Generator:
    """A generator whose `random` returns these numbers in turn, and no more."""
    left = iter(numbers)
    return Mock(random=lambda size=None: next(left) if size is None else np.array([next(left) for _ in range(size)]))


def test_draw_by_hand() -> None:
    # Cumulative weights are 1, 1, 3, 4; a weight of 0 is never drawn, tiny ones are.
    weights = {"a": 1.0, "b": 0.0, "c": 2.0, "d": 1.0}
    assert draw_names(weights, 5, scripted(0.0, 0.24, 0.25, 0.74, 0.76)) == ["a", "a", "c", "c", "d"]
    for tiny in (5e-324, 1e-300):
        assert draw_names({"a": tiny, "b": tiny, "c": 0.0}, 1, scripted(np.nextafter(1.0, 0.0))) == ["b"]


def test_thompson_draws_every_slot_from_what_is_believed_now() -> None:
    strategy = Thompson(belief=StudentT())
    now = analyse(STARTED, StudentT()).prob_best
    draws = scripted(0.0, now["a"] - 1e-9, now["a"] + 1e-9, 1 - 1e-12)
    assert strategy.propose(STARTED, 4, draws) == ["a", "a", "b", "c"]
    assert strategy.propose(replace(STARTED, pending=(request("a", 3),)), 1, scripted(0.0)) == ["a"]


def batch(size: "int | None") -> BatchThompson:
    return cast(BatchThompson, built("bts", **({} if size is None else {"batch_size": size})))


def test_a_batch_is_as_large_as_the_free_slots_by_default() -> None:
    def number(size: Optional[int], slots: int, *pending: str) -> int:
        started = replace(STARTED, pending=tuple(request(name, 3) for name in pending))
        return len(batch(size).propose(started, slots, np.random.default_rng(11)))

    assert (number(None, 5), number(2, 5), number(None, 5, "a")) == (5, 2, 0)
    # The last piece is no larger than what is left of the batch, and none begins while this one is pending.
    assert (number(5, 8, "a", "b"), number(5, 1, "a", "b"), number(2, 3, "a", "b")) == (3, 1, 0)
    batch(1).check(["a", "b"])
    with pytest.raises(ConfigError, match="batch_size must be at least 1.* 0"):
        batch(0).check(["a", "b"])


def test_a_batch_dealt_out_in_pieces_is_drawn_from_its_beginning() -> None:
    # The first of the batch turned out bad for "b", which nearly ends its chances; the batch does not know.
    later = replace(STARTED, evaluations=(*STARTED.evaluations, evaluation("b", 3, 0.30)))
    then, now = analyse(STARTED, StudentT()).prob_best, analyse(later, StudentT()).prob_best
    between = (then["a"] + now["a"]) / 2
    assert now["a"] - then["a"] > 0.05
    assert Thompson(belief=StudentT()).propose(later, 1, scripted(between)) == ["a"]
    assert batch(3).propose(later, 1, scripted(between)) == ["b"]
    # With a batch of one, the next batch begins, and knows.
    assert batch(1).propose(later, 1, scripted(between)) == ["a"]


def test_a_failure_within_a_batch_is_replaced_from_the_same_belief_and_pending_starts_are_waited_for() -> None:
    # Of a batch of three, two have finished and one failed: one is missing, whatever the number of slots.
    done = (*STARTED.evaluations, evaluation("a", 3, 0.61), evaluation("b", 3, 0.30))
    now = replace(STARTED, evaluations=done)
    then = analyse(STARTED, StudentT()).prob_best
    assert batch(3).propose(now, 8, scripted(then["a"] + 1e-9)) == ["b"]
    now = history({**THREE_EACH, "d": [0.5]}, withdrawn=["d"], pending=["d"])
    assert batch(4).propose(now, 4, np.random.default_rng(11)) == []
    assert len(batch(4).propose(replace(now, pending=()), 4, np.random.default_rng(11))) == 4


def test_a_batch_goes_on_as_after_a_resumption_and_when_a_candidate_joins() -> None:
    """What is kept of the batch since its beginning changes nothing."""
    strategy, now = batch(4), STARTED
    for replicate in range(3, 7):
        first, again = (rule.propose(now, 1, np.random.default_rng(replicate)) for rule in (strategy, batch(4)))
        assert first == again
        now = now.with_finished([evaluation("a", replicate, 0.6)])
    begun = history({**THREE_EACH, "a": [*THREE_EACH["a"], 0.7], "d": []})
    joined = begun.with_finished(evaluation("d", replicate, 0.5 + replicate / 10) for replicate in range(3))
    assert len(batch(4).propose(joined, 3, np.random.default_rng(11))) == 3


PI = {"a": 0.6, "b": 0.3, "c": 0.1}


def choose(*numbers: float, pi: "dict[str, float]" = PI, slots: int = 1, beta: float = 0.5) -> "list[str]":
    strategy = TopTwoThompson(belief=StudentT(), beta=beta)
    return strategy.choose(STARTED, Decision("a", prob_best=pi), slots, scripted(*numbers))


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        # The first of the two, I, is "b" (0.6 <= 0.65 < 0.9); it is trained with probability beta.
        ((0.65, 0.49), {}, "b"),
        # Else J is: "a" with 6/7 and "c" with 1/7; where I is "a", "b" with 3/4 and "c" with 1/4.
        ((0.65, 0.5, 0.85), {}, "a"),
        ((0.65, 0.5, 0.86), {}, "c"),
        ((0.1, 0.9, 0.76), {}, "c"),
        # With nothing left for the others they are equal.
        ((0.5, 0.5, 0.49), {"pi": {"a": 0.0, "b": 1.0, "c": 0.0}}, "a"),
        # With beta 1 it is Thompson sampling: rng.random() is always below 1.
        ((0.65, 0.999999), {"beta": 1.0}, "b"),
    ],
)
def test_algorithm_2_by_hand(numbers: "tuple[float, ...]", options: Any, expected: str) -> None:
    assert choose(*numbers, **options) == [expected]


def test_every_slot_draws_a_pair_of_its_own_from_what_is_believed_now() -> None:
    assert choose(0.65, 0.4, 0.1, 0.9, 0.76, 0.1, 0.2, slots=3) == ["b", "c", "a"]
    pi = analyse(STARTED, StudentT()).prob_best
    strategy = TopTwoThompson(belief=StudentT())
    assert strategy.propose(STARTED, 1, scripted(pi["a"] - 1e-9, 0.0)) == ["a"]
    assert strategy.propose(STARTED, 1, scripted(pi["a"] + 1e-9, 0.0)) == ["b"]


def test_beta_comes_from_params_and_is_checked() -> None:
    assert cast(TopTwoThompson, built("ttts")).beta == 0.5
    built("ttts", beta=1.0).check(["a", "b"])
    for beta in (0.0, 1.01):
        with pytest.raises(ConfigError, match=f"beta .* {beta}"):
            built("ttts", beta=beta).check(["a", "b"])


@pytest.mark.parametrize("name", ["ttts", "bts", "thompson"])
def test_the_rules_of_the_papers_need_a_posterior_of_means(name: str) -> None:
    built(name, belief="student_t").check(["a", "b"])
    for belief in ("moderated_t", "paired_measure"):
        with pytest.raises(ConfigError, match="Use --belief student_t"):
            built(name, belief=belief).check(["a", "b"])


POSTERIOR = StudentTPosterior(
    np.array([0.60, 0.58, 0.50]), np.array([0.003, 0.004, 0.002]), np.full(3, 9.0), noise_variance=1e-4
)
"""t of a over b is .02 / .005 = 4; of a over c it is far larger."""


def next_runs(now: History, *, slots: int = 1, posterior: StudentTPosterior = POSTERIOR) -> "list[str]":
    decision = Decision("a", prob_best=PI, posterior=posterior)
    return TopTwo(belief=StudentT()).choose(now, decision, slots, scripted())


def test_the_one_of_leader_and_challenger_that_lags_runs() -> None:
    behind = {"a": [0.6] * 4, "b": [0.58] * 3, "c": [0.5] * 2}
    assert next_runs(history(behind)) == ["b"]
    assert next_runs(history({**behind, "a": [0.6] * 3})) == ["a"]
    assert next_runs(history(behind, pending=["b", "b"])) == ["a"], "pending runs count as made"
    # Slot by slot: "b" catches up, then the leader goes on, then "b" again.
    assert next_runs(history(behind), slots=3) == ["b", "a", "b"]


def test_of_equally_probable_rivals_the_one_with_fewer_runs_challenges() -> None:
    posterior = StudentTPosterior(np.array([0.6, 0.5, 0.5]), np.full(3, 0.05), np.full(3, 9.0), noise_variance=0.02)
    now = history({"a": [0.6] * 9, "b": [0.5] * 8, "c": [0.5] * 4})
    assert next_runs(now, posterior=posterior) == ["c"]


@pytest.mark.parametrize(("times_as_noisy", "challenger"), [(4, "b"), (6, "c")])
def test_a_noisy_candidate_far_behind_challenges_where_it_is_more_probably_better(
    times_as_noisy: int, challenger: str
) -> None:
    # "c" is five times as far behind as "b", so both are equally probable if its sd is five times as large.
    scale = np.array([1e-9, 0.01, 0.01 * times_as_noisy])
    posterior = StudentTPosterior(np.array([0.6, 0.58, 0.5]), scale, np.full(3, 9.0), noise_variance=0.001)
    now = history({"a": [0.6] * 4, "b": [0.58] * 3, "c": [0.5] * 3})
    assert next_runs(now, posterior=posterior) == [challenger]


def test_further_seeds_on_a_split_are_no_further_units() -> None:
    now = history({"a": [0.6] * 3, "b": [0.58] * 3, "c": [0.5] * 3})
    again = [replace(run, request=replace(run.request, replicate=9)) for run in now.evaluations_of("a")]
    assert next_runs(now.with_finished(again)) == ["a"]
