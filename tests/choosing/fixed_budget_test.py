"""Strategies whose plan does not depend on the posterior, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fiesta_allennlp.core.errors import ConfigError
from tests.choosing.histories import history
from tests.choosing.simulation import Simulation, built

RNG = np.random.default_rng(0)
CLEAR = {"a": [0.900, 0.901, 0.902], "b": [0.500, 0.501, 0.502]}
OPEN = {"a": [0.60, 0.62, 0.64], "b": [0.58, 0.63, 0.65]}


def test_more_slots_than_candidates_begin_no_further_round() -> None:
    strategy = built("non_adaptive_fc")
    assert strategy.propose(history({"a": [], "b": [], "c": []}), 8, RNG) == ["a", "b", "c"]
    assert strategy.propose(history(OPEN, pending=["a"]), 8, RNG) == ["b"]
    assert strategy.propose(history({**OPEN, "a": [*OPEN["a"], 0.6]}, pending=["b"]), 8, RNG) == []
    assert strategy.propose(history(OPEN), 8, RNG) == ["a", "b"]


def test_stops_at_complete_rounds_only() -> None:
    strategy, longer = built("non_adaptive_fc"), {**CLEAR, "b": [*CLEAR["b"], 0.5]}
    assert strategy.recommend(history(CLEAR)).stopped_by == "confidence"
    for open_round in (history(CLEAR, pending=["a"]), history(longer), history(longer, pending=["a"])):
        decision = strategy.recommend(open_round)
        assert decision.confidence is not None and decision.confidence > 0.95
        assert decision.stopped_by is None
    withdrawn = history({**CLEAR, "c": [0.4]}, pending=["c"], withdrawn=["c"])
    assert strategy.recommend(withdrawn).stopped_by == "confidence", "it does not keep a round open"


def test_a_round_that_the_limit_would_cut_is_not_begun() -> None:
    strategy = built("non_adaptive_fc", max_evaluations=11, confidence=0.999999)
    decision, end = Simulation(strategy, dict.fromkeys("abc", 0.6), 4).run()
    assert decision.stopped_by == "max_evaluations"
    assert [end.num_finished(name) for name in "abc"] == [3, 3, 3]
    assert strategy.bounds(3) == (9, 9)


def test_a_budget_ends_with_the_highest_mean() -> None:
    same = {"b": [0.5, 0.6, 0.7], "a": [0.7, 0.5, 0.6]}
    decision = built("non_adaptive_fb", budget=6).recommend(history(same))
    assert (decision.best, decision.stopped_by) == ("b", "budget"), "the first of equal means"
    assert decision.confidence == pytest.approx(0.5)
    assert built("non_adaptive_fb", budget=6).recommend(history({"a": [0.5], "b": []})).best is None
    withdrawn = history({"a": [0.5] * 4, "b": [0.4] * 4, "c": [0.9]}, withdrawn=["c"])
    strategy = built("non_adaptive_fb", budget=12)
    assert strategy.propose(withdrawn, 4, RNG) == [], "its share is not spent"
    assert (strategy.recommend(withdrawn).best, strategy.recommend(withdrawn).stopped_by) == ("a", "budget")
    built("non_adaptive_fb", budget=3).check(["a", "b", "c"])
    with pytest.raises(ConfigError, match="budget must .*3 for 3 .* 2"):
        built("non_adaptive_fb", budget=2).check(["a", "b", "c"])


FAR_APART = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3}


@pytest.mark.parametrize("num_workers", [1, 8])
@pytest.mark.parametrize(
    ("means", "budget", "counts"),
    [
        # 4 candidates and a budget of 16: two each, then four each for the better two.
        (FAR_APART, 16, [6, 6, 2, 2]),
        # 3 rounds of 60 / 3 = 20 evaluations: 5 x 4, then 3 x 6 (2 are left over), then 2 x 10.
        ({**FAR_APART, "e": 0.1}, 60, [20, 20, 10, 4, 4]),
    ],
)
def test_the_run_of_table_1(num_workers: int, means: Any, budget: int, counts: "list[int]") -> None:
    strategy = built("sequential_halving", budget=budget)
    decision, end = Simulation(strategy, means, num_workers, num_workers > 1).run()
    assert (decision.best, decision.stopped_by) == ("a", "budget")
    assert [end.num_finished(name) for name in means] == counts
    assert strategy.bounds(len(means)) == (sum(counts), sum(counts))


def test_round_by_round() -> None:
    strategy = built("sequential_halving", budget=16)
    first = {"a": [0.5, 0.6], "b": [0.9, 0.1], "c": [0.7, 0.8], "d": [0.1, 0.2]}
    assert strategy.propose(history({name: [] for name in "abcd"}), 9, RNG) == list("abcdabcd")
    assert strategy.propose(history({**first, "d": [0.1]}, pending=["d"]), 9, RNG) == []
    assert strategy.propose(history(first), 9, RNG) == list("acacacac")
    assert strategy.propose(history(first, pending=["a", "a"]), 9, RNG) == list("ccacac")
    assert strategy.recommend(history(first)).best == "c"
    last = history({**first, "a": [0.5, 0.6, 1, 1, 1, 1], "c": [0.7, 0.8, 0.95, 0.95, 0.95, 0.95]})
    assert strategy.propose(last, 9, RNG) == []
    # All scores count: "a" is ahead in the last round, but 5.1 / 6 is less than 5.3 / 6.
    assert strategy.recommend(last).best == "c"


def test_a_round_counts_its_own_scores_by_replicate_and_of_equal_candidates_the_first_survive() -> None:
    # A third score of "d" that the first round did not plan does not bring it into the second.
    now = history({"a": [0.5, 0.5], "b": [0.6, 0.6], "c": [0.1, 0.1], "d": [0.2, 0.2, 9.0]})
    assert set(built("sequential_halving", budget=16).propose(now, 9, RNG)) == {"a", "b"}
    equal = history({name: [0.5, 0.5] for name in "dcba"})
    assert built("sequential_halving", budget=16).propose(equal, 2, RNG) == ["d", "c"]


def test_a_displaced_candidate_takes_the_place_of_a_withdrawn_one_within_the_budget() -> None:
    strategy = built("sequential_halving", budget=16)
    scores = {"a": [0.9, 0.9, 0.9], "b": [0.8] * 6, "c": [0.7, 0.7], "d": [0.1, 0.1]}
    now = history(scores, withdrawn=["a"])
    # 13 are spent: "c" would need 4 more, and gets the 3 that are left.
    assert strategy.propose(now, 9, RNG) == ["c", "c", "c"]
    assert strategy.recommend(now).stopped_by is None
    spent = history({**scores, "c": [0.7, 0.7, 0.7, 0.9, 0.9]}, withdrawn=["a"])
    decision = strategy.recommend(spent)
    assert (decision.best, decision.stopped_by) == ("b", "budget")


def test_check_needs_one_new_evaluation_each_in_every_round() -> None:
    for size, least in ((2, 2), (3, 6), (5, 15), (12, 48)):
        names = [str(number) for number in range(size)]
        built("sequential_halving", budget=least).check(names)
        with pytest.raises(ConfigError, match=f"at least {least} for {size} candidates .* {least - 1}"):
            built("sequential_halving", budget=least - 1).check(names)


def test_a_removed_candidate_is_no_part_of_the_plan() -> None:
    now = history({"a": [0.9], "b": [0.8], "c": [0.7]}, removed=["c"])
    equally = built("non_adaptive_fb", budget=8)
    assert equally.propose(now, 9, RNG) == list("abab")
    assert equally.propose(replace(now, removed=frozenset()), 9, RNG) == list("ab")
    scores = {"a": [0.9, 0.9], "b": [0.8, 0.8], "c": [0.7, 0.7], "d": [0.1, 0.1]}
    strategy = built("sequential_halving", budget=18)
    # Three candidates, two rounds, and 16 of 18: 16 // (3 x 2) = 2 each, then 16 // (2 x 2) = 4 of each of two.
    assert strategy.propose(history(scores, removed=["d"]), 9, RNG) == list("abababab")
    gone = history({"a": [0.9], "b": [0.8], "c": [0.7], "d": [0.1]}, removed=["d"])
    # 12 - 1 = 11: 11 // 6 = 1 each, then 11 // 4 = 2.
    assert built("sequential_halving", budget=12).propose(gone, 9, RNG) == list("abab")


def test_a_budget_that_a_removed_candidate_has_used_up_is_over() -> None:
    now = history({"a": [0.9, 0.1], "b": [0.8], "c": [0.7], "d": [0.1] * 6}, removed=["d"])
    strategy = built("sequential_halving", budget=10)
    assert strategy.propose(now, 9, RNG) == []
    decision = strategy.recommend(now)
    assert (decision.best, decision.stopped_by) == ("b", "budget")
    with pytest.raises(ConfigError, match="budget must .* 12 "):
        strategy.check_room(now)
