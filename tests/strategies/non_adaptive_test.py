from dataclasses import replace

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from tests.strategies.histories import history
from tests.strategies.simulation import Simulation, built

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
    with pytest.raises(ConfigError, match=r"budget must be at least 3 \(3 candidates x 1 evaluation\) but got 2"):
        built("non_adaptive_fb", budget=2).check(["a", "b", "c"])


def test_a_removed_candidate_leaves_the_rest_of_the_budget_to_the_others() -> None:
    now = history({"a": [0.9], "b": [0.8], "c": [0.7]}, removed=["c"])
    strategy = built("non_adaptive_fb", budget=8)
    assert strategy.propose(now, 9, np.random.default_rng(0)) == list("abab")
    assert strategy.propose(replace(now, removed=frozenset()), 9, np.random.default_rng(0)) == list("ab")
