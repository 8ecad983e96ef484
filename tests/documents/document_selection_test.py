from typing import Any, Dict

import numpy as np
import pytest

from fiesta_allennlp.choosing import NonAdaptiveFixedBudget, SequentialHalving, Thompson, TopTwo
from fiesta_allennlp.choosing.beliefs import Belief, MeanPosterior
from fiesta_allennlp.choosing.strategy import RunLimit
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.documents.annotated_documents import Classification, DocumentFacts
from fiesta_allennlp.documents.document_selection import DocumentsSetup, EnoughDocuments
from fiesta_allennlp.documents.document_settings import DocumentSettings
from tests.choosing.histories import history as of_scores

RNG = np.random.default_rng(0)


class Given(Belief):
    """P(best) is what was given."""

    min_evaluations = 1
    needs_counts = True

    def __init__(self, **prob: float) -> None:
        self.prob = prob

    def posterior(self, history: History) -> MeanPosterior:
        return GivenPosterior(np.array([self.prob[name] for name in history.active]))


class GivenPosterior(MeanPosterior):
    def __init__(self, prob: np.ndarray) -> None:
        self.location, self.scale, self.df, self.noise_variance = prob, np.ones(len(prob)), np.ones(len(prob)), 1.0

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        return self.location

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def interval(self, level: float) -> np.ndarray:
        return np.stack([self.location, self.location], axis=1)


def history(counts: Dict[str, int], **rest: Any) -> History:
    return of_scores({name: [0.5] * number for name, number in counts.items()}, **rest)


def limited(num_batches: int, *, strategy: Any = TopTwo, budget: int = 0, prob: Any = None, **measures: float) -> Any:
    """A strategy with this limit; P(best) is `prob`, by default 0.6 for a and 0.4 for b."""
    limits = {"budget": budget} if budget else {"max_evaluations": 99}
    made = strategy(belief=Given(**(prob or {"a": 0.6, "b": 0.4})), **limits)
    made.run_limit = RunLimit(num_batches, measure=lambda history, name: measures[name])
    return made


def ended(strategy: Any, now: History) -> Any:
    decision = strategy.recommend(now)
    return decision.best, decision.stopped_by


def test_who_has_been_through_is_replaced_by_the_most_probable_other() -> None:
    strategy = limited(5, strategy=Thompson, prob={"a": 0.6, "b": 0.4, "c": 0.0, "d": 0.0})
    now = history({"a": 5, "b": 3, "c": 2, "d": 1})
    assert strategy.recommend(now).stopped_by is None
    # Of equally improbable ones the one with more documents left.
    assert sorted(strategy.propose(now, 4, RNG)) == ["b", "b", "c", "d"]


def test_it_ends_when_those_that_may_be_best_have_been_through() -> None:
    now = history({"a": 5, "b": 5, "c": 2})
    sure = limited(5, prob={"a": 0.55, "b": 0.42, "c": 0.03}, a=0.6, b=0.7)
    assert ended(sure, now) == ("b", "documents") and sure.recommend(now).prob_best["a"] == 0.55
    unsure = limited(5, prob={"a": 0.5, "b": 0.4, "c": 0.1}, a=0.6, b=0.7)
    assert unsure.recommend(now).stopped_by is None
    assert unsure.propose(now, 9, RNG) == ["c", "c", "c"]
    assert limited(5, prob={"a": 0.97, "b": 0.03}, a=0.6, b=0.7).recommend(history({"a": 5, "b": 2})).stopped_by is None
    confident = limited(12, prob={"a": 0.97, "b": 0.03}, a=0.1, b=0.7)
    assert ended(confident, history({"a": 12, "b": 12})) == ("a", "confidence")
    withdrawn = history({"a": 5, "b": 5, "c": 1}, withdrawn=["c"])
    assert ended(limited(5, a=0.6, b=0.7), withdrawn) == ("b", "documents")


