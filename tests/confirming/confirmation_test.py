"""What fresh runs say: verdicts, failures, several rivals, and what a plan can show."""

from dataclasses import replace
from typing import Any, Dict

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.confirming.confirmation import Confirmation, ConfirmationPlan
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.reports.confirmation_report import confirmation_in_words
from fiesta_allennlp.selecting.results.candidate_result import SeenLead
from fiesta_allennlp.selecting.results.result import Result
from tests.choosing.histories import failure, history
from tests.reports.made_up import candidate

BETTER, WORSE = (0.83, 0.85, 0.84, 0.86), (0.80, 0.81, 0.82, 0.82)
PAIR = {"a": BETTER, "b": WORSE}


def confirmed(past: History, *, splits: str = "shared", metric: str = "accuracy") -> Confirmation:
    strategy = {"type": "non_adaptive_fb", "budget": 4 * len(past.candidates)}
    decision = Decision(best=None)
    return Confirmation.from_result(
        Result.from_decision(past, decision, Metric.parse(metric), strategy=strategy, splits=splits)
    )


def test_the_verdict_about_all_rivals_is_confirmed_only_against_each_of_them() -> None:
    better, equal, worse = WORSE, (0.83, 0.84, 0.85, 0.86), (0.93, 0.95, 0.94, 0.96)
    cases = {"confirmed": (better, better), "not confirmed": (better, equal), "contradicted": (better, worse)}
    for verdict, (b, c) in cases.items():
        assert confirmed(history({"a": BETTER, "b": b, "c": c}), splits="official").verdict == verdict
    assert confirmed(history({"a": BETTER, "b": better, "c": ()})).verdict is None


def test_a_question_about_the_scores_confirms_nothing() -> None:
    past = history({"a": [0.9] * 4, "b": WORSE})
    decision = Decision(best=None, questions=("All 4 runs of a are equal.",))
    strategy = {"type": "non_adaptive_fb", "budget": 8}
    result = Result.from_decision(past, decision, Metric("accuracy"), strategy=strategy, splits="official")
    asked = Confirmation.from_result(result)
    assert (asked.verdict, asked.comparisons[0].verdict) == ("not confirmed", "not confirmed")
    assert [*confirmation_in_words(asked)][-1] == "All 4 runs of a are equal."
    assert confirmed(past, splits="official").verdict == "confirmed"


def test_paired_numbers_are_those_of_scipy() -> None:
    (found,) = confirmed(history(PAIR)).comparisons
    differences = np.subtract(BETTER, WORSE)  # .03, .04, .02, .04
    theirs = stats.ttest_1samp(differences, 0, alternative="greater")
    interval = stats.t.interval(0.95, 3, differences.mean(), stats.sem(differences))
    assert found.num_pairs == 4
    assert (found.difference, found.p_value) == pytest.approx((0.0325, theirs.pvalue))
    assert found.interval == pytest.approx(interval)
    assert found.lead_in_sds == pytest.approx(0.0325 / (differences.std(ddof=1) / 2**0.5))
    assert found.verdict == "confirmed"


def test_unpaired_numbers_are_those_of_scipy() -> None:
    (found,) = confirmed(history(PAIR), splits="official").comparisons
    theirs = stats.ttest_ind(BETTER, WORSE, equal_var=False, alternative="greater")
    assert found.num_pairs == 0
    assert found.p_value == pytest.approx(theirs.pvalue)
    sd = ((np.var(BETTER, ddof=1) + np.var(WORSE, ddof=1)) / 2) ** 0.5
    assert found.lead_in_sds == pytest.approx(0.0325 / sd)


@pytest.mark.parametrize(
    ("metric", "scores", "verdict", "sign"),
    [
        ("accuracy", {"a": BETTER, "b": WORSE}, "confirmed", 1),
        ("accuracy", {"a": WORSE, "b": BETTER}, "contradicted", -1),
        ("-loss", {"a": WORSE, "b": BETTER}, "confirmed", 1),
        ("-loss", {"a": BETTER, "b": WORSE}, "contradicted", -1),
        ("accuracy", {"a": BETTER, "b": BETTER}, "not confirmed", 0),
    ],
)
def test_verdicts_by_direction(metric: str, scores: Dict[str, Any], verdict: str, sign: int) -> None:
    """The difference keeps the sign of the scores, and the lead is positive where the winner is better."""
    (found,) = confirmed(history(scores), metric=metric).comparisons
    assert found.verdict == verdict
    assert found.difference == pytest.approx(np.mean(scores["a"]) - np.mean(scores["b"]))
    assert np.sign(found.lead_in_sds or 0) == sign


