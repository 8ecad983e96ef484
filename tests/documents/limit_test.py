from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp.beliefs import Belief, Posterior
from fiesta_allennlp.documents.limit import LimitedDocuments
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Evaluation, Failure, History, Request
from fiesta_allennlp.strategies import NonAdaptiveFixedBudget, SequentialHalving, Thompson, TopTwo

RNG = np.random.default_rng(0)


class Told(Posterior):
    """A posterior with these probabilities."""

    def __init__(self, prob: List[float]) -> None:
        self.prob = np.array(prob)
        self.location, self.scale = self.prob, np.ones(len(prob))

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        return self.prob


class Given(Belief):
    min_evaluations = 1
    needs_counts = True

    def __init__(self, **prob: float) -> None:
        self.prob = prob

    def posterior(self, history: History) -> Told:
        return Told([self.prob[name] for name in history.active])


def history(counts: Dict[str, int], *, failed: "Dict[str, int] | None" = None, **rest: Any) -> History:
    failed = failed or {}
    evaluations = [
        Evaluation(Request(name, k, k, 0, 0, 0), score=0.5, metric="m") for name in counts for k in range(counts[name])
    ]
    failures = [
        Failure(Request(name, counts[name] + k, k, 0, 0, 0), kind="error", error="")
        for name in failed
        for k in range(failed[name])
    ]
    return History(tuple(counts), tuple(evaluations), failures=tuple(failures), **rest)


def limited(strategy: Any, num_batches: int, **measures: float) -> LimitedDocuments:
    return LimitedDocuments(strategy, num_batches=num_batches, measure=lambda history, name: measures[name])


def test_who_has_been_through_is_replaced_by_the_most_probable_other() -> None:
    strategy = limited(Thompson(belief=Given(a=0.6, b=0.4, c=0.0, d=0.0), max_evaluations=99), 5)
    now = history({"a": 5, "b": 3, "c": 2, "d": 1})
    assert strategy.recommend(now).stopped_by is None
    chosen = strategy.propose(now, 4, RNG)
    assert sorted(chosen) == ["b", "b", "c", "d"]  # of equally improbable ones the one with more documents left


def test_it_ends_when_those_that_may_be_best_have_been_through() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.55, b=0.42, c=0.03), max_evaluations=99), 5, a=0.6, b=0.7)
    decision = strategy.recommend(history({"a": 5, "b": 5, "c": 2}))
    assert (decision.best, decision.stopped_by) == ("b", "documents")
    assert decision.prob_best["a"] == 0.55
    unsure = limited(TopTwo(belief=Given(a=0.5, b=0.4, c=0.1), max_evaluations=99), 5, a=0.6, b=0.7)
    assert unsure.recommend(history({"a": 5, "b": 5, "c": 2})).stopped_by is None
    assert unsure.propose(history({"a": 5, "b": 5, "c": 2}), 9, RNG) == ["c", "c", "c"]


def test_pending_and_failed_documents_are_no_longer_there() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.6, b=0.4), max_evaluations=99), 5, a=0.6, b=0.7)
    request = Request("a", 4, 4, 0, 0, 0)
    now = history({"a": 4, "b": 3}, failed={"b": 2}, pending=(request,))
    assert strategy.propose(now, 2, RNG) == []
    assert strategy.recommend(now).stopped_by is None
    after = history({"a": 5, "b": 3}, failed={"b": 2})
    assert (strategy.recommend(after).best, strategy.recommend(after).stopped_by) == ("b", "documents")


def test_a_confidence_comes_before_the_end_of_the_documents() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.97, b=0.03), max_evaluations=20), 10, a=0.1, b=0.7)
    decision = strategy.recommend(history({"a": 10, "b": 10}))
    assert (decision.best, decision.stopped_by) == ("a", "confidence")


def test_all_documents_come_before_the_most_evaluations() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.6, b=0.4), max_evaluations=10), 5, a=0.6, b=0.7)
    assert strategy.recommend(history({"a": 5, "b": 5})).stopped_by == "documents"


def test_a_plan_that_asks_for_more_documents_than_there_are_ends() -> None:
    halving = SequentialHalving(belief=Given(a=0.5, b=0.3, c=0.1, d=0.1), budget=40)
    strategy = limited(halving, 5, a=0.6, b=0.7, c=0.8, d=0.9)
    now = history({"a": 5, "b": 5, "c": 5, "d": 4})
    assert strategy.propose(now, 1, RNG) == ["d"]
    # The survivors of the first round, a and b as all means are equal, have no documents left.
    decision = strategy.recommend(history({"a": 5, "b": 5, "c": 5, "d": 5}))
    assert decision.stopped_by == "documents"


def test_a_budget_that_fits_is_spent() -> None:
    strategy = limited(NonAdaptiveFixedBudget(belief=Given(a=0.6, b=0.4), budget=10), 5, a=0.6, b=0.7)
    assert strategy.propose(history({"a": 4, "b": 4}), 9, RNG) == ["a", "b"]
    assert strategy.recommend(history({"a": 5, "b": 5})).stopped_by == "budget"


def test_a_withdrawn_candidate_plays_no_part() -> None:
    belief = Given(a=0.6, b=0.4)
    strategy = limited(TopTwo(belief=belief, max_evaluations=99), 3, a=0.6, b=0.7)
    now = history({"a": 3, "b": 3, "c": 1}, withdrawn=frozenset({"c"}))
    assert strategy.recommend(now).stopped_by == "documents"


def test_too_few_documents_and_bounds() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.6, b=0.4), num_starts=3, max_evaluations=99), 2)
    with pytest.raises(ConfigError, match=r"at least 3 documents, or batches of documents, .* but there are 2"):
        strategy.check(["a", "b"])
    assert limited(TopTwo(belief=Given(a=1.0), max_evaluations=99), 5).bounds(3) == (15, 15)


def test_who_fails_on_every_document_ends_with_the_others() -> None:
    strategy = limited(TopTwo(belief=Given(a=0.6, b=0.3, c=0.1), max_evaluations=99), 4, a=0.5, b=0.9)
    now = history({"a": 4, "b": 4, "c": 0}, failed={"c": 4})
    assert strategy.propose(now, 1, RNG) == []
    decision = strategy.recommend(now)
    assert (decision.best, decision.stopped_by) == ("b", "documents")
    spending = limited(NonAdaptiveFixedBudget(belief=Given(a=0.6, b=0.3, c=0.1), budget=12), 4, a=0.5, b=0.9)
    assert spending.recommend(now).stopped_by == "documents"


@pytest.mark.parametrize(("counts", "best"), [({"a": 4, "b": 0}, "a"), ({"a": 0, "b": 0}, None)])
def test_there_is_no_comparison_where_fewer_than_two_answered_anything(counts: Dict[str, int], best: Any) -> None:
    strategy = limited(TopTwo(belief=Given(a=0.6, b=0.4), max_evaluations=99), 4, a=0.5, b=0.9)
    now = history(counts, failed={name: 4 for name, number in counts.items() if not number})
    decision = strategy.recommend(now)
    assert (decision.best, decision.stopped_by) == (best, "failures")
