"""A metric over all items together, as the mean of pseudo-scores of the single documents."""

from dataclasses import dataclass
from typing import List, Sequence

import numpy as np
from scipy.special import stdtrit

ITEM_WEIGHT = 2.0
"""What one item adds to the numerator and to the denominator of a ratio, if its answer is right."""


@dataclass(frozen=True, eq=False)
class PseudoScores:
    """The pseudo-scores of every system minus `centre`, the metric of all systems together.

    `scores` has an array for each system, shape `(num_documents,)`; their number of documents may differ.
    `unseen_squares` is the squared deviation that one unseen item of each label adds to the scores of a system, shape
    `(num_systems,)`.
    """

    centre: float
    scores: List[np.ndarray]
    unseen_squares: np.ndarray

    def interval(self, level: float) -> np.ndarray:
        """Compute the interval of each system's metric by the t distribution of its own pseudo-scores, which must be
        two or more. Shape: `(num_systems, 2)`.

        Args:
            level: probability of the interval, such as 0.95.
        """
        num_documents = np.array([len(scores) for scores in self.scores])
        squares = np.array([((scores - scores.mean()) ** 2).sum() for scores in self.scores]) + self.unseen_squares
        standard_errors = np.sqrt(squares / (num_documents * (num_documents - 1)))
        half_widths = stdtrit(num_documents - 1, (1 + level) / 2) * standard_errors
        metrics = self.centre + np.array([scores.mean() for scores in self.scores])
        return np.clip(np.stack([metrics - half_widths, metrics + half_widths], axis=1), 0, 1)


def pseudo_scores(numerators: Sequence[np.ndarray], denominators: Sequence[np.ndarray]) -> PseudoScores:
    """Compute pseudo-scores whose mean is the metric of a system, a mean of ratios of sums over its documents::

        M_i = mean_g (sum_d A_ig(d) / sum_d B_ig(d))

    For any number F, A / B - F = (A - F B) / B. With F_g the ratio of all systems together and n_i documents, the
    pseudo-score of a document is therefore::

        psi_i(d) = mean_g [F_g + n_i (A_ig(d) - F_g B_ig(d)) / (sum_d B_ig(d) + 2)]

    The 2 stands for one more item of each label, which a system answers as all systems together do. The mean of the
    pseudo-scores is exactly the metric with this item. Its noise, as of a right or wrong answer to one item, is
    `unseen_squares`::

        sum_g (2 n_i / (G (sum_d B_ig(d) + 2)))^2 F_g (1 - F_g)

    With the F_g of the system itself, as in an influence function or the delta method, the residuals of a label would
    add up to 0 for each system. A label that occurs in one document would then seem to have no noise: at a target of
    0.95, 13 to 24% of the systems that were named in this way were wrong. The common F_g fits only the common part, as
    in a z-test of two proportions. It costs a term (F_ig - F_g)^2 Var(B), which is on the safe side.

    Args:
        numerators: A_ig(d) of each system, `ITEM_WEIGHT` for a right answer. Shape of each: `(num_documents,
            num_labels)`.
        denominators: B_ig(d), in the same shapes.
    """
    # Shape: (num_systems, num_labels)
    numerator_sums = np.array([values.sum(axis=0) for values in numerators])
    denominator_sums = np.array([values.sum(axis=0) for values in denominators])
    overall_ratio = (numerator_sums.sum() + ITEM_WEIGHT / 2) / (denominator_sums.sum() + ITEM_WEIGHT)
    # Shape: (num_labels,)
    ratios = (numerator_sums.sum(axis=0) + ITEM_WEIGHT * overall_ratio) / (denominator_sums.sum(axis=0) + ITEM_WEIGHT)
    num_documents = np.array([[len(values)] for values in numerators])
    weights = num_documents / (denominator_sums + ITEM_WEIGHT) / len(ratios)
    scores = [(a - ratios * b) @ weight for a, b, weight in zip(numerators, denominators, weights, strict=True)]
    unseen_squares = ((ITEM_WEIGHT * weights) ** 2 * ratios * (1 - ratios)).sum(axis=1)
    return PseudoScores(float(ratios.mean()), scores, unseen_squares)
