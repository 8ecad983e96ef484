"""What it takes to claim in a paper that the winner is better than its rival: fresh runs, by the power of a t-test."""

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.t_tests import (
    CONFIRMATION_LEVEL,
    MIN_NUM_SCORES,
    differences_on_shared_splits,
    fresh_runs_power,
)
from fiesta_allennlp.core.settings.defaults import MIN_FRESH_RUNS, POWER
from fiesta_allennlp.core.texts import duration_text
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult

MAX_FRESH_RUNS = 500
"""The largest number of fresh runs of each candidate to propose."""


@dataclass(frozen=True)
class SeenLead:
    """By how much a selection saw the winner ahead of a rival, None if too few runs tell.

    `sds` are the sd of the differences on shared splits, or the sds of the winner and the rival.
    """

    rival: str
    lead: Optional[float] = None
    sds: Tuple[float, ...] = ()

    @classmethod
    def of(cls, winner: CandidateResult, rival: CandidateResult, *, sign: int, is_paired: bool) -> "SeenLead":
        differences = paired_differences(winner, rival, is_paired=is_paired)
        if len(differences):
            return cls(rival.name, sign * float(np.mean(differences)), (float(np.std(differences, ddof=1)),))
        if winner.sd is None or rival.sd is None:
            return cls(rival.name)
        return cls(rival.name, sign * float(np.mean(winner.scores) - np.mean(rival.scores)), (winner.sd, rival.sd))

    def power(self, num_runs: int, *, share: float = 1.0, num_rivals: int = 1) -> Optional[float]:
        """Return the probability that `num_runs` of each confirm a true difference of this share of the lead. With
        several rivals, it is that of the strictest step of Holm's method. None if the lead is unknown."""
        if self.lead is None:
            return None
        return fresh_runs_power(share * self.lead, self.sds, num_runs, level=CONFIRMATION_LEVEL / num_rivals)

    def num_runs_for_claim(self, *, num_rivals: int = 1) -> Optional[int]:
        """Return `fresh_runs_needed` for a difference as large as the lead; None if the lead is unknown."""
        return None if self.lead is None else fresh_runs_needed(self.lead, self.sds, num_rivals=num_rivals)


def fresh_runs_needed(difference: float, sds: Sequence[float], *, num_rivals: int = 1) -> Optional[int]:
    """Return the fewest runs of each of two candidates that confirm a true difference with probability 0.8. None
    if there is no difference, or more than `MAX_FRESH_RUNS` are needed. The arguments are those of
    `fresh_runs_power`."""
    if difference <= 0:
        return None
    level = CONFIRMATION_LEVEL / num_rivals
    numbers = range(MIN_FRESH_RUNS, MAX_FRESH_RUNS + 1)
    return next((n for n in numbers if fresh_runs_power(difference, sds, n, level=level) >= POWER), None)


def paired_differences(first: CandidateResult, second: CandidateResult, *, is_paired: bool) -> np.ndarray:
    """Return the differences on shared splits, none if there are fewer than three: failed runs leave the other one of
    their split alone."""
    differences = differences_on_shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    return differences if is_paired and len(differences) >= MIN_NUM_SCORES else np.array([])


def describe_claim(result: Any) -> List[str]:
    """State what a claim about the winner costs."""
    num_runs = result.runs_to_claim
    if num_runs is None:
        return []
    seconds = num_runs * ((result.leader.mean_seconds or 0) + (result.rival.mean_seconds or 0))
    time_text = f" ({duration_text(seconds)})" if seconds else ""
    effort = f"{num_runs} fresh runs of each{time_text}, with power {POWER:.2f} if the lead is as large as it looks"
    return [f"To write that {result.leading} is better than {result.rival.name}: {effort} (fiesta confirm)."]
