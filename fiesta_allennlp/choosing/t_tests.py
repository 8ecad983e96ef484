"""Student's t for a mean and for the difference of two: test, interval, power; differences on shared splits; and tiers,
in which candidates share a letter that are not told apart by what is there."""

from dataclasses import dataclass
from string import ascii_lowercase
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import nctdtr, stdtr, stdtrit

from fiesta_allennlp.choosing.beliefs.belief import Posterior
from fiesta_allennlp.core.choice_settings import MIN_FRESH_RUNS, POWER

INTERVAL_LEVEL = 0.95
"""The probability of every interval in a result."""

CONFIRMATION_LEVEL = 0.025
"""The largest one-sided p-value, adjusted for the number of rivals, with which a difference is confirmed."""

MIN_NUM_SCORES = 3
"""With fewer scores or pairs, an interval or a rank correlation is meaningless."""

Interval = Tuple[float, float]
"""Lower and upper end."""

MAX_TIERED = 100
"""The most candidates whose pairs are all compared for tiers, which takes a tenth of a second."""

MAX_FRESH_RUNS = 500
"""The largest number of fresh runs of each candidate to propose."""

MAX_NONCENTRALITY = 35.0
"""Above it, the noncentral t of SciPy loses its accuracy, and the power is 1 for any number of runs to consider."""


@dataclass(frozen=True)
class TTest:
    """The estimated difference of two means, with the standard error and the degrees of freedom of Student's t."""

    difference: float
    standard_error: float
    df: float

    @classmethod
    def paired(cls, differences: np.ndarray) -> "TTest":
        """Test the mean of differences on shared splits, at least two. Shape: `(num_splits,)`."""
        number = len(differences)
        return cls(float(np.mean(differences)), float(np.std(differences, ddof=1)) / number**0.5, number - 1)

    @classmethod
    def welch(cls, first: np.ndarray, second: np.ndarray) -> "TTest":
        """Test the difference of the means of two samples, each of at least two scores, whose variances may differ."""
        errors = [float(np.std(scores, ddof=1)) / len(scores) ** 0.5 for scores in (first, second)]
        return cls(
            float(np.mean(first) - np.mean(second)),
            float(np.hypot(*errors)),
            welch_df(errors, [len(first), len(second)]),
        )

    def interval(self, level: float) -> Tuple[float, float]:
        """Return the two-sided confidence interval of the difference."""
        half_width = float(stdtrit(self.df, (1 + level) / 2)) * self.standard_error
        return self.difference - half_width, self.difference + half_width

    def p_value(self, sign: int = 1) -> float:
        """Return the one-sided p-value: the probability of such a difference, times `sign`, or a larger one, if the
        means are equal. Without any variance, it is 0 for a difference above 0, and otherwise 1."""
        if self.standard_error == 0:
            return float(sign * self.difference <= 0)
        return float(stdtr(self.df, -sign * self.difference / self.standard_error))


def compute_mean_interval(values: np.ndarray) -> Optional[Interval]:
    """Compute mean -+ t(.975; n - 1) s / sqrt(n) of values of shape `(n,)`, its 95% interval; None for fewer than 3."""
    return None if len(values) < MIN_NUM_SCORES else TTest.paired(values).interval(INTERVAL_LEVEL)


