from dataclasses import replace
from typing import Optional, cast

import numpy as np
import pytest

from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.strategies import BatchThompson, Thompson
from fiesta_allennlp.strategies.base import believed
from fiesta_allennlp.strategies.thompson import draw
from tests.strategies.histories import THREE_EACH, evaluation, history, request
from tests.strategies.scripted import scripted
from tests.strategies.simulation import built

MEANS = {"weak": 0.55, "good": 0.63, "best": 0.65, "fair": 0.60}
STARTED = history(THREE_EACH)


def test_draw_by_hand() -> None:
    # Cumulative weights are 1, 1, 3, 4; a weight of 0 is never drawn, tiny ones are.
    weights = {"a": 1.0, "b": 0.0, "c": 2.0, "d": 1.0}
    assert draw(weights, 5, scripted(0.0, 0.24, 0.25, 0.74, 0.76)) == ["a", "a", "c", "c", "d"]
    for tiny in (5e-324, 1e-300):
        assert draw({"a": tiny, "b": tiny, "c": 0.0}, 1, scripted(np.nextafter(1.0, 0.0))) == ["b"]


def test_thompson_draws_every_slot_from_what_is_believed_now() -> None:
    strategy = Thompson(belief=StudentT())
    now = believed(STARTED, StudentT()).decision.prob_best
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
    with pytest.raises(ConfigError, match="batch_size must be at least 1.* got 0"):
        batch(0).check(["a", "b"])


def test_a_batch_dealt_out_in_pieces_is_drawn_from_its_beginning() -> None:
    # The first of the batch turned out bad for "b", which nearly ends its chances; the batch does not know.
    later = replace(STARTED, evaluations=(*STARTED.evaluations, evaluation("b", 3, 0.30)))
    then, now = believed(STARTED, StudentT()).decision.prob_best, believed(later, StudentT()).decision.prob_best
    between = (then["a"] + now["a"]) / 2
    assert now["a"] - then["a"] > 0.05
    assert Thompson(belief=StudentT()).propose(later, 1, scripted(between)) == ["a"]
    assert batch(3).propose(later, 1, scripted(between)) == ["b"]
    # With a batch of one, the next batch begins, and knows.
    assert batch(1).propose(later, 1, scripted(between)) == ["a"]


def test_a_failure_within_a_batch_is_replaced_from_the_same_belief() -> None:
    # Of a batch of three, two have finished and one failed: one is missing, whatever the number of slots.
    done = (*STARTED.evaluations, evaluation("a", 3, 0.61), evaluation("b", 3, 0.30))
    now = replace(STARTED, evaluations=done)
    then = believed(STARTED, StudentT()).decision.prob_best
    assert batch(3).propose(now, 8, scripted(then["a"] + 1e-9)) == ["b"]


def test_a_pending_start_of_a_withdrawn_candidate_is_waited_for() -> None:
    now = history({**THREE_EACH, "d": [0.5]}, withdrawn=["d"], pending=["d"])
    assert batch(4).propose(now, 4, np.random.default_rng(11)) == []
    assert len(batch(4).propose(replace(now, pending=()), 4, np.random.default_rng(11))) == 4


def test_a_candidate_may_join_in_the_middle_of_a_batch() -> None:
    begun = history({**THREE_EACH, "a": [*THREE_EACH["a"], 0.7], "d": []})
    starts = tuple(evaluation("d", replicate, 0.5 + replicate / 10) for replicate in range(3))
    joined = replace(begun, evaluations=begun.evaluations + starts)
    assert len(batch(4).propose(joined, 3, np.random.default_rng(11))) == 3
