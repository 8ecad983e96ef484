"""Two candidates' scores compared: differences, effect sizes, and the tests of Reimers and Gurevych (EMNLP 2017).

All of it describes. A bandit trains longer what did well by chance, so a p-value of scores that it collected does not
have the meaning of a test with sizes fixed beforehand. What decides is the belief."""

from dataclasses import dataclass, replace
from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtri, stdtrit

from fiesta_allennlp.probability.new_data import correlated_t
from fiesta_allennlp.reports.candidates import CandidateReport, mean_interval
from fiesta_allennlp.reports.formats import LEVEL, Interval
from fiesta_allennlp.reports.sample_tests import Tested, brown_forsythe, kolmogorov_smirnov, mann_whitney, wilcoxon
from fiesta_allennlp.selection.summary import count_text, shared_splits

BOUND_LEVEL = 0.95

NUM_RESAMPLES = 1000

SEED = 20190728
"""Makes the resamples of every report the same."""


@dataclass(frozen=True)
class TestResult:
    """One test of two candidates' scores, descriptive only.

    `asks` is the question of the test, and `assumes` lists its assumptions. `p_holm` is corrected by Holm's method over
    the comparisons of the report. With too few scores, the numbers are None and `too_few` names what is missing.
    """

    name: str
    asks: str
    assumes: str
    statistic: Optional[float] = None
    p_value: Optional[float] = None
    p_holm: Optional[float] = None
    too_few: str = ""


@dataclass(frozen=True)
class Comparison:
    """The scores of `first` compared with those of `second`; every difference is first minus second.

    `paired_differences` are the differences of the mean scores on each split that both have, in the order of `first`'s
    replicates. `num_pairs` is the number of these splits, and `pair_seeds` are their seeds. With two or more pairs
    (`paired`), `mean_difference` and `interval` (95%, Student's t) are of the paired differences. Otherwise they are
    of the two samples (Welch's t).

    `cliffs_delta` is P(first > second) - P(first < second) over all pairs of scores, from -1 to 1. `vargha_delaney` is
    P(first > second) + P(equal) / 2, from 0 to 1. `cohens_d_paired` is the mean over the sd of the paired differences.

    `aso_epsilon` is the share of the squared Wasserstein distance that speaks against `first` being stochastically
    larger. `aso_epsilon_min` is its upper 95% bound (Almost Stochastic Order): below 1/2, `first` is almost
    stochastically larger. With `minimise`, lower scores are better and both are about `first` being smaller.

    `prob_new_data` is the probability that `first` is better on new data of the same kind, by the correlated t
    posterior. It is None without three shared random splits of a known share of the data.
    """

    first: str
    second: str
    minimise: bool = False
    paired: bool = False
    paired_differences: Tuple[float, ...] = ()
    pair_seeds: Tuple[int, ...] = ()
    mean_difference: Optional[float] = None
    interval: Optional[Interval] = None
    tests: Tuple[TestResult, ...] = ()
    cliffs_delta: Optional[float] = None
    vargha_delaney: Optional[float] = None
    cohens_d_paired: Optional[float] = None
    aso_epsilon: Optional[float] = None
    aso_epsilon_min: Optional[float] = None
    prob_new_data: Optional[float] = None

    @property
    def num_pairs(self) -> int:
        return len(self.paired_differences)

    @property
    def num_ahead(self) -> int:
        """The number of shared splits on which `first` is better."""
        return sum((difference < 0) if self.minimise else (difference > 0) for difference in self.paired_differences)


