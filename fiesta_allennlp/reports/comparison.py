"""Two candidates' scores compared: differences, effect sizes, and Wilcoxon's signed-rank test.

All of it describes. A bandit trains longer what did well by chance, so a p-value of scores that it collected does not
have the meaning of a test with sizes fixed beforehand. What decides is the belief."""

from dataclasses import dataclass, replace
from typing import Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtr, stdtrit

from fiesta_allennlp.probability.new_data import correlated_t
from fiesta_allennlp.reports.candidates import MIN_SCORES, CandidateReport, mean_interval, ranks
from fiesta_allennlp.reports.formats import LEVEL, Interval
from fiesta_allennlp.selection.summary import shared_splits

MOST_FOR_EXACT = 50
"""The exact distribution of a sum of signed ranks is computed up to this number of differences."""


@dataclass(frozen=True)
class SignedRankTest:
    """Wilcoxon's signed-rank test, two-sided. `p_holm` is corrected by Holm's method over a report's comparisons."""

    statistic: float
    p_value: float
    p_holm: Optional[float] = None


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates. `num_pairs` is the number of these splits, and `pair_seeds` are their seeds. With two or more pairs
    (`paired`), `mean_difference` and `interval` (95%, Student's t) are of the paired differences. Otherwise they are
    of the two samples (Welch's t).

    `wilcoxon` tests whether the paired differences are centred at zero, and only describes them. It is None without
    three shared splits on which the two differ. `cliffs_delta` is P(first > second) - P(first < second) over all pairs
    of scores, from -1 to 1. `cohens_d_paired` is the mean over the sd of the paired differences.

    `prob_new_data` is the probability that `first` is better on new data of the same kind, by the correlated t
    posterior. It is None without three shared random splits of a known share of the data. With `minimise`, lower scores
    are better.
    """

    first: str
    second: str
    minimise: bool = False
    paired_differences: Tuple[float, ...] = ()
    pair_seeds: Tuple[int, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    wilcoxon: Optional[SignedRankTest] = None
    cliffs_delta: Optional[float] = None
    cohens_d_paired: Optional[float] = None
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
    """Compare two candidates, without Holm's correction. `test_share` is the share of the data that a random split
    tests on."""
    x, y = np.array(first.scores), np.array(second.scores)
    seeds, differences = shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    paired, has_both = len(differences) > 1, bool(first.scores and second.scores)
    unpaired = float(np.mean(x) - np.mean(y)) if has_both else None
    sd = np.std(differences, ddof=1) if paired else 0.0
    return Comparison(
        first=first.name,
        second=second.name,
        minimise=minimise,
        paired_differences=tuple(differences.tolist()),
        pair_seeds=seeds,
        mean_difference=float(np.mean(differences)) if paired else unpaired,
        interval=mean_interval(differences) if paired else welch_interval(x, y),
        wilcoxon=wilcoxon(differences),
        cliffs_delta=float(np.sign(x[:, None] - y).mean()) if has_both else None,
        cohens_d_paired=float(np.mean(differences) / sd) if sd > 0 else None,
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
    of_x, of_y = np.var(x, ddof=1) / len(x), np.var(y, ddof=1) / len(y)
    difference, variance = float(np.mean(x) - np.mean(y)), of_x + of_y
    if variance == 0:
        return difference, difference
    df = variance**2 / (of_x**2 / (len(x) - 1) + of_y**2 / (len(y) - 1))
    half = float(stdtrit(df, (1 + LEVEL) / 2) * np.sqrt(variance))
    return difference - half, difference + half


def wilcoxon(differences: np.ndarray) -> Optional[SignedRankTest]:
    """Test by the sums of signed ranks, exactly for up to 50 differences; `scipy.stats` takes 0.7 s to import."""
    kept = differences[differences != 0]
    number = len(kept)
    if number < MIN_SCORES:
        return None
    ranked = ranks(np.abs(kept))
    positive = float(ranked[kept > 0].sum())
    statistic = min(positive, number * (number + 1) / 2 - positive)
    if number <= MOST_FOR_EXACT:
        shares = np.ones(1)
        for twice in np.rint(2 * ranked).astype(int):
            shares = (np.append(shares, np.zeros(twice)) + np.append(np.zeros(twice), shares)) / 2
        return SignedRankTest(statistic, min(1.0, 2 * float(shares[: round(2 * statistic) + 1].sum())))
    _, ties = np.unique(ranked, return_counts=True)
    variance = (number * (number + 1) * (2 * number + 1) - (ties**3 - ties).sum() / 2) / 24
    distance = number * (number + 1) / 4 - statistic
    return SignedRankTest(statistic, min(1.0, 2 * float(ndtr(-distance / np.sqrt(variance)))))


def with_holm(comparisons: Sequence[Comparison]) -> Tuple[Comparison, ...]:
    """Return the comparisons with p-values corrected for their number."""
    adjusted = iter(holm(np.array([c.wilcoxon.p_value for c in comparisons if c.wilcoxon is not None])).tolist())
    return tuple(
        c if c.wilcoxon is None else replace(c, wilcoxon=replace(c.wilcoxon, p_holm=next(adjusted)))
        for c in comparisons
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Multiply the k-th smallest of m p-values by m - k + 1, never below a smaller one's product and at most 1."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted
