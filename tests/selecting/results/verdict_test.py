"""The verdict over all that took part: best, equal or open."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np
import pytest

from fiesta_allennlp import next_runs, report
from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.words import verdict_in_words
from fiesta_allennlp.selecting.objections import UNSEEDED
from fiesta_allennlp.selecting.results.candidate_result import SeenLead
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import CLASS_ERRORS, class_of, find_class_errors, judge
from tests.choosing.histories import history, request
from tests.selections import write_selection

STRATEGY = {"type": "top_two", "belief": {"type": "moderated_t"}, "max_evaluations": 60}
BAD, GOOD = [0.50, 0.52, 0.51, 0.50], [0.80, 0.81, 0.79, 0.80]
BETTER = [0.90, 0.91, 0.89]


def result_of(scores: Dict[str, Sequence[float]], *, allowed: Sequence[str] = (), **changes: Any) -> Result:
    """The result of a selection of candidates with these scores. `changes` are fields of its history."""
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
        assert re.fullmatch(f"Open after 9 runs: svm, .*{left}.", sentence(made))
        assert made.candidates[2].prob_best > 0.99 and made.best_set == ("svm",)


def test_a_worse_candidate_that_left_is_compared_and_changes_nothing() -> None:
    made = result_of({"a": BAD, "b": GOOD, "svm": [0.49, 0.5, 0.52]}, withdrawn=frozenset({"svm"}))
    assert (made.verdict, made.best, made.unresolved) == ("best", "b", ()) and made.candidates[2].prob_best < 0.01
    assert sentence(made).startswith("b is the best with probability ") and "svm" not in sentence(made)


@pytest.mark.parametrize(("score", "verdict"), [(0.95, "open"), (0.5, "best")])
def test_a_candidate_that_left_after_one_run_is_compared_by_it(score: float, verdict: str) -> None:
    made = result_of({"a": BAD, "b": GOOD, "svm": [score]}, withdrawn=frozenset({"svm"}))
    assert (made.verdict, made.unresolved) == (verdict, ("svm",) if verdict == "open" else ())


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


@pytest.mark.parametrize(("margin", "said"), [(0.0, "b is the best"), (0.4, "b is within 0.4 of the best")])
def test_a_winner_within_a_margin_is_not_called_the_best(margin: float, said: str) -> None:
    assert sentence(replace(result_of({"a": BAD, "b": GOOD}), margin=margin)).startswith(said)


WITHOUT_LIMIT = {"type": "top_two", "belief": {"type": "moderated_t"}}
NOISE = np.random.default_rng(0).normal(0, 0.01, (2, 40))


@pytest.mark.parametrize(
    ("sds", "num_runs", "place"), [(0.4, 40, (0, 0)), (1.5, 16, (1, 1)), (6.0, 5, (1, 2)), (0.9, 40, (1, 0))]
)
def test_a_winner_has_the_class_of_its_probability_and_its_lead(sds: float, num_runs: int, place: Any) -> None:
    noise = NOISE[:, :num_runs] - NOISE[:, :num_runs].mean(axis=1, keepdims=True)
    sd = float(np.std(noise[0] - noise[1], ddof=1) / 2**0.5)
    strategy = build(Strategy, WITHOUT_LIMIT)
    decision = strategy.recommend(history({"a": 0.8 + noise[0], "b": 0.8 - sds * sd + noise[1]}))
    assert class_of(decision) == place
    assert find_class_errors(decision, strategy) == CLASS_ERRORS[place[0]][place[1]]


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0.9},
        {"margin": 0.01},
        {"stop": {"type": "glr"}},
        {"belief": {"type": "student_t"}},
        {"type": "non_adaptive_fc"},
    ],
)
def test_nothing_was_measured_of_other_rules(options: Dict[str, Any]) -> None:
    strategy = build(Strategy, {**WITHOUT_LIMIT, **options})
    decision = strategy.recommend(history({"a": 0.8 + NOISE[0], "b": 0.6 + NOISE[1]}))
    assert decision.stopped_by == "confidence" and find_class_errors(decision, strategy) is None


DEVIATIONS = (0.002, -0.002, 0.001, -0.001)
MEANS = {"large": (0.9, 100, 8), "small": (0.898, 10, 4), "tiny": (0.8, 1, 1)}


@pytest.fixture
def rows() -> List[Dict[str, Any]]:
    """Small is within 0.01 of large, at a tenth of its seconds, and tiny is not."""
    return [
        {"candidate": name, "seed": seed, "score": mean + noise, "seconds": seconds, "memory": memory}
        for name, (mean, seconds, memory) in MEANS.items()
        for seed, noise in enumerate(DEVIATIONS)
    ]


@pytest.mark.parametrize(("by", "cost"), [("seconds", 10), ("memory", 4)])
def test_the_cheapest_candidate_that_is_good_enough(rows: List[Dict[str, Any]], by: str, cost: float) -> None:
    for answer in (next_runs(rows, margin=0.01, prefer=by), report(rows, margin=0.01, prefer=by)):
        preferred = answer.result.preferred
        assert preferred is not None and (preferred.name, preferred.cost, preferred.by) == ("small", cost, by)
        assert answer.result.leading == "large"
    assert f"Preferred by {by}: small ({cost}), within 0.01 of" in str(answer)


def test_nobody_is_preferred_before_the_target_and_what_is_unknown_is_refused(
    rows: List[Dict[str, Any]], shared_data: Path
) -> None:
    preferred = next_runs(rows, margin=1e-6, prefer="seconds", confidence=0.999).result.preferred
    assert preferred is not None and preferred.name is None
    with pytest.raises(ConfigError, match="--prefer seconds needs --margin"):
        next_runs(rows, prefer="seconds")
    with pytest.raises(ConfigError, match="'latency' of large"):
        next_runs(rows, margin=0.01, prefer="latency")
    cheap = next_runs(shared_data / "inputs" / "gate.csv", margin=0.01, prefer="seconds").result.preferred
    assert cheap is not None and (cheap.name, cheap.cost) == ("pr", 10)


def test_a_selection_is_asked_for_its_own_costs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = {name: [mean + noise for noise in rng.permutation(DEVIATIONS)] for name, (mean, *_) in MEANS.items()}
    write_selection(tmp_path / "run", scores, margin=0.01, confidence=0.95).close()
    for by, cost in (("seconds", 2), ("parameters", 1234)):
        record = report(tmp_path / "run", prefer=by)
        preferred = record.result.preferred
        assert preferred is not None and (preferred.name, preferred.cost) == ("large", cost)
        assert f"Preferred by {by}: large ({cost}), within 0.01 of" in str(record)


def test_a_claim_takes_the_fewest_runs_that_confirm_the_lead_with_power_80() -> None:
    for sds in ((0.02,), (0.02, 0.03)):
        lead = SeenLead("b", 0.015, sds)
        needed = lead.num_runs_for_claim()
        assert needed is not None and lead.power(needed) >= 0.8 > lead.power(needed - 1)
        assert needed < lead.num_runs_for_claim(num_rivals=3)
    assert SeenLead("b", -0.1, (0.02,)).num_runs_for_claim() is SeenLead("b").num_runs_for_claim() is None
    assert SeenLead("b", 1e-6, (0.02,)).num_runs_for_claim() is SeenLead("b").power(10) is None
