"""Two candidates' scores compared: differences and Cliff's delta, which describe. What decides is the belief.

There are no tests. A bandit runs more often what did well by chance, so a p-value of the scores that it collected does
not have the meaning of a test with sizes fixed beforehand."""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.probability.new_data import correlated_t
from fiesta_allennlp.reports.candidates import MIN_SCORES, CandidateReport, mean_interval
from fiesta_allennlp.reports.formats import LEVEL, Interval
from fiesta_allennlp.selection.summary import differences_on_shared_splits


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates, and `num_pairs` is their number. With two or more pairs (`paired`), `mean_difference` and `interval`
    (95%, Student's t) are of the paired differences. Otherwise they are of the two samples (Welch's t).

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1.

    `prob_new_data` is the probability that `first` is better on new data of the same kind, by the correlated t
    posterior. It is None without three shared random splits of a known share of the data. With `minimise`, lower scores
    are better.
    """

    first: str
    second: str
    minimise: bool = False
    paired_differences: Tuple[float, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    cliffs_delta: Optional[float] = None
    prob_new_data: Optional[float] = None

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


def compare(
    first: CandidateReport, second: CandidateReport, *, minimise: bool = False, test_share: Optional[float] = None
) -> Comparison:
    """Compare two candidates. `test_share` is the share of the data that a random split tests on."""
    x, y = np.array(first.scores), np.array(second.scores)
    differences = differences_on_shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    paired, has_both = len(differences) > 1, bool(first.scores and second.scores)
    unpaired = float(np.mean(x) - np.mean(y)) if has_both else None
    return Comparison(
        first=first.name,
        second=second.name,
        minimise=minimise,
        paired_differences=tuple(differences.tolist()),
        mean_difference=float(np.mean(differences)) if paired else unpaired,
        interval=mean_interval(differences) if paired else welch_interval(x, y),
        cliffs_delta=float(np.sign(x[:, None] - y).mean()) if has_both else None,
        prob_new_data=(
            correlated_t(-differences if minimise else differences, test_share).prob_above_0()
            if test_share is not None and len(differences) >= MIN_SCORES
            else None
        ),
    )


def welch_interval(x: np.ndarray, y: np.ndarray) -> Optional[Interval]:
    """Compute Welch's 95% interval of the difference of two means; None where one has fewer than 3 scores."""
    if min(len(x), len(y)) < MIN_SCORES:
        return None
    variance_of_mean_x, variance_of_mean_y = np.var(x, ddof=1) / len(x), np.var(y, ddof=1) / len(y)
    difference, variance = float(np.mean(x) - np.mean(y)), variance_of_mean_x + variance_of_mean_y
    if variance == 0:
        return difference, difference
    df = variance**2 / (variance_of_mean_x**2 / (len(x) - 1) + variance_of_mean_y**2 / (len(y) - 1))
    half_width = float(stdtrit(df, (1 + LEVEL) / 2) * np.sqrt(variance))
    return difference - half_width, difference + half_width
