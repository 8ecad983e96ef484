"""What fresh runs say: verdicts, failures, several rivals, and what a plan can show."""

from dataclasses import asdict, replace
from typing import Any, Dict, Optional, Sequence

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.probability.student_t import correlated_t
from fiesta_allennlp.selection.confirmation import Confirmation, ConfirmationPlan, PlannedRival
from tests.reports.made_up import candidate

PAIRED = ConfirmationPlan(
    "a", (PlannedRival("b"),), 4, "accuracy", is_paired=True, was_decided=True, selection_seed="1"
)
UNPAIRED = replace(PAIRED, is_paired=False)
BETTER, WORSE = (0.83, 0.85, 0.84, 0.86), (0.80, 0.81, 0.82, 0.82)


def request(name: str, k: int) -> Request:
    return Request(name, k, k, 0, 0, 0)


def history(*, failed: Sequence[Any] = (), withdrawn: Sequence[str] = (), **scores: Sequence[float]) -> History:
    evaluations = tuple(
        Evaluation(request(name, k), score, "accuracy") for name, row in scores.items() for k, score in enumerate(row)
    )
    failures = tuple(Failure(request(name, 90 + k), "error", "no") for k, name in enumerate(failed))
    return History(tuple(scores), evaluations, failures=failures, withdrawn=frozenset(withdrawn))


def confirmed(plan: ConfirmationPlan, past: History) -> Confirmation:
    return Confirmation.from_history(plan, past, directory="runs/x/confirmation", seed="2")


def test_the_verdict_about_all_rivals_is_confirmed_only_against_each_of_them() -> None:
    better, equal, worse = WORSE, (0.83, 0.84, 0.85, 0.86), (0.93, 0.95, 0.94, 0.96)
    plan = replace(UNPAIRED, rivals=(PlannedRival("b"), PlannedRival("c")))
    cases = {"confirmed": (better, better), "not confirmed": (better, equal), "contradicted": (better, worse)}
    for verdict, (b, c) in cases.items():
        assert confirmed(plan, history(a=BETTER, b=b, c=c)).verdict == verdict
    assert confirmed(plan, history(a=BETTER, b=better, c=())).verdict is None


def test_paired_numbers_are_those_of_scipy() -> None:
    (found,) = confirmed(replace(PAIRED, test_share=0.2), history(a=BETTER, b=WORSE)).comparisons
    differences = np.subtract(BETTER, WORSE)  # .03, .04, .02, .04
    theirs = stats.ttest_1samp(differences, 0, alternative="greater")
    interval = stats.t.interval(0.95, 3, differences.mean(), stats.sem(differences))
    assert (found.num_pairs, found.num_runs, found.num_failed) == (4, (4, 4), (0, 0))
    assert (found.difference, found.p_value) == pytest.approx((0.0325, theirs.pvalue))
    assert found.interval == pytest.approx(interval)
    assert found.lead_in_sds == pytest.approx(0.0325 / (differences.std(ddof=1) / 2**0.5))
    assert found.prob_new_data == pytest.approx(correlated_t(differences, 0.2).prob_above_0())
    assert found.verdict == "confirmed" and found.adjusted_p_value == found.p_value


def test_unpaired_numbers_are_those_of_scipy() -> None:
    (found,) = confirmed(UNPAIRED, history(a=BETTER, b=WORSE)).comparisons
    theirs = stats.ttest_ind(BETTER, WORSE, equal_var=False, alternative="greater")
    assert (found.num_pairs, found.prob_new_data) == (0, None)
    assert found.p_value == pytest.approx(theirs.pvalue)
    sd = ((np.var(BETTER, ddof=1) + np.var(WORSE, ddof=1)) / 2) ** 0.5
    assert (found.sd, found.lead_in_sds) == pytest.approx((sd, 0.0325 / sd))


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
    (found,) = confirmed(replace(PAIRED, metric=metric), history(**scores)).comparisons
    assert found.verdict == verdict
    assert found.difference == pytest.approx(np.mean(scores["a"]) - np.mean(scores["b"]))
    assert np.sign(found.lead_in_sds or 0) == sign


def test_several_rivals_share_the_level() -> None:
    """One-sided p-values of .02 and .03: alone, the first would be confirmed."""
    plan = replace(UNPAIRED, rivals=(PlannedRival("b"), PlannedRival("c")))
    rows = [np.array([-1.0, 0.0, 1.0, 0.0]) + shift for shift in (0, 1.54, 1.36)]
    found = confirmed(plan, history(a=rows[1], b=rows[0], c=rows[1] - rows[2]))
    p_values = [entry.p_value or 1.0 for entry in found.comparisons]
    assert max(p_values) < 0.05 and min(p_values) > 0.0125
    smaller, larger = sorted(p_values)
    adjusted = sorted(entry.adjusted_p_value or 1.0 for entry in found.comparisons)
    assert adjusted == pytest.approx([2 * smaller, max(2 * smaller, larger)])
    assert {entry.verdict for entry in found.comparisons} == {"not confirmed"}
    theirs = stats.ttest_ind(rows[1], rows[0], equal_var=False).confidence_interval(0.975)  # two intervals with 95%
    assert found.comparisons[0].interval == pytest.approx(tuple(theirs))


