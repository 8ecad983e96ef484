"""The confirmation of a selection: a number of fresh runs that is fixed beforehand, and what they say.

The fresh runs choose nothing and stop at nothing, so the textbook tests and intervals hold for them. They do not hold
for the runs of the selection, whose scores decided who leads and when it stopped.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, FrozenSet, List, Literal, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.records import History
from fiesta_allennlp.probability.student_t import correlated_t
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.t_tests import (
    INTERVAL_LEVEL,
    MIN_NUM_SCORES,
    Interval,
    TTest,
    differences_on_shared_splits,
    holm,
    run_to_run_sd,
    sample_sd,
    t_test_power,
    welch_df,
)
from fiesta_allennlp.version import __version__

LEVEL = 0.025
"""The largest one-sided p-value, adjusted for the number of rivals, with which a difference is confirmed."""

FORMAT = 1
"""The number of the format of `confirmation.json`, raised where a key is renamed or removed."""

Verdict = Literal["confirmed", "not confirmed", "contradicted"]
"""Whether fresh runs confirm that the winner is better than a rival, or that the rival is better."""


@dataclass(frozen=True)
class PlannedRival:
    """A rival of the winner, with what the selection saw of the two.

    `earlier` are the verdicts of earlier confirmations of this pair, in order, each None if it was not finished. `lead`
    is by how much the winner's mean was better, None if too few runs tell. `sds` are the sd of the differences on
    shared splits, or the sds of the winner and the rival.
    """

    name: str
    earlier: Tuple[Optional[Verdict], ...] = ()
    lead: Optional[float] = None
    sds: Tuple[float, ...] = ()

    @classmethod
    def from_selection(
        cls, winner: CandidateResult, rival: CandidateResult, *, sign: int, is_paired: bool, **further_fields: Any
    ) -> "PlannedRival":
        """Return a rival with what the scores of a selection say."""
        differences = _differences(winner, rival) if is_paired else np.array([])
        if len(differences) >= MIN_NUM_SCORES:
            sd = float(np.std(differences, ddof=1))
            return cls(rival.name, lead=sign * float(np.mean(differences)), sds=(sd,), **further_fields)
        if winner.sd is None or rival.sd is None:
            return cls(rival.name, **further_fields)
        lead = sign * float(np.mean(winner.scores) - np.mean(rival.scores))
        return cls(rival.name, lead=lead, sds=(winner.sd, rival.sd), **further_fields)

    @property
    def ordinal(self) -> int:
        """1 for the first confirmation of this pair."""
        return 1 + len(self.earlier)

    def power(self, num_runs: int, *, share: float = 1.0, num_rivals: int = 1) -> Optional[float]:
        """Return the probability that `num_runs` of each confirm a true difference of this share of the lead. With
        several rivals, it is that of the strictest step of Holm's method. None if the lead is unknown."""
        if self.lead is None:
            return None
        errors = [sd / num_runs**0.5 for sd in self.sds]
        df = num_runs - 1.0 if len(errors) == 1 else welch_df(errors, [num_runs] * len(errors))
        return t_test_power(
            share * self.lead, standard_error=float(np.hypot.reduce(errors)), df=df, level=LEVEL / num_rivals
        )


@dataclass(frozen=True)
class ConfirmationPlan:
    """What is fixed before the first fresh run.

    `was_decided` says whether the selection named the `winner`, or whether it only led. `metric` has a minus if it is
    minimised. With `is_paired`, the candidates share random splits, and `test_share` is the share of the data in a test
    set. `selection_seed` is the master seed of the selection. The code in `changed_code` has changed since its runs.
    """

    winner: str
    rivals: Tuple[PlannedRival, ...]
    num_runs: int
    metric: str
    is_paired: bool
    was_decided: bool
    selection_seed: str
    test_share: Optional[float] = None
    changed_code: Tuple[str, ...] = ()

    @property
    def names(self) -> Tuple[str, ...]:
        return (self.winner, *(rival.name for rival in self.rivals))

    @property
    def pairs(self) -> FrozenSet[FrozenSet[str]]:
        """The pairs of names that are compared, whoever is ahead."""
        return frozenset(frozenset({self.winner, rival.name}) for rival in self.rivals)

    def power(self, rival: PlannedRival, num_runs: int, *, share: float = 1.0) -> Optional[float]:
        return rival.power(num_runs, share=share, num_rivals=len(self.rivals))


