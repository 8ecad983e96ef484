from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.choosing.beliefs.belief import Belief, check_evaluations
from fiesta_allennlp.choosing.beliefs.student_t import ModeratedTPosterior, numbers_by_unit
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.metrics import COUNT_PREFIX
from fiesta_allennlp.core.records import Counts, History

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


AVERAGES = ("binary", "macro", "accuracy")
LARGEST_COUNT = 1e9

BINARY_PAIRS = {"tp": ("1", "1"), "fp": ("0", "1"), "fn": ("1", "0"), "tn": ("0", "0")}
"""Gold and predicted label of the kinds of answers in a binary task."""


class MeasurePosterior(ModeratedTPosterior):
    """Leads between metrics of systems, compared on the documents that they share. `pseudo_scores` has those of each
    document."""

    def __init__(self, numbers: np.ndarray, pseudo_scores: PseudoScores) -> None:
        super().__init__([numbers], pseudo_scores.unseen_squares)
        self.pseudo_scores = pseudo_scores

    def interval(self, level: float) -> np.ndarray:
        """Compute the interval of each metric alone, such as with `level` 0.95. Shape: `(num_systems, 2)`."""
        return self.pseudo_scores.interval(level)


@Belief.register("paired_measure")
class PairedMeasure(Belief):
    """Models the metric over all items together, and compares systems on the documents that they share. It is the
    default of `fiesta documents`.

    The metric is an F-measure, the mean F-measure of all labels, or the accuracy: a ratio of sums over documents, or
    the mean of some. A document therefore has a pseudo-score whose mean is the metric; see
    `choosing.beliefs.paired_measure.pseudo_scores`. The pseudo-scores are compared as `moderated_t` compares
    scores: the mean of the system, plus an effect that the document has on all systems, plus noise. With accuracy and
    one item in each document, this is a paired difference of proportions.

    The prior is uniform in the metrics. One item of each label is added to the answers of a system, and to its noise.
    It is answered as all systems together answer this label. Rare labels keep the posterior wide until they have been
    seen, and the influence of the item vanishes with the number of documents.

    Linearizing a ratio in this way is the delta method (Deng et al., 2018), or the ratio estimator of survey sampling
    (Cochran, 1977, chapter 6). Takahashi et al. (2022) apply it to macro-F1. Pairing compares ROC areas in the same way
    (DeLong et al., 1988). Margins are in units of the metric.

    Every run must report its counts as metrics `count:tp`, `count:fp`, `count:fn` and `count:tn`, or, for more than two
    labels, ``count:<gold>><predicted>``.

    Args:
        beta: weight of precision against recall, F = 1 / (beta / precision + (1 - beta) / recall), from 0 to 1. 0.5
            gives F1.
        average: `binary`, the F-measure of the positive answers; `macro`, the mean F-measure of all labels; `accuracy`.

    Raises:
        ConfigError: if a parameter is outside its range.
    """

    min_evaluations = 3
    needs_counts = True
    has_draws = False

    def __init__(self, *, beta: float = 0.5, average: str = "binary") -> None:
        check_beta(beta)
        if average not in AVERAGES:
            raise ConfigError(f"average must be binary, macro or accuracy but is '{average}'.")
        self._beta, self._average = beta, average

    def posterior(self, history: History) -> MeasurePosterior:
        counts = [valid_counts(history, name, self.min_evaluations) for name in history.active]
        label_pairs = _label_pairs(sorted({kind for table in counts for kind in table.kinds}), self._average)
        contributions = _contributions(list(label_pairs.values()), self._average, self._beta)
        kinds = list(label_pairs)
        numerators, denominators = ([table.columns_for(kinds) @ added for table in counts] for added in contributions)
        pseudo = pseudo_scores(numerators, denominators)
        return MeasurePosterior(numbers_by_unit(history, pseudo.scores), pseudo)


def _contributions(pairs: Sequence[Tuple[str, str]], average: str, beta: float) -> Tuple[np.ndarray, np.ndarray]:
    """What an answer of each kind adds to the numerator and to the denominator of each ratio, whose mean is the metric.

    Shapes: `(num_kinds, num_ratios)`.
    """
    if average == "accuracy":
        is_correct = np.array([[ITEM_WEIGHT * (gold == answer)] for gold, answer in pairs])
        return is_correct, np.full_like(is_correct, ITEM_WEIGHT)
    labels = ["1"] if average == "binary" else sorted({gold for gold, _ in pairs})
    is_gold, is_answer = (np.array([[pair[side] == label for label in labels] for pair in pairs]) for side in (0, 1))
    # tp / (tp + beta fp + (1 - beta) fn)
    return ITEM_WEIGHT * (is_gold & is_answer), ITEM_WEIGHT * (beta * is_answer + (1 - beta) * is_gold)


def _label_pairs(kinds: List[str], average: str) -> Dict[str, Tuple[str, str]]:
    """Gold and predicted label of every kind, including kinds that were not reported."""
    if set(kinds) <= set(BINARY_PAIRS):
        return BINARY_PAIRS
    wrong_kind = next((kind for kind in kinds if kind.count(">") != 1 or average == "binary"), None)
    if wrong_kind is not None:
        names = ", ".join(BINARY_PAIRS) + f" or, unless the average is binary, {COUNT_PREFIX}<gold>><predicted>"
        raise ScoreError(f"counts must be named {names}, without '>' in a label, but got {COUNT_PREFIX}{wrong_kind}.")
    label_pairs: Dict[str, Tuple[str, str]] = {kind: (kind.split(">")[0], kind.split(">")[1]) for kind in kinds}
    if len({label for pair in label_pairs.values() for label in pair}) < 2:
        raise ScoreError(f"counts need at least two labels but have only '{kinds[0].split('>')[0]}'.")
    return label_pairs


def check_beta(beta: float) -> None:
    """Refuse a weight of precision that is not from 0 to 1."""
    if not 0 <= beta <= 1:
        raise ConfigError(f"beta must be from 0 (recall) to 1 (precision), such as 0.5 for F1, but is {beta}.")


def valid_counts(history: History, candidate: str, min_evaluations: int) -> Counts:
    """Return the counts of right and wrong answers of a candidate.

    Raises:
        ScoreError: if it has fewer than `min_evaluations` runs, or a run without counts, or a count that is no count.
    """
    check_evaluations(history, candidate, min_evaluations)
    counts = history.counts(candidate)
    if counts.num_runs_without_counts:
        raise ScoreError(
            f"the posterior needs counts such as {COUNT_PREFIX}tp from every run, but {counts.num_runs_without_counts} "
            f"runs of candidate '{candidate}' have none. Choose another --belief."
        )
    is_invalid = (counts.values < 0) | (counts.values > LARGEST_COUNT) | (np.floor(counts.values) != counts.values)
    if is_invalid.any():
        row, column = np.argwhere(is_invalid)[0]
        raise ScoreError(
            f"counts must be whole numbers from 0 to {LARGEST_COUNT:g} but candidate '{candidate}' has the "
            f"{COUNT_PREFIX}{counts.kinds[column]} {counts.values[row, column]}. Fix the metric."
        )
    return counts
