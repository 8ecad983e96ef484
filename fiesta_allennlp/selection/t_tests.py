"""Student's t for the difference of two means, where the number of runs was fixed beforehand: test, interval, power."""

from dataclasses import dataclass
from typing import List, Sequence, Tuple

import numpy as np
from scipy.special import nctdtr, stdtr, stdtrit

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


def run_to_run_sd(differences: np.ndarray, scores: Sequence[np.ndarray]) -> float:
    """Return the run-to-run sd of two candidates: on one split, by the differences on shared splits, or without these
    the root mean square of their sds."""
    if len(differences):
        return float(np.std(differences, ddof=1) / np.sqrt(2))
    return float(np.hypot(*(np.std(values, ddof=1) for values in scores)) / np.sqrt(2))