@dataclass(frozen=True)
class BegunConfirmation:
    """The record in a selection that a confirmation with this plan and master seed began, which outlives its directory.
    `began` is the time in UTC."""

    plan: ConfirmationPlan
    seed: str
    began: str


@dataclass(frozen=True)
class FreshRuns:
    """The fresh runs of one candidate. `num_failed` of them ended without a score, and `is_complete` says whether it
    has as many scores as planned."""

    name: str
    num_finished: int
    num_failed: int
    mean: Optional[float]
    sd: Optional[float]
    is_complete: bool


@dataclass(frozen=True)
class FreshComparison:
    """The winner compared with one rival on fresh runs.

    Attributes:
        ordinal: 1 for the first confirmation of this pair, 2 for the second.
        num_runs: the scores of both, and `num_failed` their runs without a score.
        num_pairs: the shared splits of a paired t test; 0 for Welch's test, which is used where splits are not shared,
            or failed runs left fewer than three pairs.
        difference: winner minus rival. `interval` is its interval at 1 - 0.05 / k for k rivals: by Bonferroni's
            method, the k intervals together have 95%. A confirmed one may contain 0, because Holm's method is sharper.
        p_value: one-sided, for a better winner; `adjusted_p_value` by Holm's method.
        adjusted_p_value_of_rival: the same for a better rival.
        sd: the run-to-run sd: that of the paired differences divided by the square root of 2, or the root mean square
            of the two candidates' sds.
        lead_in_sds: by how many of these sds the winner is better.
        prob_new_data: the probability that the winner is better on new data, by the correlated t posterior. None unless
            the test is paired and the sizes of the sets are known.

    All numbers but counts are None if a candidate has fewer scores than planned.
    """

    rival: str
    ordinal: int
    verdict: Verdict
    num_runs: Tuple[int, int]
    num_failed: Tuple[int, int]
    num_pairs: int = 0
    difference: Optional[float] = None
    interval: Optional[Interval] = None
    p_value: Optional[float] = None
    adjusted_p_value: Optional[float] = None
    adjusted_p_value_of_rival: Optional[float] = None
    sd: Optional[float] = None
    lead_in_sds: Optional[float] = None
    prob_new_data: Optional[float] = None


@dataclass(frozen=True)
class Confirmation:
    """A confirmation of a selection. `comparisons` has an entry for each rival once all runs have ended, and before
    that none, so that nobody stops at a look that pleases. `running` says whether it was at work when it was read."""

    directory: str
    seed: str
    plan: ConfirmationPlan
    candidates: Tuple[FreshRuns, ...]
    comparisons: Tuple[FreshComparison, ...]
    running: bool = False

    @classmethod
    def from_history(cls, plan: ConfirmationPlan, history: History, *, directory: str, seed: str) -> "Confirmation":
        runs = tuple(_count_runs(history, name, plan.num_runs) for name in plan.names)
        incomplete = [entry.name for entry in runs if not entry.is_complete and entry.name in history.active]
        is_over = not incomplete or len(history.active) < 2
        comparisons = _compare(plan, history, runs) if is_over else ()
        return cls(directory, seed, plan, runs, comparisons)

    @property
    def is_over(self) -> bool:
        """True once no further run follows."""
        return bool(self.comparisons)

    @property
    def verdict(self) -> Optional[Verdict]:
        """The verdict about all rivals together: confirmed against each of them, or contradicted by one. None until
        all runs have ended."""
        verdicts = {comparison.verdict for comparison in self.comparisons}
        if "contradicted" in verdicts:
            return "contradicted"
        return next(iter(verdicts), None) if len(verdicts) < 2 else "not confirmed"

    def verdicts_of(self, winner: str, rival: str) -> Optional[Tuple[Optional[Verdict], ...]]:
        """Return the verdicts about a pair, its earlier ones first, each as if `winner` had been the winner. None if
        this confirmation does not compare them."""
        for planned in self.plan.rivals:
            if {winner, rival} == {self.plan.winner, planned.name}:
                own = next((c.verdict for c in self.comparisons if c.rival == planned.name), None)
                verdicts = (*planned.earlier, own)
                return verdicts if winner == self.plan.winner else tuple(map(_turn_round, verdicts))
        return None

    @property
    def num_finished(self) -> int:
        return sum(entry.num_finished for entry in self.candidates)

    @property
    def num_planned(self) -> int:
        return self.plan.num_runs * len(self.candidates)

    def content(self) -> Dict[str, Any]:
        """Return the content of `confirmation.json`."""
        return {"format": FORMAT, "version": __version__, "is_over": self.is_over, **asdict(self)}


