"""What holds of every registered strategy."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.choosing import StoppingRule, Strategy
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from tests.choosing.histories import THREE_EACH, evaluation, failing, failure, history, request
from tests.choosing.simulation import ON_COUNTS, Simulation, built

MEANS = {"weak": 0.55, "good": 0.63, "best": 0.65, "fair": 0.60}
LIMITS = {"budget": 48, "max_evaluations": 90, "confidence": 0.9}


@pytest.fixture(params=Strategy.available())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("belief", "num_workers", "shuffled"), [("student_t", 8, True), (ON_COUNTS, 1, False)])
def test_finds_a_candidate_and_stops_within_its_bounds(
    name: str, belief: Any, num_workers: int, shuffled: bool
) -> None:
    strategy = built(name, belief=belief, **LIMITS)
    strategy.check(list(MEANS))
    decision, end = Simulation(strategy, MEANS, num_workers, shuffled, seed=5).run()
    assert decision.stopped_by in {"confidence", "budget"}
    assert decision.best == "best"
    least, most = strategy.bounds(len(MEANS))
    assert least <= end.total_started <= most


@pytest.mark.parametrize(("num_workers", "failure_rate"), [(8, 0.1), (3, 0.5), (1, 1.0)])
def test_stops_whatever_fails(name: str, num_workers: int, failure_rate: float) -> None:
    simulation = Simulation(built(name, **LIMITS), MEANS, num_workers, True, failure_rate, seed=num_workers)
    decision, end = simulation.run()
    assert decision.stopped_by is not None
    assert (decision.stopped_by == "failures") == (len(end.active) < 2)
    assert decision.best is None or decision.best in end.active
    if failure_rate == 1.0:
        assert decision.stopped_by == "failures"
        assert decision.best is None


def test_begins_with_each_candidate_once_in_their_order_and_replaces_a_failure(name: str) -> None:
    strategy = built(name, **LIMITS)
    assert strategy.propose(history({"b": [], "a": [], "c": []}), 3, np.random.default_rng(1)) == ["b", "a", "c"]
    # The first of "a" failed, so it is behind although it has been tried as often.
    failed = history({"a": [], "b": [0.5], "c": [0.5]})
    assert strategy.propose(failed, 1, np.random.default_rng(1)) == ["a"]


def test_fewer_than_two_candidates_end_it_without_a_claim(name: str) -> None:
    strategy = built(name, **LIMITS)
    decision = strategy.recommend(history(THREE_EACH, withdrawn=["a", "b"], pending=["a"]))
    assert (decision.stopped_by, decision.best) == ("failures", "c")
    assert decision.confidence is None
    assert decision.prob_best == {}
    without_scores = strategy.recommend(history({"a": [0.5], "b": []}, withdrawn=["a"]))
    assert (without_scores.stopped_by, without_scores.best) == ("failures", None)


def test_probabilities_cover_the_active_candidates(name: str) -> None:
    decision = built(name, **LIMITS).recommend(history(THREE_EACH, withdrawn=["b"]))
    assert list(decision.prob_best) == ["a", "c"]
    assert sum(decision.prob_best.values()) == pytest.approx(1)
    assert decision.prob_within_margin == decision.prob_best
    few = built(name, **LIMITS).recommend(history({**THREE_EACH, "b": [0.5, 0.6]}))
    assert few.prob_best == {}


@pytest.mark.parametrize(
    ("candidates", "named"),
    [(["a"], "at least 2 candidates"), (["a", "b", "a"], "'a' appears")],
)
def test_check_refuses_candidates(name: str, candidates: "list[str]", named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        built(name, **LIMITS).check(candidates)


@settings(max_examples=25, deadline=None)
@given(data=some.data())
def test_any_order_of_finishing_failing_joining_and_leaving_ends_within_the_budget(data: some.DataObject) -> None:
    """Whatever the scores are, whoever finishes first, whatever fails, and while candidates come and go."""
    name = data.draw(some.sampled_from(Strategy.available()))
    belief = data.draw(some.sampled_from(["student_t", "student_t", "moderated_t", ON_COUNTS]))
    rule = data.draw(some.sampled_from(StoppingRule.available()))
    margin = data.draw(some.sampled_from([0.0, 0.01]))
    limits = {"budget": 24, "max_evaluations": 24, "confidence": 0.999, "margin": margin}
    strategy = built(name, belief=belief, stop=rule, **limits)
    scores = some.one_of(some.floats(0, 1), some.sampled_from([0.5, 0.6]))
    if belief != ON_COUNTS:
        scores = some.one_of(scores, some.floats(-1e100, 1e100))
    now, replicates = History(("a", "b", "c")), Counter()
    for step in range(120):
        decision, slots = strategy.recommend(now), data.draw(some.integers(0, 4))
        proposed = strategy.propose(now, slots, np.random.default_rng(step))
        assert len(proposed) <= slots and set(proposed) <= set(now.active)
        assert decision.best is None or decision.best in now.active
        assert not proposed or now.total_started + len(proposed) <= 24
        if decision.stopped_by is not None:
            assert proposed == []
            return
        assert proposed or now.pending or not slots
        started = []
        for candidate in proposed:
            started.append(request(candidate, replicates[candidate]))
            replicates[candidate] += 1
        what = data.draw(some.sampled_from(["finish"] * 6 + ["fail", "join", "leave"]))
        now = _next(now.with_pending(started), what, data, scores)


def _next(now: History, what: str, data: some.DataObject, scores: some.SearchStrategy) -> History:
    if what == "join" and "d" not in now.candidates:
        return replace(now, candidates=(*now.candidates, "d"))
    if what == "leave" and len(now.active) > 2:
        gone = data.draw(some.sampled_from(now.active))
        kept = tuple(other for other in now.pending if other.candidate != gone)
        return replace(now, withdrawn=now.withdrawn | {gone}, pending=kept)
    if not now.pending:
        return now
    done = data.draw(some.sampled_from(now.pending))
    if what == "fail":
        return failing(now, failure(done.candidate, done.replicate))
    return now.with_finished([evaluation(done.candidate, done.replicate, data.draw(scores))])
