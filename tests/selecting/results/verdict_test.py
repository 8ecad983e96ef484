"""The verdict over all that took part: best, equal or open."""

from dataclasses import replace
from typing import Any, Dict, List, Sequence

import numpy as np
import pytest

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.core.settings.metrics import Metric
from fiesta_allennlp.reports.words import verdict_in_words
from fiesta_allennlp.selecting.objections import UNSEEDED
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import judge, smallest_set
from tests.choosing.histories import request

STRATEGY = {"type": "top_two", "belief": {"type": "moderated_t"}, "max_evaluations": 60}
BAD, GOOD = [0.50, 0.52, 0.51, 0.50], [0.80, 0.81, 0.79, 0.80]
BETTER = [0.90, 0.91, 0.89]


def result_of(scores: Dict[str, Sequence[float]], *, allowed: Sequence[str] = (), **changes: Any) -> Result:
    """The result of a selection of candidates with these scores. `changes` are fields of its history."""
    from fiesta_allennlp.core.registry import build

    runs = [
        Evaluation(make_request(0, name, replicate, shared_splits=False), score, "f1")
        for name, row in scores.items()
        for replicate, score in enumerate(row)
    ]
    history, strategy = replace(History(tuple(scores), tuple(runs)), **changes), build(Strategy, STRATEGY)
    decision = judge(history, strategy.recommend(history), strategy, allowed=allowed)
    return Result.from_decision(history, decision, Metric("f1"), target=0.95)


def sentence(result: Result) -> str:
    return verdict_in_words(result, "after 9 runs")


def test_a_better_candidate_that_left_keeps_the_end_open() -> None:
    for removed, left in ((frozenset(), "dropped out"), (frozenset({"svm"}), "was removed")):
        made = result_of({"a": BAD, "b": GOOD, "svm": BETTER}, withdrawn=frozenset({"svm"}), removed=removed)
        assert (made.stopped_by, made.verdict, made.best, made.unresolved) == ("unresolved", "open", None, ("svm",))
        assert sentence(made) == f"Open after 9 runs: svm, which has the highest mean, {left}."
        assert made.candidates[2].prob_best > 0.99 and made.best_set == ("svm",)


def test_a_worse_candidate_that_left_is_compared_and_changes_nothing() -> None:
    made = result_of({"a": BAD, "b": GOOD, "svm": [0.49, 0.5, 0.52]}, withdrawn=frozenset({"svm"}))
    assert (made.verdict, made.best, made.unresolved) == ("best", "b", ()) and made.candidates[2].prob_best < 0.01
    assert sentence(made).startswith("b is the best with probability ") and "svm" not in sentence(made)


def test_a_candidate_that_left_without_scores_is_named_in_the_sentence() -> None:
    failures = tuple(Failure(request("svm", replicate), "error", "no memory") for replicate in range(3))
    scores = {"a": BAD, "b": GOOD, "svm": []}
    made = result_of(scores, withdrawn=frozenset({"svm"}), failures=failures)
    assert made.best == "b" and sentence(made).endswith(", of the 2 that ran; svm failed in 3 of 3 runs.")


def test_equal_runs_are_asked_about_before_a_winner_is_named() -> None:
    scores = {"a": GOOD, "b": BAD, "perfect": [1.0] * 4}
    made = result_of(scores)
    assert (made.stopped_by, made.verdict, made.best) == ("questions", "open", None)
    (question,) = made.questions
    assert question.startswith("All 4 runs of perfect are equal (f1 1). Is the seed used, or are results cached?")
    assert made.candidates[2].sd == 0 and not made.candidates[2].withdrawn
    assert made.class_errors is made.runs_to_claim is None
    answered = result_of(scores, allowed=["unseeded"])
    assert answered.best == "perfect" and answered.class_errors is not None and answered.runs_to_claim is not None


def test_where_nothing_varies_there_is_no_certainty() -> None:
    made = result_of({"a": [0.8041] * 3, "b": [0.8683] * 3}, allowed=["unseeded"])
    assert (made.stopped_by, made.verdict, made.confidence) == ("no_variation", "open", 0.5)
    (question,) = result_of({"a": [0.8041] * 3, "b": [0.8683] * 3}).questions
    assert "All 3 runs of a are equal (f1 0.8041); all 3 runs of b are equal (f1 0.8683)." in question
    assert made.expected_loss is None


def test_two_candidates_with_equal_scores_are_asked_about() -> None:
    made = result_of({"a": GOOD, "b": GOOD, "c": BAD})
    assert made.questions[0].startswith("The first 4 scores of a and b are equal (the same model?). ")


def test_percents_among_fractions_are_asked_about() -> None:
    scores = {"seq": GOOD, "conll": [80.1, 81.2, 79.9]}
    assert result_of(scores).best is None and "others like percents" in result_of(scores).questions[0]
    assert result_of(scores, allowed=["units"]).best == "conll"


def test_metrics_that_differ_and_items_that_are_right_or_wrong_raise_no_question() -> None:
    def history(rows: List[Dict[str, float]]) -> History:
        runs = (Evaluation(request("a", k), row["f1"], "f1", metrics=row) for k, row in enumerate(rows))
        return History(("a", "b"), (*runs, Evaluation(request("b", 0), 0.0, "f1")))

    assert list(UNSEEDED.test(history([{"f1": 0.5, "loss": 1.0}] * 3)))
    assert not list(UNSEEDED.test(history([{"f1": 0.5, "loss": float(k)} for k in range(3)])))
    assert not list(UNSEEDED.test(history([{"f1": 0.5}] * 2)))
    assert not list(UNSEEDED.test(history([{"f1": 1.0}] * 9)))


def test_two_candidates_within_half_an_sd_are_equal_only_at_an_end_without_a_winner() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, 60)
    scores = {"a": noise.tolist(), "b": noise[::-1].tolist()}
    made = result_of(scores)
    assert (made.stopped_by, made.verdict, made.best, set(made.best_set)) == ("max_evaluations", "equal", None, {*"ab"})
    assert made.prob_equal is not None and made.prob_equal >= 0.95
    assert sentence(made).startswith("a and b are equal within half a run-to-run sd, with probability 0.9")
    assert replace(made, stopped_by=None).verdict == "open"
    few = result_of({"a": noise[:12].tolist(), "b": noise[11::-1].tolist()})
    assert few.verdict == "open" and few.prob_equal is not None and few.prob_equal < 0.95


def test_the_smallest_set_reaches_the_target() -> None:
    assert smallest_set({"a": 0.3, "b": 0.65, "c": 0.05}, 0.9) == ("b", "a")
    assert smallest_set({}, 0.9) == ()


@pytest.mark.parametrize(("margin", "said"), [(0.0, "b is the best"), (0.4, "b is within 0.4 of the best")])
def test_a_winner_within_a_margin_is_not_called_the_best(margin: float, said: str) -> None:
    assert sentence(replace(result_of({"a": BAD, "b": GOOD}), margin=margin)).startswith(said)
