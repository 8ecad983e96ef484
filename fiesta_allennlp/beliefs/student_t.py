from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, Posterior, check_evaluations
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.records import MAX_SCORE, History
from fiesta_allennlp.probability import logit, prob_best
from fiesta_allennlp.probability.expected_loss import expected_loss
from fiesta_allennlp.probability.student_t import prob_best_of_selections


@dataclass(frozen=True, eq=False)
class StudentTPosterior(Posterior):
    """Independent mean scores: mu_i = location_i + scales_ci t(df_ci) with probability weight_ci.

    `location` has the shape `(num_candidates,)`, in the order of `History.active`; `scales`, `df` and `weight` have the
    shape `(num_components, num_candidates)`. A scale of 0 means that the mean score counts as known.
    `fiesta_allennlp.probability.prob_best` computes P(best). Mean logit scores have no margin: any margin except 0
    raises a `ConfigError`.
    """

    location: np.ndarray
    scales: np.ndarray
    df: np.ndarray
    weight: np.ndarray
    has_margin: bool = True
    prob_best_by_margin: Dict[float, np.ndarray] = field(default_factory=dict)
    """P(best) by margin, as far as it was computed."""

    @classmethod
    def simple(
        cls, location: np.ndarray, scale: np.ndarray, df: np.ndarray, *, has_margin: bool = True
    ) -> "StudentTPosterior":
        """Make a posterior with one component. Shapes: `(num_candidates,)`."""
        return cls(location, scale[None], df[None], np.ones((1, len(location))), has_margin)

    @property
    def scale(self) -> np.ndarray:
        """Root of the mean squared scale. Shape: `(num_candidates,)`."""
        return np.sqrt((self.weight * self.scales**2).sum(axis=0))

    @property
    def noise_df(self) -> np.ndarray:
        return (self.weight * self.df).sum(axis=0)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        shape = size, len(self.location)
        components = (rng.random(shape) > np.cumsum(self.weight, axis=0)[:-1, None]).sum(axis=0)
        cells = components, np.arange(shape[1])
        return self.location + self.scales[cells] * rng.standard_t(self.df[cells])

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        if margin not in self.prob_best_by_margin:
            if margin != 0 and not self.has_margin:
                raise ConfigError(f"margin must be 0 with logit scores, which have other units, but is {margin}.")
            self.prob_best_by_margin[margin] = prob_best(
                self.location, scale=self.scales, df=self.df, weight=self.weight, margin=margin
            )
        return self.prob_best_by_margin[margin]

    def expected_loss(self, chosen: int) -> Optional[float]:
        if not self.has_margin:  # a mean logit does not tell the mean score
            return None
        return expected_loss(self.location, scale=self.scales, df=self.df, weight=self.weight, chosen=chosen)


def cache_prob_best(posteriors: Sequence[StudentTPosterior], margin: float) -> None:
    """Compute P(best) of posteriors of equally many candidates and components, which takes less time together."""
    if posteriors:
        scale = np.stack([posterior.scales for posterior in posteriors], axis=1)
        df = np.stack([posterior.df for posterior in posteriors], axis=1)
        weight = np.stack([posterior.weight for posterior in posteriors], axis=1)
        location = np.stack([posterior.location for posterior in posteriors])
        probability_rows = prob_best_of_selections(location, scale=scale, df=df, weight=weight, margin=margin)
        for posterior, probabilities in zip(posteriors, probability_rows, strict=True):
            posterior.prob_best_by_margin[margin] = probabilities


class ScoreBelief(Belief):
    """Base class of models that use only the scores or their logits. Logits have no margin."""

    takes_logits: bool = False
    """Whether log(score / (1 - score)) is modelled."""

    def scores(self, history: History) -> List[np.ndarray]:
        """Return the scores of every active candidate in the form that is modelled. Shapes: `(num_finished,)`.

        Raises:
            ScoreError: if there are fewer than `min_evaluations`, or if a score is not finite, is too large to be
                squared, or has no logit although the model needs it.
        """
        return [self._candidate_scores(history, name) for name in history.active]

    def _candidate_scores(self, history: History, candidate: str) -> np.ndarray:
        check_evaluations(history, candidate, self.min_evaluations)
        scores = history.scores(candidate)
        invalid_scores = scores[~(np.abs(scores) <= MAX_SCORE)]
        if invalid_scores.size:
            raise ScoreError(
                f"scores must not exceed {MAX_SCORE:g} in absolute value but candidate '{candidate}' has "
                f"{history.sign * invalid_scores[0]}. Fix the metric, or have the run exit with an error in this case."
            )
        if not self.takes_logits:
            return scores
        return history.sign * logit(history.sign * scores, candidate=candidate)  # of errors: the logit of what is right


LOST_DF_BY_PRIOR = {"uniform": 2, "jeffreys": 1}
"""By the prior of sigma: how many degrees of freedom fewer than runs the posterior of a mean has."""


@Belief.register("student_t")
class StudentT(ScoreBelief):
    """Models the scores of each candidate as Gaussian with its own mean and variance (FIESTA, section 4.2).

    After n runs of a candidate with mean xbar and S = sum_k (x_k - xbar)^2, the posterior of its mean mu is::

        sqrt(n (n - c) / S) (mu - xbar) ~ t with n - c degrees of freedom

    that is, location xbar and scale sqrt(S / (n (n - c))). With a prior uniform in mu and in sigma, c is 2 (Honda and
    Takemura, 2014, as in the paper and in its released package), so 3 runs are needed. With Jeffreys' prior, 1 / sigma,
    c is 1. The first explores more. Candidates are independent: the model does not pair scores on shared splits.
    This is conservative if the scores of a split rise and fall together.

    If all scores of a candidate are equal, its mean counts as known exactly (S = 0). This follows from the formula, but
    is overconfident with few runs of a coarse metric. Candidates that tie in this way share P(best) equally.

    Use it for scores that are not crowded at an end of their range, which holds for most metrics of most tasks.

    Args:
        prior: the prior of sigma, `uniform` or `jeffreys`.

    Raises:
        ConfigError: if the prior has another name.
    """

    def __init__(self, *, prior: str = "uniform") -> None:
        if prior not in LOST_DF_BY_PRIOR:
            raise ConfigError(f"prior must be {' or '.join(LOST_DF_BY_PRIOR)} but is '{prior}'.")
        self.lost_df = LOST_DF_BY_PRIOR[prior]
        self.min_evaluations = self.lost_df + 1

    def posterior(self, history: History) -> StudentTPosterior:
        scores = self.scores(history)
        num_scores = np.array([len(values) for values in scores], dtype=float)
        # The mean of equal scores is exactly this score, which a sum would round away.
        location = np.array([float(values[0] if np.ptp(values) == 0 else np.mean(values)) for values in scores])
        squares = np.array([np.sum((values - mean) ** 2) for values, mean in zip(scores, location, strict=True)])
        df = num_scores - self.lost_df
        return StudentTPosterior.simple(location, np.sqrt(squares / (num_scores * df)), df, has_margin=self.has_margin)


@Belief.register("logit_student_t")
class LogitStudentT(StudentT):
    """Applies the model of `student_t` to log(score / (1 - score)), for scores in [0, 1] near an end (FIESTA, section
    4.2).

    All probabilities are then about E[logit score], not E[score]. The two can rank candidates differently. Of two
    candidates with the same mean score and no score below 1/2, the one that varies more has the larger mean logit. The
    paper found that the transformation made little difference.

    The model allows no margin. A margin is a difference of mean scores, and the mean score is not a function of the
    mean logit score alone. `fiesta_allennlp.probability.logit` describes how scores of exactly 0 or 1 are treated.
    """

    has_margin = False
    takes_logits = True
