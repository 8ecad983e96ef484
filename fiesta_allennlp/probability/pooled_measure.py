"""A metric over all items together, as the mean of pseudo-scores of the single documents."""

from dataclasses import dataclass
from functools import cached_property
from typing import List, Sequence

import numpy as np
from scipy.special import stdtrit

ITEM = 2.0
"""What one item adds to the numerator and to the denominator of a ratio, if its answer is right."""


@dataclass(frozen=True, eq=False)
class PseudoScores:
    """The pseudo-scores of every system minus `centre`, the metric of all systems together.

    `scores` has an array for each system, shape `(num_documents,)`; their number of documents may differ. `unseen` is
    the squared deviation that one unseen item of each label adds to the scores of a system, shape `(num_systems,)`.
    """

    centre: float
    scores: List[np.ndarray]
    unseen: np.ndarray

    @cached_property
    def unit(self) -> float:
        """The size of the largest deviation, above 0."""
        return max(float(np.sqrt(self.unseen.max())), *(float(np.abs(scores).max()) for scores in self.scores))

    def interval(self, level: float) -> np.ndarray:
        """Compute the interval of each system's metric by the t distribution of its own pseudo-scores, which must be
        two or more. Shape: `(num_systems, 2)`.

        Args:
            level: probability of the interval, such as 0.95.
        """
        sizes = np.array([len(scores) for scores in self.scores])
        squares = np.array([((scores - scores.mean()) ** 2).sum() for scores in self.scores]) + self.unseen
        reach = stdtrit(sizes - 1, (1 + level) / 2) * np.sqrt(squares / (sizes * (sizes - 1)))
        middle = self.centre + np.array([scores.mean() for scores in self.scores])
        return np.clip(np.stack([middle - reach, middle + reach], axis=1), 0, 1)


def pseudo_scores(numerators: Sequence[np.ndarray], denominators: Sequence[np.ndarray]) -> PseudoScores:
    """Compute pseudo-scores whose mean is the metric of a system, a mean of ratios of sums over its documents::

        M_i = mean_g (sum_d A_ig(d) / sum_d B_ig(d))

    For any number F, A / B - F = (A - F B) / B. With F_g the ratio of all systems together and n_i documents, the
    pseudo-score of a document is therefore::

        psi_i(d) = mean_g [F_g + n_i (A_ig(d) - F_g B_ig(d)) / (sum_d B_ig(d) + 2)]

    The 2 stands for one more item of each label, which a system answers as all systems together do. The mean of the
    pseudo-scores is exactly the metric with this item. Its noise, as of a right or wrong answer to one item, is
    `unseen`::

        sum_g (2 n_i / (G (sum_d B_ig(d) + 2)))^2 F_g (1 - F_g)

    With the F_g of the system itself, as in an influence function or the delta method, the residuals of a label would
    add up to 0 for each system. A label that occurs in one document would then seem to have no noise.

    Args:
        numerators: A_ig(d) of each system, `ITEM` for a right answer. Shape of each: `(num_documents, num_labels)`.
        denominators: B_ig(d), in the same shapes.
    """
    # Shape: (num_systems, num_labels)
    right, total = (np.array([values.sum(axis=0) for values in systems]) for systems in (numerators, denominators))
    pooled_ratio = (right.sum() + ITEM / 2) / (total.sum() + ITEM)
    # Shape: (num_labels,)
    common = (right.sum(axis=0) + ITEM * pooled_ratio) / (total.sum(axis=0) + ITEM)
    sizes = np.array([[len(values)] for values in numerators])
    weights = sizes / (total + ITEM) / len(common)
    scores = [(a - common * b) @ weight for a, b, weight in zip(numerators, denominators, weights, strict=True)]
    unseen = ((ITEM * weights) ** 2 * common * (1 - common)).sum(axis=1)
    return PseudoScores(float(common.mean()), scores, unseen)
