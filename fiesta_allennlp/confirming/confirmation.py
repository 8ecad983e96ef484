"""What fresh runs say about the winner of a selection: a t-test for each rival.

The number of fresh runs is fixed beforehand, and they choose nothing, so the textbook tests and intervals hold for
them. They do not hold for the runs of the selection, whose scores decided who leads and when it stopped.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Literal, Optional, Tuple

import numpy as np

from fiesta_allennlp.choosing.t_tests import CONFIRMATION_LEVEL, INTERVAL_LEVEL, Interval, TTest, holm, run_to_run_sd
from fiesta_allennlp.core.choice_settings import SHARED
from fiesta_allennlp.selecting.results.candidate_result import SeenLead, paired_differences
from fiesta_allennlp.selecting.results.candidate_table import Printable
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.version import __version__

FORMAT = 2
"""The number of the format of `confirmation.json`, raised where a key is renamed or removed."""

Verdict = Literal["confirmed", "not confirmed", "contradicted"]
"""Whether fresh runs confirm that the winner is better than a rival, or that the rival is better."""


@dataclass(frozen=True, repr=False)
class ConfirmationPlan(Printable):
    """What a confirmation fixes before its first run, and what the selection saw of the winner and its rivals.
    `is_paired` says whether the candidates share random splits. `seconds` is the time of one run of each candidate, 0
    if it is unknown; `num_runs_before` and `seconds_before` are those of the selection."""

    winner: str
    leads: Tuple[SeenLead, ...]
    num_runs: int
    is_paired: bool
    seconds: float = 0.0
    num_runs_before: int = 0
    seconds_before: float = 0.0

    @property
    def names(self) -> Tuple[str, ...]:
        return (self.winner, *(lead.rival for lead in self.leads))

    def power(self, lead: SeenLead, num_runs: int, *, share: float = 1.0) -> Optional[float]:
        return lead.power(num_runs, share=share, num_rivals=len(self.leads))


@dataclass(frozen=True)
class FreshComparison:
    """The winner compared with one rival on fresh runs.

    Attributes:
        num_pairs: the shared splits of a paired t-test; 0 for Welch's test, which is used where splits are not shared,
            or failed runs left fewer than three pairs.
        difference: winner minus rival. `interval` is its interval at 1 - 0.05 / k for k rivals: by Bonferroni's
            method, the k intervals together have 95%. A confirmed one may contain 0, because Holm's method is sharper.
        p_value: one-sided, for a better winner, or for a better rival where that is the verdict; by Holm's method.
        lead_in_sds: by how many run-to-run sds the winner is better.

    All numbers but counts are None if a candidate has fewer scores than planned.
    """

    rival: str
    verdict: Verdict = "not confirmed"
    num_pairs: int = 0
    difference: Optional[float] = None
    interval: Optional[Interval] = None
    p_value: Optional[float] = None
    lead_in_sds: Optional[float] = None


@dataclass(frozen=True, repr=False)
class Confirmation(Printable):
    """A confirmation: the `result` of its selection with a fixed budget, whose first candidate is the winner to confirm
    and whose others are the rivals. `comparisons` has an entry for each rival once all runs have ended, and before that
    none."""

    result: Result
    num_runs: int
    comparisons: Tuple[FreshComparison, ...]

    @classmethod
    def from_result(cls, result: Result) -> "Confirmation":
        num_runs = result.strategy["budget"] // len(result.candidates)
        is_over = len(result.active) < 2 or all(c.num_evaluations >= num_runs for c in result.active)
        comparisons = compare_with_rivals(result, num_runs) if is_over else ()
        if result.questions:
            comparisons = tuple(replace(comparison, verdict="not confirmed") for comparison in comparisons)
        return cls(result, num_runs, comparisons)

    @property
    def winner(self) -> str:
        return self.result.candidates[0].name

    @property
    def is_over(self) -> bool:
        """True once no further run follows."""
        return bool(self.comparisons)

    @property
    def verdicts(self) -> Dict[str, Verdict]:
        """The verdict about each rival; empty until all runs have ended."""
        return {comparison.rival: comparison.verdict for comparison in self.comparisons}

    @property
    def verdict(self) -> Optional[Verdict]:
        """The verdict about all rivals together: confirmed against each of them, or contradicted by one. None until
        all runs have ended."""
        verdicts = set(self.verdicts.values())
        if "contradicted" in verdicts:
            return "contradicted"
        return next(iter(verdicts), None) if len(verdicts) < 2 else "not confirmed"

    def content(self) -> Dict[str, Any]:
        """Return the content of `confirmation.json`."""
        return {
            "format": FORMAT,
            "version": __version__,
            "directory": str(self.result.directory),
            "winner": self.winner,
            "num_runs": self.num_runs,
            "num_finished": self.result.num_evaluations,
            "running": self.result.running,
            "is_over": self.is_over,
            "verdict": self.verdict,
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
        }


def compare_with_rivals(result: Result, num_runs: int) -> Tuple[FreshComparison, ...]:
    """Compare the first candidate of a result with each other one. One with fewer scores than `num_runs` has no test,
    and counts as a rival too."""
    winner, *rivals = result.candidates
    sign, is_paired = result.parsed_metric.sign, result.splits == SHARED
    all_differences = [paired_differences(winner, rival, is_paired=is_paired) for rival in rivals]
    tests: List[Optional[TTest]] = []
    for rival, differences in zip(rivals, all_differences, strict=True):
        test = TTest.paired(differences) if len(differences) else None
        if min(winner.num_evaluations, rival.num_evaluations) < num_runs:
            test = None
        elif test is None:
            test = TTest.welch(np.array(winner.scores), np.array(rival.scores))
        tests.append(test)
    of_winner, of_rival = (holm([test.p_value(s) if test else 1.0 for test in tests]) for s in (sign, -sign))
    comparisons = [FreshComparison(rival.name) for rival in rivals]
    for k, test in enumerate(tests):
        if test is None:
            continue
        is_confirmed, is_contradicted = of_winner[k] <= CONFIRMATION_LEVEL, of_rival[k] <= CONFIRMATION_LEVEL
        sd = run_to_run_sd(all_differences[k], [np.array(candidate.scores) for candidate in (winner, rivals[k])])
        comparisons[k] = FreshComparison(
            rivals[k].name,
            "confirmed" if is_confirmed else "contradicted" if is_contradicted else "not confirmed",
            num_pairs=len(all_differences[k]),
            difference=test.difference,
            interval=test.interval(1 - (1 - INTERVAL_LEVEL) / len(rivals)),
            p_value=of_rival[k] if is_contradicted else of_winner[k],
            lead_in_sds=sign * test.difference / sd if sd else None,
        )
    return tuple(comparisons)
