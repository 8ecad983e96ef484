"""The scores of two candidates compared, which describes them. What decides is the posterior."""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np

from fiesta_allennlp.choosing.t_tests import (
    INTERVAL_LEVEL,
    MIN_NUM_SCORES,
    Interval,
    TTest,
    compute_mean_interval,
    differences_on_shared_splits,
)
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates, and `num_pairs` is their number. With two or more pairs (`paired`), `mean_difference` and `interval`
    (95%, Student's t) are of the paired differences. Otherwise they are of the two samples (Welch's t).

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1.

    With `minimise`, lower scores are better.
    """

    first: str
    second: str
    minimise: bool = False
    paired_differences: Tuple[float, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    cliffs_delta: Optional[float] = None

    @property
    def num_pairs(self) -> int:
        return len(self.paired_differences)

    @property
    def paired(self) -> bool:
        return self.num_pairs > 1

    @property
    def num_ahead(self) -> int:
        """The number of shared splits on which `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)


def compare_scores(first: CandidateResult, second: CandidateResult, *, minimise: bool = False) -> Comparison:
    """Compare two candidates."""
    first_scores, second_scores = np.array(first.scores), np.array(second.scores)
    differences = differences_on_shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    is_paired, have_scores = len(differences) > 1, bool(first.scores and second.scores)
    unpaired_difference = float(np.mean(first_scores) - np.mean(second_scores)) if have_scores else None
    return Comparison(
        first=first.name,
        second=second.name,
        minimise=minimise,
        paired_differences=tuple(differences.tolist()),
        mean_difference=float(np.mean(differences)) if is_paired else unpaired_difference,
        interval=compute_mean_interval(differences)
        if is_paired
        else compute_welch_interval(first_scores, second_scores),
        cliffs_delta=float(np.sign(first_scores[:, None] - second_scores).mean()) if have_scores else None,
    )


def compute_welch_interval(first_scores: np.ndarray, second_scores: np.ndarray) -> Optional[Interval]:
    """Compute Welch's 95% interval of the difference of two means; None where one has fewer than 3 scores."""
    if min(len(first_scores), len(second_scores)) < MIN_NUM_SCORES:
        return None
    return TTest.welch(first_scores, second_scores).interval(INTERVAL_LEVEL)
