"""The posterior of an F-measure or an accuracy, from the counts of right and wrong answers in documents."""

from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
from scipy.special import expit

from fiesta_allennlp.probability.rates import RatesModel, WeightedRates, log_sum_exp

Pair = Tuple[str, str]
"""Gold and predicted label of a kind of answers."""

Draws = Tuple[np.ndarray, np.ndarray]
"""The log odds of a measure, and their weights, which sum to 1. Shapes: `(num_draws,)` both."""

AVERAGES = ("binary", "macro", "accuracy")

BINARY: Dict[str, Pair] = {"tp": ("1", "1"), "fp": ("0", "1"), "fn": ("1", "0"), "tn": ("0", "0")}
"""The kinds of a binary task as gold and predicted label."""

PRIOR = 1 / 4
"""The paper's prior has a concentration of 1 for its four kinds of answers."""

PRIOR_OF_SHARE = 1.0
"""Of right and of wrong answers, for the share that is right: all shares are equally probable."""

LIKE_ALL = 2.0
"""With `macro`, the weight in answers of the belief that a label is answered as all labels together are."""

EVEN = 1.0
"""With `macro`, the answers, half of them right, that the prior of all labels together counts in addition."""

NODES = ((-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6))
"""Three places and weights that have the mean and the variance of a standard normal variable (Gauss and Hermite)."""

MOST_LOG_ODDS = 6.0
"""Of the share of right answers, either way."""


@dataclass(frozen=True)
class MeasureModel:
    """What is believed of a measure before any document. The parameters are those of the belief `dirichlet_f_measure`.

    `binary` is the model of Haffari et al. (2017, section 3), with four kinds of answers.

    `accuracy` has two kinds, right and wrong, whatever the labels: kinds that are put together have the sum of their
    rates and of their parameters.

    `macro` has a kind for each pair of labels. Of a label with few items the prior tells most, and many such labels
    make the mean of their F-measures. Were right and wrong answers believed to be equally frequent, a candidate with
    few documents would seem worse than it is, and one with many would not. So each label is believed to be answered
    right about as often as all answers together are. How often that is has a posterior of its own, of which three
    values are taken.
    """

    beta: float
    average: str
    concentration: float
    learn_concentration: bool
    prior_concentration: Optional[float]
    num_samples: int

    def posterior(self, counts: np.ndarray, pairs: Sequence[Pair]) -> Draws:
        """After these documents.

        Args:
            counts: whole numbers of at least 0. Shape: `(num_documents, num_kinds)`.
            pairs: gold and predicted label of every kind.
        """
        if self.average == "macro":
            return self._macro(counts, pairs)
        if self.average == "accuracy":
            return self._accuracy(counts, pairs, self._scaled(np.full(2, 2 * PRIOR)), self.num_samples)
        drawn = self._rates(counts, self._scaled(np.full(len(pairs), PRIOR)), self.num_samples)
        return log_odds(drawn.log_rates, pairs, average="binary", beta=self.beta), drawn.weights

    def _accuracy(self, counts: np.ndarray, pairs: Sequence[Pair], prior: np.ndarray, num_samples: int) -> Draws:
        right = np.array([gold == answer for gold, answer in pairs])
        both = np.stack([counts[:, right].sum(axis=1), counts[:, ~right].sum(axis=1)], axis=1)
        drawn = self._rates(both, prior, num_samples)
        return drawn.log_rates[:, 0] - drawn.log_rates[:, 1], drawn.weights

    def _macro(self, counts: np.ndarray, pairs: Sequence[Pair]) -> Draws:
        share, weights = self._accuracy(counts, pairs, np.full(2, PRIOR_OF_SHARE), self.num_samples // 4)
        middle = float(weights @ share)
        spread = float(np.sqrt(weights @ (share - middle) ** 2))
        drawn: List[WeightedRates] = []
        for place, _ in NODES:
            right = float(expit(np.clip(middle + spread * place, -MOST_LOG_ODDS, MOST_LOG_ODDS)))
            drawn.append(self._rates(counts, self._scaled(macro_prior(pairs, right)), self.num_samples // 2))
        log_rates = np.concatenate([one.log_rates for one in drawn])
        masses = np.concatenate([mass * one.weights for (_, mass), one in zip(NODES, drawn, strict=True)])
        return log_odds(log_rates, pairs, average="macro", beta=self.beta), masses

    def _rates(self, counts: np.ndarray, prior: np.ndarray, num_samples: int) -> WeightedRates:
        model = RatesModel(prior, self.concentration, learned=self.learn_concentration, num_samples=num_samples)
        return model.posterior(counts)

    def _scaled(self, prior: np.ndarray) -> np.ndarray:
        return prior if self.prior_concentration is None else prior * (self.prior_concentration / prior.sum())


def macro_prior(pairs: Sequence[Pair], share: float) -> np.ndarray:
    """The parameters for every kind, where the `share` of all answers is right: those of a label's wrong answers are
    divided among their kinds. Shape: `(num_kinds,)`."""
    num_wrong = Counter(gold for gold, answer in pairs if gold != answer)
    even = EVEN / len(num_wrong) / 2
    right, wrong = even + LIKE_ALL * share, even + LIKE_ALL * (1 - share)
    return np.array([right if gold == answer else wrong / num_wrong[gold] for gold, answer in pairs])


def log_odds(log_rates: np.ndarray, pairs: Sequence[Pair], *, average: str, beta: float) -> np.ndarray:
    """log(F / (1 - F)) of the F-measure for rates of answers. Shape: `(num_samples,)`.

    F-beta is 1 / (beta / precision + (1 - beta) / recall), as Haffari et al. (2017, section 3) weight it; with rates,
    tp / (tp + beta fp + (1 - beta) fn). With `beta` 1/2 it is F1; F_b in the other convention has
    beta = 1 / (1 + b^2).

    Args:
        log_rates: shape `(num_samples, num_kinds)`.
        pairs: gold and predicted label of every kind.
        average: `binary`, the F-measure of the label 1; `macro`, the mean F-measure of all gold labels.
        beta: from 0, recall, to 1, precision.
    """
    labels: List[str] = ["1"] if average == "binary" else sorted({gold for gold, _ in pairs})
    right, wrong = zip(*(_log_shares(log_rates, pairs, label, beta) for label in labels), strict=True)
    return log_sum_exp(np.stack(right, axis=-1)) - log_sum_exp(np.stack(wrong, axis=-1))


def _log_shares(log_rates: np.ndarray, pairs: Sequence[Pair], label: str, beta: float) -> Tuple[np.ndarray, np.ndarray]:
    """log F and log(1 - F) of one label. Shapes: `(num_samples,)` both."""
    weights = {
        i: beta if predicted == label else 1 - beta
        for i, (gold, predicted) in enumerate(pairs)
        if gold != predicted and label in (gold, predicted)
    }
    counted = [i for i, weight in weights.items() if weight > 0]
    right = log_rates[:, pairs.index((label, label))]
    wrong = log_sum_exp(log_rates[:, counted] + np.log([weights[i] for i in counted]))
    both = np.logaddexp(right, wrong)
    return right - both, wrong - both