def test_pending_and_failed_documents_are_no_longer_there() -> None:
    strategy = limited(5, a=0.6, b=0.7)
    now = history({"a": 4, "b": 3}, failed="bb", pending="a")
    assert strategy.propose(now, 2, RNG) == []
    assert strategy.recommend(now).stopped_by is None
    assert ended(strategy, history({"a": 5, "b": 3}, failed="bb")) == ("b", "documents")


def test_a_plan_that_asks_for_more_documents_than_there_are_ends() -> None:
    prob = {"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1}
    strategy = limited(5, strategy=SequentialHalving, budget=40, prob=prob, a=0.6, b=0.7, c=0.8, d=0.9)
    assert strategy.propose(history({"a": 5, "b": 5, "c": 5, "d": 4}), 1, RNG) == ["d"]
    # The survivors of the first round, a and b as all means are equal, have no documents left.
    assert strategy.recommend(history({"a": 5, "b": 5, "c": 5, "d": 5})).stopped_by == "documents"
    fitting = limited(5, strategy=NonAdaptiveFixedBudget, budget=10)
    assert fitting.propose(history({"a": 4, "b": 4}), 9, RNG) == ["a", "b"]
    assert fitting.recommend(history({"a": 5, "b": 5})).stopped_by == "budget"


def test_too_few_documents_and_bounds() -> None:
    with pytest.raises(ConfigError, match="at least 3 documents .* only 2"):
        DocumentsSetup(DocumentSettings(), Classification(), DocumentFacts("gold.jsonl", 2, 2), ["a", "b"])
    assert limited(5).bounds(3) == (3, 15)


def test_who_fails_on_every_document_ends_with_the_others() -> None:
    prob, now = {"a": 0.6, "b": 0.3, "c": 0.1}, history({"a": 4, "b": 4, "c": 0}, failed="cccc")
    strategy = limited(4, prob=prob, a=0.5, b=0.9)
    assert strategy.propose(now, 1, RNG) == []
    assert ended(strategy, now) == ("b", "documents")
    spending = limited(4, strategy=NonAdaptiveFixedBudget, budget=12, prob=prob, a=0.5, b=0.9)
    assert spending.recommend(now).stopped_by == "documents"
    # There is no comparison where fewer than two answered anything.
    assert ended(limited(4, a=0.5, b=0.9), history({"a": 4, "b": 0}, failed="bbbb")) == ("a", "failures")
    assert ended(limited(4, a=0.5, b=0.9), history({"a": 0, "b": 0}, failed="aaaabbbb")) == (None, "failures")


def missing(stop: EnoughDocuments, counts: Dict[str, int], *, reached: float) -> object:
    """`a` is best and `b` its nearest rival."""
    strategy = TopTwo(belief=Given(a=reached, b=1 - reached, c=0.0), stop=stop, confidence=0.95)
    decision = strategy.recommend(history(counts))
    return () if decision.stopped_by == "confidence" else decision.lacking or None


def test_the_winner_and_its_nearest_rival_need_enough_documents() -> None:
    few = {"a": 10, "b": 11, "c": 3}
    assert missing(EnoughDocuments(), few, reached=0.94) is None
    assert missing(EnoughDocuments(), few, reached=0.96) == ("a", "a", "b")
    assert missing(EnoughDocuments(), {**few, "a": 12, "b": 12}, reached=0.96) == ()
    assert missing(EnoughDocuments(batch_size=2), few, reached=0.96) == ()


@pytest.mark.parametrize(("confidence", "batch_size", "expected"), [(0.8, 1, 7), (0.95, 1, 12), (0.95, 5, 3)])
def test_the_number_of_queries(confidence: float, batch_size: int, expected: int) -> None:
    """ln 5 / 0.25 = 6.4 and ln 20 / 0.25 = 11.98 documents."""
    assert EnoughDocuments(batch_size=batch_size).least_runs(confidence) == expected