def test_there_is_no_verdict_before_the_last_run() -> None:
    open_one = confirmed(PAIRED, history(a=BETTER, b=WORSE[:3]))
    assert (open_one.comparisons, open_one.is_over) == ((), False)
    assert (open_one.num_finished, open_one.num_planned) == (7, 8)


def test_a_candidate_that_drops_out_is_not_confirmed_and_not_left_out() -> None:
    plan = replace(PAIRED, rivals=(PlannedRival("b"), PlannedRival("c")))
    past = history(a=BETTER, b=WORSE[:1], c=WORSE, failed=["b", "b", "b"], withdrawn=["b"])
    found = confirmed(plan, past)
    dropped, other = found.comparisons
    assert (dropped.verdict, dropped.difference, dropped.num_runs, dropped.num_failed) == (
        "not confirmed",
        None,
        (4, 1),
        (0, 3),
    )
    assert other.verdict == "confirmed" and other.adjusted_p_value == pytest.approx(2 * (other.p_value or 0))
    alone = confirmed(PAIRED, history(a=BETTER[:2], b=(), failed=["b"], withdrawn=["b"]))
    assert alone.is_over and alone.comparisons[0].verdict == "not confirmed"


def test_failed_runs_are_counted_and_their_splits_are_no_pairs() -> None:
    past = history(a=(*BETTER, 0.84), b=(*WORSE, 0.81))
    runs = tuple(run for run in past.evaluations if run.request.key not in (("a", 1), ("b", 4)))
    failure = Failure(request("a", 1), "error", "no")
    found = confirmed(PAIRED, replace(past, evaluations=runs, failures=(failure,)))
    (only,) = found.comparisons
    assert (only.num_runs, only.num_failed, only.num_pairs) == ((4, 4), (1, 0), 3)


@pytest.mark.parametrize("is_paired", [True, False])
def test_what_a_plan_can_show_is_the_noncentral_t(is_paired: bool) -> None:
    winner, rival = candidate("a", BETTER, mean=0.845, sd=0.013), candidate("b", WORSE, mean=0.8125, sd=0.01)
    planned = PlannedRival.from_selection(winner, rival, sign=1, is_paired=is_paired)
    differences = np.subtract(BETTER, WORSE)
    assert planned.lead == pytest.approx(0.0325)
    assert planned.sds == (pytest.approx((differences.std(ddof=1),) if is_paired else (0.013, 0.01)))
    error = float(np.hypot.reduce(planned.sds)) / 10**0.5
    df = 9 if is_paired else 9 * (0.013**2 + 0.01**2) ** 2 / (0.013**4 + 0.01**4)
    for share in (1.0, 0.5):
        expected = stats.nct.sf(stats.t.isf(0.025, df), df, share * 0.0325 / error)
        assert planned.power(10, share=share) == pytest.approx(expected, abs=1e-6)
    strict = stats.nct.sf(stats.t.isf(0.0125, df), df, 0.25 * 0.0325 / error)
    two = replace(PAIRED, rivals=(planned, planned))
    assert two.power(planned, 10, share=0.25) == pytest.approx(strict, abs=1e-6)


def test_too_few_runs_say_nothing_about_a_plan() -> None:
    planned = PlannedRival.from_selection(candidate("a", [0.9]), candidate("b", [0.8]), sign=1, is_paired=True)
    assert planned.lead is None and planned.power(10) is None


def verdicts(winner: str, rival: str, found: Confirmation) -> Optional[Sequence[Optional[str]]]:
    return found.verdicts_of(winner, rival)


def test_an_earlier_verdict_about_a_pair_is_found_whoever_leads_now() -> None:
    found = confirmed(replace(PAIRED, rivals=(PlannedRival("b", (None,)),)), history(a=BETTER, b=WORSE))
    assert found.comparisons[0].ordinal == 2
    assert verdicts("a", "b", found) == (None, "confirmed")
    assert verdicts("b", "a", found) == (None, "contradicted")
    assert verdicts("a", "c", found) is None


def test_a_plan_is_read_back_as_it_was() -> None:
    plan = replace(PAIRED, rivals=(PlannedRival("b", ("confirmed", None), 0.1, (0.2,)),), changed_code=("x.py",))
    assert build_record(ConfirmationPlan, asdict(plan)) == plan
