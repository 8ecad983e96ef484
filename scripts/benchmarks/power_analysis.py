"""How many documents a test of a fixed size would need: the power analysis of Haffari et al. (2017), section 4.1.

The effect must be known beforehand: the effect that a selection observed is too large, because it sampled adaptively.
"""

import math
from bisect import bisect_left
from typing import Optional

import numpy as np
from scipy.special import nctdtr, ndtri, stdtrit

ERROR = 0.05
POWER = 0.8
"""The paper's: 5% wrong winners between two equal systems, and 80% of real differences found."""

LEAST = 2
"""A standard deviation needs two documents."""


def effect_apart(best: np.ndarray, second: np.ndarray) -> float:
    """(mu_1 - mu_2) / sqrt(sigma_1^2 + sigma_2^2) from scores on documents that are not shared, as for synthetic data.

    Shapes: `(num_documents,)` each, at least 2.
    """
    return float((best.mean() - second.mean()) / math.sqrt(best.var(ddof=1) + second.var(ddof=1)))


def num_documents(effect: float, *, error: float = ERROR, power: float = POWER) -> Optional[int]:
    """The least number of documents at which a one-sided paired t-test at level `error` finds `effect` with
    probability `power`. `None` where the effect is not above 0.

    It is `power.t.test(delta = effect, sd = 1, type = "paired", alternative = "one.sided")` in R, rounded up.
    """
    if not effect > 0:
        return None
    # As if the standard deviation were known, which takes fewer documents than the test does.
    guess = ((ndtri(1 - error) + ndtri(power)) / effect) ** 2
    low = high = max(LEAST, math.floor(guess))
    while power_of_test(high, effect, error) < power:
        high *= 2
    return bisect_left(range(high), power, lo=low, key=lambda number: power_of_test(number, effect, error))


def power_of_test(num_documents: int, effect: float, error: float) -> float:
    """The probability that a one-sided paired t-test at level `error` rejects, by the noncentral t distribution."""
    df = num_documents - 1
    return 1 - float(nctdtr(df, effect * math.sqrt(num_documents), stdtrit(df, 1 - error)))