def _turn_round(verdict: Optional[Verdict]) -> Optional[Verdict]:
    """Return the verdict as if the rival had been the winner."""
    opposites: Dict[Optional[Verdict], Verdict] = {"confirmed": "contradicted", "contradicted": "confirmed"}
    return opposites.get(verdict, verdict)


def _count_runs(history: History, name: str, num_planned: int) -> FreshRuns:
    scores = history.sign * history.scores(name)
    ended = {run.request for run in history.evaluations_of(name)} | set(history.pending)
    failed = {failure.request for failure in history.failures if failure.request.candidate == name} - ended
    mean = float(np.mean(scores)) if len(scores) else None
    return FreshRuns(name, len(scores), len(failed), mean, sample_sd(scores), len(scores) >= num_planned)


def _compare(plan: ConfirmationPlan, history: History, runs: Sequence[FreshRuns]) -> Tuple[FreshComparison, ...]:
    sign = Metric.parse(plan.metric).sign
    winner, *rivals = runs
    comparisons: List[FreshComparison] = []
    for planned, entry in zip(plan.rivals, rivals, strict=True):
        comparison = FreshComparison(
            planned.name,
            planned.ordinal,
            "not confirmed",
            (winner.num_finished, entry.num_finished),
            (winner.num_failed, entry.num_failed),
        )
        is_complete = winner.is_complete and entry.is_complete
        comparisons.append(_with_numbers(comparison, plan, history, sign) if is_complete else comparison)
    return _with_verdicts(comparisons)


def _with_numbers(comparison: FreshComparison, plan: ConfirmationPlan, history: History, sign: int) -> FreshComparison:
    """Return the comparison with the numbers of its own test, except those that depend on the number of rivals."""
    names = (plan.winner, comparison.rival)
    scores, splits = ([read(name) for name in names] for read in (history.scores, history.split_seeds))
    differences = differences_on_shared_splits(*zip(splits, scores, strict=True)) if plan.is_paired else np.array([])
    if len(differences) < MIN_NUM_SCORES:  # failed runs leave the other one of their split alone
        differences = np.array([])
    is_paired = bool(len(differences))
    if not is_paired and min(map(len, scores)) < MIN_NUM_SCORES:
        return comparison
    test = TTest.paired(differences) if is_paired else TTest.welch(*scores)
    sd = run_to_run_sd(differences, scores)
    prob_new_data = None
    if is_paired and plan.test_share is not None:
        prob_new_data = correlated_t(sign * differences, plan.test_share).prob_above_0()
    return replace(
        comparison,
        num_pairs=len(differences),
        difference=test.difference,
        interval=test.interval(1 - (1 - INTERVAL_LEVEL) / len(plan.rivals)),
        p_value=test.p_value(sign),
        adjusted_p_value_of_rival=test.p_value(-sign),
        sd=sd,
        lead_in_sds=sign * test.difference / sd if sd else None,
        prob_new_data=prob_new_data,
    )


def _with_verdicts(comparisons: Sequence[FreshComparison]) -> Tuple[FreshComparison, ...]:
    """Adjust the p-values of all comparisons together. One without a test counts as a rival too."""

    def adjust(name: str) -> List[float]:
        values = (getattr(comparison, name) for comparison in comparisons)
        return holm([1.0 if value is None else value for value in values])

    adjusted = zip(comparisons, adjust("p_value"), adjust("adjusted_p_value_of_rival"), strict=True)
    return tuple(
        comparison if comparison.p_value is None else _with_verdict(comparison, *p_values)
        for comparison, *p_values in adjusted
    )


def _with_verdict(comparison: FreshComparison, p_value: float, p_value_of_rival: float) -> FreshComparison:
    verdict: Verdict = "not confirmed"
    if p_value <= LEVEL:
        verdict = "confirmed"
    elif p_value_of_rival <= LEVEL:
        verdict = "contradicted"
    return replace(comparison, verdict=verdict, adjusted_p_value=p_value, adjusted_p_value_of_rival=p_value_of_rival)


def _differences(first: CandidateResult, second: CandidateResult) -> np.ndarray:
    return differences_on_shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