def sample_sd(values: np.ndarray) -> Optional[float]:
    """Compute the sd of values of shape `(n,)`, with n - 1, exactly 0 if all are equal; None for fewer than 2."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1)) if np.ptp(values) > 0 else 0.0


def welch_df(errors: Sequence[float], numbers: Sequence[int]) -> float:
    """Return the degrees of freedom by Welch and Satterthwaite, of the standard errors and sizes of two samples."""
    total = float(np.hypot(*errors))
    if total == 0:
        return float(sum(numbers) - 2)
    shares = [(error / total) ** 2 for error in errors]
    return 1 / sum(share**2 / (number - 1) for share, number in zip(shares, numbers, strict=True))


def holm(p_values: Sequence[float]) -> List[float]:
    """Return the p-values of several tests, adjusted by the method of Holm (1979), in their order."""
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * np.asarray(p_values, dtype=float)[order]), 1)
    return [float(value) for value in adjusted]


def t_test_power(difference: float, *, standard_error: float, df: float, level: float) -> float:
    """Return the probability that a one-sided t test at this level finds a true difference, by the noncentral t."""
    if standard_error == 0:
        return float(difference > 0)
    noncentrality = difference / standard_error
    if noncentrality > MAX_NONCENTRALITY:
        return 1.0
    critical = float(stdtrit(df, 1 - level))
    return float(1 - nctdtr(df, max(noncentrality, -MAX_NONCENTRALITY), critical))


def fresh_runs_power(difference: float, sds: Sequence[float], num_runs: int, *, level: float) -> float:
    """Return the probability that `num_runs` of two candidates each find a true difference of their means. `sds` are
    the sd of the differences on shared splits (a paired test), or the sds of the two (Welch's test)."""
    errors = [sd / num_runs**0.5 for sd in sds]
    df = num_runs - 1.0 if len(errors) == 1 else welch_df(errors, [num_runs] * len(errors))
    return t_test_power(difference, standard_error=float(np.hypot.reduce(errors)), df=df, level=level)


def fresh_runs_needed(difference: float, sds: Sequence[float], *, num_rivals: int = 1) -> Optional[int]:
    """Return the fewest runs of each of two candidates that confirm a true difference with probability 0.8. None
    if there is no difference, or more than `MAX_FRESH_RUNS` are needed. The arguments are those of
    `fresh_runs_power`."""
    if difference <= 0:
        return None
    level = CONFIRMATION_LEVEL / num_rivals
    numbers = range(MIN_FRESH_RUNS, MAX_FRESH_RUNS + 1)
    return next((n for n in numbers if fresh_runs_power(difference, sds, n, level=level) >= POWER), None)


def run_to_run_sd(differences: np.ndarray, scores: Sequence[np.ndarray]) -> float:
    """Return the run-to-run sd of two candidates: on one split, by the differences on shared splits, or without these
    the root mean square of their sds."""
    if len(differences):
        return float(np.std(differences, ddof=1) / np.sqrt(2))
    return float(np.hypot(*(np.std(values, ddof=1) for values in scores)) / np.sqrt(2))


def find_tiers(posterior: Optional[Posterior], names: Sequence[str], confidence: float) -> Mapping[str, str]:
    """Return the tier of each candidate; empty without a posterior, or with more than `MAX_TIERED` candidates."""
    if posterior is None or len(names) > MAX_TIERED:
        return {}
    tails = np.array([posterior.leads_of(index).tails()[0] for index in range(len(names))])
    letters = tier_letters(tell_apart(tails, 1 - confidence), -posterior.leads.difference[0])
    return dict(zip(names, letters, strict=True))


def tell_apart(tails: np.ndarray, level: float) -> np.ndarray:
    """Return which pairs of candidates are told apart, by Holm's method over all pairs (Holm, 1979).

    The p-value of a pair is 2 min(p, 1 - p), with p the probability that the second is better. Shape:
    `(num_candidates, num_candidates)`.

    Args:
        tails: in row i, the tails of the leads of candidate i. Shape of the result.
        level: 1 - confidence.
    """
    pairs = np.triu_indices(len(tails), 1)
    apart = np.zeros(tails.shape, dtype=bool)
    apart[pairs] = np.array(holm(2 * np.minimum(tails[pairs], 1 - tails[pairs]))) <= level
    return apart | apart.T


def tier_letters(apart: np.ndarray, means: np.ndarray) -> List[str]:
    """Return the letters of each candidate: two share one unless they are told apart. The best has an `a`.

    The letters are the largest groups in which no two are told apart: each pair that is splits the groups that contain
    both, and a group within another one goes (Piepho, 2004).

    Args:
        apart: see `tell_apart`.
        means: higher is better. Shape: `(num_candidates,)`.
    """
    order = np.argsort(-means, kind="stable")
    groups = [frozenset(range(len(order)))]
    for pair in np.argwhere(np.triu(apart[np.ix_(order, order)])).tolist():
        split = [group for group in groups if group.issuperset(pair)]
        groups = [group for group in groups if not group.issuperset(pair)]
        for smaller in (group - {place} for group in split for place in pair):
            if not any(smaller <= group for group in groups):
                groups.append(smaller)
    letters = [""] * len(order)
    for number, group in enumerate(sorted(map(sorted, groups))):
        for place in group:
            letters[order[place]] += f"{ascii_lowercase[number % 26]}{number // 26 or ''}"
    return letters


SplitScores = Tuple[Sequence[int], Sequence[float]]
"""Split seeds and scores of a candidate, equally long."""


def differences_on_shared_splits(first: SplitScores, second: SplitScores) -> np.ndarray:
    """Return the differences of mean scores on the splits that both candidates have, in the first one's order."""
    first_means, second_means = _means_by_split(first), _means_by_split(second)
    return np.array([first_means[seed] - second_means[seed] for seed in first_means if seed in second_means])


def _means_by_split(split_scores: SplitScores) -> Dict[int, float]:
    scores_by_split: Dict[int, List[float]] = {}
    for seed, score in zip(*split_scores, strict=True):
        scores_by_split.setdefault(seed, []).append(score)
    return {seed: float(np.mean(scores)) for seed, scores in scores_by_split.items()}