def test_several_rivals_share_the_level() -> None:
    """One-sided p-values of .02 and .03: alone, the first would be confirmed."""
    rows = [np.array([-1.0, 0.0, 1.0, 0.0]) + shift for shift in (0, 1.54, 1.36)]
    c = rows[1] - rows[2]
    found = confirmed(history({"a": rows[1], "b": rows[0], "c": c}), splits="official")
    p_values = [stats.ttest_ind(rows[1], x, equal_var=False, alternative="greater").pvalue for x in (rows[0], c)]
    assert max(p_values) < 0.05 and min(p_values) > 0.0125
    smaller, larger = sorted(p_values)
    adjusted = sorted(entry.p_value or 1.0 for entry in found.comparisons)
    assert adjusted == pytest.approx([2 * smaller, max(2 * smaller, larger)])
    assert set(found.verdicts.values()) == {"not confirmed"}
    theirs = stats.ttest_ind(rows[1], rows[0], equal_var=False).confidence_interval(0.975)  # two intervals with 95%
    assert found.comparisons[0].interval == pytest.approx(tuple(theirs))


def test_there_is_no_verdict_before_the_last_run() -> None:
    open_one = confirmed(history({"a": BETTER, "b": WORSE[:3]}))
    assert (open_one.comparisons, open_one.is_over) == ((), False)
    assert (open_one.result.num_evaluations, open_one.num_runs) == (7, 4)


def test_a_candidate_that_drops_out_is_not_confirmed_and_not_left_out() -> None:
    found = confirmed(history({**PAIR, "b": WORSE[:1], "c": WORSE}, failed=["b", "b", "b"], withdrawn=["b"]))
    dropped, other = found.comparisons
    assert (dropped.verdict, dropped.difference, found.result.candidates[1].failures) == ("not confirmed", None, 3)
    alone = stats.ttest_1samp(np.subtract(BETTER, WORSE), 0, alternative="greater").pvalue
    assert other.verdict == "confirmed" and other.p_value == pytest.approx(2 * alone)
    only = confirmed(history({"a": BETTER[:2], "b": ()}, failed=["b"], withdrawn=["b"]))
    assert only.is_over and only.comparisons[0].verdict == "not confirmed"


def test_failed_runs_leave_splits_that_are_no_pairs() -> None:
    past = history({"a": (*BETTER, 0.84), "b": (*WORSE, 0.81)})
    runs = tuple(run for run in past.evaluations if run.request.key not in (("a", 1), ("b", 4)))
    found = confirmed(replace(past, evaluations=runs, failures=(failure("a", 1),)))
    assert found.comparisons[0].num_pairs == 3


@pytest.mark.parametrize("is_paired", [True, False])
def test_what_a_plan_can_show_is_the_noncentral_t(is_paired: bool) -> None:
    winner, rival = candidate("a", BETTER, mean=0.845, sd=0.013), candidate("b", WORSE, mean=0.8125, sd=0.01)
    seen = SeenLead.of(winner, rival, sign=1, is_paired=is_paired)
    differences = np.subtract(BETTER, WORSE)
    assert seen.lead == pytest.approx(0.0325)
    assert seen.sds == (pytest.approx((differences.std(ddof=1),) if is_paired else (0.013, 0.01)))
    error = float(np.hypot.reduce(seen.sds)) / 10**0.5
    df = 9 if is_paired else 9 * (0.013**2 + 0.01**2) ** 2 / (0.013**4 + 0.01**4)
    for share in (1.0, 0.5):
        expected = stats.nct.sf(stats.t.isf(0.025, df), df, share * 0.0325 / error)
        assert seen.power(10, share=share) == pytest.approx(expected, abs=1e-6)
    strict = stats.nct.sf(stats.t.isf(0.0125, df), df, 0.25 * 0.0325 / error)
    two = ConfirmationPlan("a", (seen, seen), 10, is_paired)
    assert two.power(seen, 10, share=0.25) == pytest.approx(strict, abs=1e-6)
