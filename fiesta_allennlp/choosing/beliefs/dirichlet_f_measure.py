import math
from functools import lru_cache
from typing import Sequence

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Belief, MeanPosterior
from fiesta_allennlp.choosing.beliefs.paired_measure import BINARY_PAIRS, check_beta, valid_counts
from fiesta_allennlp.choosing.probability import weighted_draws
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.records import History

KNOWN_DF = 1e9
"""The degrees of freedom of a spread that is as good as known."""

MIN_SAMPLES = 64
CACHE_SIZE = 1024
"""The number of single candidates' posteriors to keep, because a step changes only one of them."""


class FMeasurePosterior(MeanPosterior):
    """Independent F-measures, or accuracies, in the order of `History.active`.

    Each is represented by weighted draws, from which `choosing.probability.weighted_draws` computes P(best).
    """

    def __init__(self, distributions: Sequence[weighted_draws.EmpiricalDistribution]) -> None:
        self.distributions = distributions
        self.location = np.array([distribution.location for distribution in distributions])
        self.scale = np.array([measure.scale for measure in distributions])
        self.df, self.noise_variance = np.full(len(distributions), KNOWN_DF), float(np.mean(self.scale**2))

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return weighted_draws.sample(self.distributions, size, rng)

    def interval(self, level: float) -> np.ndarray:
        """Compute the equal-tailed credible interval of each measure. Shape: `(num_candidates, 2)`.

        Args:
            level: probability of the interval, such as 0.95.
        """
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        return np.array([distribution.quantiles(tails) for distribution in self.distributions])

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        return weighted_draws.prob_best(self.distributions, margin)


@Belief.register("dirichlet_f_measure")
class DirichletFMeasure(Belief):
    """Models the F-measure of each candidate by its counts of right and wrong answers in documents. Use it to reproduce
    the paper; `paired_measure` needs fewer documents, and models more metrics.

    The model is that of Haffari et al. (2017, section 3). Each answer of candidate i is a true positive, false
    positive, false negative or true negative. The candidate's rates of these kinds, theta_i, have a Dirichlet prior.
    The rates in document d vary around them, mu_d ~ Dirichlet(A theta_i), and the counts are multinomial with mu_d. The
    measure is computed from the rates theta_i: it is that of all items, not the mean over documents. Candidates are
    independent given their rates, even if they answered the same documents, so differences look more uncertain than
    they are.

    Where documents are alike (A is large), every answer counts. Where they differ much (A = 1), the posterior depends
    on how many documents each kind of answer occurred in. A system with 1% errors and one with 6% are then told apart
    by a few documents each, long before their mean F-measures are.

    Every run must report its counts as metrics `count:tp`, `count:fp`, `count:fn` and `count:tn`. One run of each
    candidate is enough to begin with.

    The posterior uses the same fixed points for every draw. It is a function of the counts alone, whatever their order,
    and involves no chance. `fiesta_allennlp.choosing.probability.weighted_draws.RatePosterior` contains the derivation.

    Args:
        beta: weight of precision against recall, F = 1 / (beta / precision + (1 - beta) / recall), from 0 to 1. 0.5
            gives F1.
        concentration: A, how similar documents are; small if they differ much. 1 in the paper. A value above the truth
            makes the posterior too sure; a value below it costs documents.
        prior_concentration: the sum of the prior's four parameters. 1 in the paper.
        num_samples: number of draws that represent the posterior of a candidate, a power of 2. With 1,024, P(best) was
            within 0.001 of its value with 16,384.

    Raises:
        ConfigError: if a parameter is outside its range.
    """

    min_evaluations = 1
    needs_counts = True

    def __init__(
        self,
        *,
        beta: float = 0.5,
        concentration: float = 1.0,
        prior_concentration: float = 1.0,
        num_samples: int = 1024,
    ) -> None:
        check_beta(beta)
        for name, value in {"concentration": concentration, "prior_concentration": prior_concentration}.items():
            if not 1e-3 <= value <= 1e9:
                raise ConfigError(f"{name} must be from 0.001 to 1e9, such as 1, but is {value}.")
        if num_samples < MIN_SAMPLES or math.log2(num_samples) % 1:
            raise ConfigError(f"num_samples must be a power of 2, at least {MIN_SAMPLES}, but is {num_samples}.")
        self._params = beta, concentration, prior_concentration, num_samples

    def posterior(self, history: History) -> FMeasurePosterior:
        tables = [self._count_table(history, name) for name in history.active]
        # The order of documents plays no part, not even in the last digit of a sum.
        return FMeasurePosterior([_estimate(table[np.lexsort(table.T)].tobytes(), *self._params) for table in tables])

    def _count_table(self, history: History, candidate: str) -> np.ndarray:
        counts = valid_counts(history, candidate, self.min_evaluations)
        if unexpected := sorted(set(counts.kinds) - set(BINARY_PAIRS)):
            raise ScoreError(
                f"dirichlet_f_measure needs the counts {', '.join(BINARY_PAIRS)} of a binary task but candidate "
                f"'{candidate}' has {unexpected[0]}. Use paired_measure."
            )
        return counts.columns_for(list(BINARY_PAIRS))


@lru_cache(maxsize=CACHE_SIZE)
def _estimate(
    count_bytes: bytes, beta: float, concentration: float, prior_concentration: float, num_samples: int
) -> weighted_draws.EmpiricalDistribution:
    """The posterior of one candidate's measure, kept for these counts."""
    counts = np.frombuffer(count_bytes).reshape(-1, len(BINARY_PAIRS))
    prior = np.full(len(BINARY_PAIRS), prior_concentration / len(BINARY_PAIRS))
    draws = weighted_draws.RatePosterior(prior, concentration, counts).draw(num_samples)
    return weighted_draws.empirical_distribution(log_odds(draws.log_rates, beta), draws.weights)


def log_odds(log_rates: np.ndarray, beta: float) -> np.ndarray:
    """Compute log(F / (1 - F)) = log(tp / (beta fp + (1 - beta) fn)) of rates in the order of `BINARY_PAIRS`.

    F is 1 / (beta / precision + (1 - beta) / recall), as Haffari et al. (2017, section 3) weight it. With `beta` 1/2 it
    is F1; F_b in the other convention has beta = 1 / (1 + b^2). Shapes: `(num_samples, 4)` to `(num_samples,)`.
    """
    weights = {1: beta, 2: 1 - beta}
    log_errors = [log_rates[:, column] + np.log(weight) for column, weight in weights.items() if weight > 0]
    return log_rates[:, 0] - weighted_draws.log_sum_exp(np.stack(log_errors, axis=-1))
