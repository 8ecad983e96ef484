import math
from functools import lru_cache
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, Posterior, check_evaluations
from fiesta_allennlp.counts import COUNT_PREFIX, Counts
from fiesta_allennlp.errors import ConfigError, ScoreError
from fiesta_allennlp.probability import weighted_draws
from fiesta_allennlp.probability.expected_loss import expected_loss_of_draws
from fiesta_allennlp.probability.f_measure import AVERAGES, BINARY, MeasureModel, Pair
from fiesta_allennlp.probability.weighted_draws import Marginal, marginal
from fiesta_allennlp.records import History

LARGEST_COUNT = 1e9
LEAST_SAMPLES = 64
CACHED = 1024
"""The number of single candidates' posteriors to keep, because a step changes only one of them."""


class FMeasurePosterior(Posterior):
    """Independent F-measures, or accuracies, in the order of `History.active`.

    Each is represented by weighted draws, from which `fiesta_allennlp.probability.weighted_draws` computes P(best).
    """

    def __init__(self, each: Sequence[Marginal]) -> None:
        self.marginals = each
        self.location = np.array([one.location for one in each])
        self.scale = np.array([one.scale for one in each])

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return weighted_draws.sample(self.marginals, size, rng)

    def interval(self, level: float) -> np.ndarray:
        """Compute the equal-tailed credible interval of each measure. Shape: `(num_candidates, 2)`.

        Args:
            level: probability of the interval, such as 0.95.
        """
        tails = ((1 - level) / 2, (1 + level) / 2)
        return np.array([[one.quantile(tail) for tail in tails] for one in self.marginals])

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        return weighted_draws.prob_best(self.marginals, margin)

    def expected_loss(self, taken: int) -> float:
        return expected_loss_of_draws(self.marginals, taken)


@Belief.register("dirichlet_f_measure")
class DirichletFMeasure(Belief):
    """Models the F-measure of each candidate by its counts of right and wrong answers in documents.

    The model is that of Haffari et al. (2017, section 3). Each answer of candidate i is of one of K kinds, such as true
    positive, false positive, false negative and true negative. The candidate's rates of these kinds, theta_i, have a
    Dirichlet prior. The rates in document d vary around them, mu_d ~ Dirichlet(A theta_i), and the counts are
    multinomial with mu_d. The measure is computed from the rates theta_i: it is that of all items, not the mean over
    documents. Candidates are independent given their rates, even if they answered the same documents.

    Every run must report its counts as metrics `count:tp`, `count:fp`, `count:fn` and `count:tn`, or, for more than two
    labels, ``count:<gold>><predicted>``. One run of each candidate is enough to begin with.

    The paper has four kinds. With `macro` there are as many as pairs of labels, and most of them are rare. The model
    then assumes that a candidate answers each label right about as often as all labels together; see `MeasureModel`.
    With `accuracy` there are two kinds, right and wrong.

    The posterior uses the same fixed points for every draw. It is a function of the counts alone, whatever their order,
    and involves no chance. See scripts/benchmarks/derivations.md.

    Args:
        beta: weight of precision against recall, F = 1 / (beta / precision + (1 - beta) / recall), from 0 to 1. 0.5
            gives F1.
        average: `binary`, the F-measure of the positive answers; `macro`, the mean F-measure of all labels; `accuracy`.
        concentration: A, how similar documents are; small if they differ much. 1 in the paper.
        learn_concentration: whether to learn A for each candidate; log A is then normal around log `concentration`,
            with a standard deviation of 2.
        prior_concentration: the sum of the prior's parameters. The default is 1, as in the paper; with `macro` it is 1
            plus twice the number of gold labels.
        num_samples: number of draws that represent the posterior of a candidate, a power of 2.

    Raises:
        ConfigError: if a parameter is outside its range.
    """

    min_evaluations = 1
    needs_counts = True

    def __init__(
        self,
        *,
        beta: float = 0.5,
        average: str = "binary",
        concentration: float = 1.0,
        learn_concentration: bool = False,
        prior_concentration: Optional[float] = None,
        num_samples: int = 1024,
    ) -> None:
        if not 0 <= beta <= 1:
            raise ConfigError(f"beta must be from 0 (recall) to 1 (precision), such as 0.5 for F1, but is {beta}.")
        if average not in AVERAGES:
            raise ConfigError(f"average must be binary, macro or accuracy but is '{average}'.")
        for name, value in {"concentration": concentration, "prior_concentration": prior_concentration}.items():
            if value is not None and not 1e-3 <= value <= 1e9:
                raise ConfigError(f"{name} must be from 0.001 to 1e9, such as 1, but is {value}.")
        if num_samples < LEAST_SAMPLES or math.log2(num_samples) % 1:
            raise ConfigError(f"num_samples must be a power of 2, at least {LEAST_SAMPLES}, but is {num_samples}.")
        self._model = MeasureModel(beta, average, concentration, learn_concentration, prior_concentration, num_samples)

    def posterior(self, history: History) -> FMeasurePosterior:
        counts = [self._counts(history, name) for name in history.active]
        pairs = _pairs(sorted({kind for one in counts for kind in one.kinds}), self._model.average)
        tables = [one.of(list(pairs)) for one in counts]
        # The order of documents plays no part, not even in the last digit of a sum.
        in_order = [table[np.lexsort(table.T)].tobytes() for table in tables]
        return FMeasurePosterior([_marginal(self._model, table, tuple(pairs.values())) for table in in_order])

    def _counts(self, history: History, candidate: str) -> Counts:
        check_evaluations(history, candidate, self.min_evaluations)
        counts = history.counts(candidate)
        if counts.num_without:
            raise ScoreError(
                f"the belief dirichlet_f_measure needs counts such as {COUNT_PREFIX}tp from every run, but "
                f"{counts.num_without} runs of candidate '{candidate}' have none. Choose another belief."
            )
        refused = (counts.values < 0) | (counts.values > LARGEST_COUNT) | (np.floor(counts.values) != counts.values)
        if refused.any():
            row, column = np.argwhere(refused)[0]
            raise ScoreError(
                f"counts must be whole numbers from 0 to {LARGEST_COUNT:g} but candidate '{candidate}' has the "
                f"{COUNT_PREFIX}{counts.kinds[column]} {counts.values[row, column]}. Fix the metric."
            )
        return counts


def _pairs(kinds: List[str], average: str) -> Dict[str, Pair]:
    """Gold and predicted label of every kind, including kinds that were not reported."""
    if set(kinds) <= set(BINARY):
        return BINARY
    wrong = next((kind for kind in kinds if kind.count(">") != 1 or average == "binary"), None)
    if wrong is not None:
        forms = ", ".join(BINARY) + f" or, unless the average is binary, {COUNT_PREFIX}<gold>><predicted>"
        raise ScoreError(f"counts must be named {forms}, without '>' in a label, but got {COUNT_PREFIX}{wrong}.")
    split = [kind.split(">") for kind in kinds]
    golds = sorted({parts[0] for parts in split})
    predicted = sorted({label for parts in split for label in parts})
    if len(predicted) < 2:
        raise ScoreError(f"counts need at least two labels but have only '{predicted[0]}'.")
    return {f"{gold}>{answer}": (gold, answer) for gold in golds for answer in predicted}


@lru_cache(maxsize=CACHED)
def _marginal(model: MeasureModel, table: bytes, pairs: Tuple[Pair, ...]) -> Marginal:
    """The posterior of one candidate's measure, kept for these counts."""
    return marginal(*model.posterior(np.frombuffer(table).reshape(-1, len(pairs)), pairs))
