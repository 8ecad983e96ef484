"""The probability that one candidate is better than another on new data of the same kind, from random resplits."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr


@dataclass(frozen=True)
class CorrelatedT:
    """The posterior of the mean difference on new data: a Student t with location, scale and degrees of freedom."""

    mean: float
    scale: float
    df: int

    def prob_above_0(self) -> float:
        """Return the probability that the mean difference on new data is above 0; 1/2 where all is 0."""
        if self.scale == 0:
            return float(0.5 + 0.5 * np.sign(self.mean))
        return float(stdtr(self.df, self.mean / self.scale))


def correlated_t(differences: np.ndarray, test_share: float) -> CorrelatedT:
    """Compute the correlated t posterior of paired differences over random splits of one data set.

    The splits share data, so the differences are correlated. With n differences of mean d and variance s^2 (ddof 1),
    and r the share of the data that a split tests on (Nadeau and Bengio 2003; Corani and Benavoli 2015, eq. 5)::

        mu | differences ~ t(n - 1; location d, scale^2 (1 / n + r / (1 - r)) s^2)

    The correlation r is a heuristic: no unbiased estimate of the variance exists. The second term does not fall with n,
    so no number of resplits makes it certain which candidate is better on new data.

    Args:
        differences: one difference for each split. Shape: `(num_splits,)`, with at least two.
        test_share: r, above 0 and below 1.
    """
    number = len(differences)
    variance = float(np.var(differences, ddof=1)) * (1 / number + test_share / (1 - test_share))
    return CorrelatedT(float(np.mean(differences)), variance**0.5, number - 1)