def stochastic_order(first: np.ndarray, second: np.ndarray) -> Optional[Tuple[float, float]]:
    """Return epsilon and its upper bound by Almost Stochastic Order, of samples of shapes `(n,)` and `(m,)`.

    With the empirical quantile functions F^-1 of `first` and G^-1 of `second`::

        epsilon = int (G^-1 - F^-1)_+^2 dt / int (F^-1 - G^-1)^2 dt

    which is exact here, for both are steps. epsilon_min = epsilon + z(.95) s, cut to [0, 1], where s is the standard
    deviation of epsilon over bootstrap resamples of both samples. That is the bound of Dror et al. (2019), section 4,
    with the resamples as large as the samples. None where the samples are equal, so that nothing can be told.
    """
    epsilon = _violations(first[None], second[None])[0]
    if np.isnan(epsilon):
        return None
    rng = np.random.default_rng(SEED)
    resampled = _violations(*(rng.choice(x, size=(NUM_RESAMPLES, len(x))) for x in (first, second)))
    spread = np.nanstd(resampled, ddof=1) if np.isfinite(resampled).sum() > 1 else 0.0
    return float(epsilon), float(np.clip(epsilon + ndtri(BOUND_LEVEL) * spread, 0, 1))


def _violations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """epsilon of many pairs of samples, of shapes `(num_pairs, n)` and `(num_pairs, m)`; NaN where both are equal.

    Shape: `(num_pairs,)`.
    """
    first, second = np.sort(first, axis=1), np.sort(second, axis=1)
    size, other = first.shape[1], second.shape[1]
    # steps of both quantile functions, as whole numbers of 1 / (size * other)
    steps = np.union1d(np.arange(size + 1) * other, np.arange(other + 1) * size)
    begins, widths = steps[:-1], np.diff(steps)
    # Shape: (num_pairs, num_steps)
    below = second[:, begins // size] - first[:, begins // other]
    total = below**2 @ widths
    with np.errstate(invalid="ignore"):
        return (np.maximum(below, 0) ** 2 @ widths) / total


MIN_SCORES = 3
"""With fewer scores of a candidate, or fewer pairs, no test here can tell anything."""


MIN_SCORES_OF_ORDER = 5
"""For Almost Stochastic Order: resamples of fewer scores vary too little."""


KOLMOGOROV_SMIRNOV = TestResult(
    "Kolmogorov-Smirnov",
    "Do the scores come from one distribution, whatever the difference?",
    "independent scores, continuous; does not say which one is better",
)


BROWN_FORSYTHE = TestResult(
    "Brown-Forsythe",
    "Do the scores spread equally, whatever their means?",
    "independent scores; robust to scores that are not normal, as it uses distances to the median",
)


MANN_WHITNEY = TestResult(
    "Mann-Whitney U",
    "Is a score of one as often above one of the other as below?",
    "independent scores; a test of means only where the distributions have one shape",
)


WILCOXON = TestResult(
    "Wilcoxon signed-rank",
    "On shared splits, are the differences centred at zero?",
    "independent differences with a symmetric distribution; pairs on splits that both have",
)


def compare(
    first: CandidateReport, second: CandidateReport, *, minimise: bool = False, test_share: Optional[float] = None
) -> Comparison:
    """`first` against `second`, without Holm's correction. Where there are too few scores, the numbers are None.

    Args:
        minimise: lower scores are better, which the stochastic order and `prob_new_data` depend on.
        test_share: the share of the data that a random split scores on; None where it is not known.
    """
    x, y = np.array(first.scores), np.array(second.scores)
    seeds, differences = shared_splits((first.split_seeds, first.scores), (second.split_seeds, second.scores))
    paired = len(differences) > 1
    sign = -1 if minimise else 1
    order = stochastic_order(sign * x, sign * y) if min(len(x), len(y)) >= MIN_SCORES_OF_ORDER else None
    superiority = _vargha_delaney(x, y)
    return Comparison(
        first=first.name,
        second=second.name,
        minimise=minimise,
        paired=paired,
        paired_differences=tuple(differences.tolist()),
        pair_seeds=seeds,
        mean_difference=_mean_difference(x, y, differences if paired else None),
        interval=mean_interval(differences) if paired else welch_interval(x, y),
        tests=_tests(x, y, differences),
        cliffs_delta=None if superiority is None else 2 * superiority - 1,
        vargha_delaney=superiority,
        cohens_d_paired=_cohens_d(differences),
        aso_epsilon=None if order is None else order[0],
        aso_epsilon_min=None if order is None else order[1],
        prob_new_data=_prob_new_data(sign * differences, test_share),
    )


def _prob_new_data(differences: np.ndarray, test_share: Optional[float]) -> Optional[float]:
    if test_share is None or len(differences) < MIN_SCORES:
        return None
    return correlated_t(differences, test_share).prob_above_0()


def _mean_difference(x: np.ndarray, y: np.ndarray, differences: Optional[np.ndarray]) -> Optional[float]:
    if differences is not None:
        return float(np.mean(differences))
    return float(np.mean(x) - np.mean(y)) if len(x) and len(y) else None


def welch_interval(x: np.ndarray, y: np.ndarray) -> Optional[Interval]:
    """Compute the 95% interval of the difference of two means by Welch's t, from samples of shapes `(n,)` and `(m,)`.

    None where one of them has fewer than 3 scores.
    """
    if min(len(x), len(y)) < MIN_SCORES:
        return None
    of_x, of_y = np.var(x, ddof=1) / len(x), np.var(y, ddof=1) / len(y)
    difference, variance = float(np.mean(x) - np.mean(y)), of_x + of_y
    if variance == 0:
        return difference, difference
    df = variance**2 / (of_x**2 / (len(x) - 1) + of_y**2 / (len(y) - 1))
    half = float(stdtrit(df, (1 + LEVEL) / 2) * np.sqrt(variance))
    return difference - half, difference + half


def _vargha_delaney(x: np.ndarray, y: np.ndarray) -> Optional[float]:
    if not len(x) or not len(y):
        return None
    ordered = np.sort(y)
    counts = np.searchsorted(ordered, x, side="left") + np.searchsorted(ordered, x, side="right")
    return float(counts.sum() / (2 * len(x) * len(y)))


def _cohens_d(differences: np.ndarray) -> Optional[float]:
    spread = np.std(differences, ddof=1) if len(differences) > 1 else 0.0
    return float(np.mean(differences) / spread) if spread > 0 else None


def _tests(x: np.ndarray, y: np.ndarray, differences: np.ndarray) -> Tuple[TestResult, ...]:
    sizes = f"{len(x)} and {len(y)} scores"
    samples = (
        (KOLMOGOROV_SMIRNOV, lambda: kolmogorov_smirnov(x, y)),
        (BROWN_FORSYTHE, lambda: brown_forsythe(x, y)),
        (MANN_WHITNEY, lambda: mann_whitney(x, y)),
    )
    results = [_tested(test, min(len(x), len(y)), sizes, call) for test, call in samples]
    unequal = int(np.count_nonzero(differences))  # equal scores tell this test nothing
    pairs = f"{count_text(unequal, 'shared split')} with a difference"
    results.append(_tested(WILCOXON, unequal, pairs, lambda: wilcoxon(differences)))
    return tuple(results)


def _tested(test: TestResult, size: int, sizes: str, call: Callable[[], Tested]) -> TestResult:
    if size < MIN_SCORES:
        return replace(test, too_few=f"too few: {sizes}, but the test needs {MIN_SCORES}")
    with np.errstate(all="ignore"):
        result = call()
    if not np.isfinite(result).all():
        return replace(test, too_few=f"cannot be computed: the {sizes} do not differ among themselves")
    return replace(test, statistic=result.statistic, p_value=result.p_value)


def with_holm(comparisons: Sequence[Comparison]) -> Tuple[Comparison, ...]:
    """Return the comparisons with p-values corrected for their number, test by test."""
    corrected: List[List[TestResult]] = [[] for _ in comparisons]
    for column in zip(*(comparison.tests for comparison in comparisons), strict=True):
        known = [test.p_value for test in column if test.p_value is not None]
        adjusted = iter(holm(np.array(known)).tolist())
        for row, test in zip(corrected, column, strict=True):
            row.append(test if test.p_value is None else replace(test, p_holm=next(adjusted)))
    return tuple(replace(c, tests=tuple(tests)) for c, tests in zip(comparisons, corrected, strict=True))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down correction: the k-th smallest of m times m - k + 1, never below a smaller one's, at most 1.

    Shape: `(num_tests,)`, as given.
    """
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1)
    return adjusted
