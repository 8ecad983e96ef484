"""F-measures from the rates of right and wrong answers, exact also where they are nearly 0 or 1."""

from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

import numpy as np

from fiesta_allennlp.probability.scaled_dirichlet import log_sum_exp

NO_LABEL = "?"
"""What an answer counts as that is no gold label."""

Pair = Tuple[str, str]

BINARY: Dict[str, Pair] = {"tp": ("1", "1"), "fp": ("0", "1"), "fn": ("1", "0"), "tn": ("0", "0")}
"""The kinds of a binary task as gold and predicted label."""


@dataclass(frozen=True)
class Ratio:
    """right / (right + wrong): the kinds by position, and the weight of each wrong one."""

    right: Tuple[int, ...]
    wrong: Tuple[int, ...]
    weights: Tuple[float, ...]


@dataclass(frozen=True)
class Measure:
    """The mean of some ratios of rates.

    F-beta is 1 / (beta / precision + (1 - beta) / recall), as Haffari et al. (2017, section 3) weight it; with rates,
    tp / (tp + beta fp + (1 - beta) fn). With `beta` 1/2 it is F1; F_b in the other convention has
    beta = 1 / (1 + b^2).
    """

    ratios: Tuple[Ratio, ...]

    def log_odds(self, log_rates: np.ndarray) -> np.ndarray:
        """log(measure / (1 - measure)). Shape: `(num_samples, num_kinds)` to `(num_samples,)`."""
        right, wrong = zip(*(self._log_shares(ratio, log_rates) for ratio in self.ratios), strict=True)
        return log_sum_exp(np.stack(right, axis=-1)) - log_sum_exp(np.stack(wrong, axis=-1))

    @staticmethod
    def _log_shares(ratio: Ratio, log_rates: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """log of right and of wrong, each divided by their sum. Shapes: `(num_samples,)` both."""
        right = log_sum_exp(log_rates[:, list(ratio.right)])
        wrong = log_sum_exp(log_rates[:, list(ratio.wrong)] + np.log(ratio.weights))
        both = np.logaddexp(right, wrong)
        return right - both, wrong - both


def measure_of(pairs: Sequence[Pair], *, average: str, beta: float) -> Measure:
    """The measure for rates in the order of these pairs of gold and predicted label.

    # Parameters

    average : `binary`, the F-measure of the label 1; `macro`, the mean F-measure of all gold labels.
    beta : from 0, recall, to 1, precision.
    """
    labels: List[str] = ["1"] if average == "binary" else sorted({gold for gold, _ in pairs})
    return Measure(tuple(_f_measure(pairs, label, beta) for label in labels))


def _f_measure(pairs: Sequence[Pair], label: str, beta: float) -> Ratio:
    weights: Dict[int, float] = {}
    for i, (gold, predicted) in enumerate(pairs):
        if gold != predicted and label in (gold, predicted):
            weight = beta if predicted == label else 1 - beta
            if weight > 0:
                weights[i] = weight
    return Ratio((pairs.index((label, label)),), tuple(weights), tuple(weights.values()))
