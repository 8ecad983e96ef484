"""The t distribution of mean scores: candidates on their own, and their leads by a two-way model of all runs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.choosing.beliefs.belief import Belief, MeanPosterior, Posterior, check_evaluations
from fiesta_allennlp.choosing.probability.leads import Leads, TaskModel, TwoWayModel
from fiesta_allennlp.choosing.probability.prob_best import logit, prob_best, prob_best_from_tails
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.metrics import MAX_SCORE
from fiesta_allennlp.core.records import History


@dataclass(eq=False)
class StudentTPosterior(MeanPosterior):
    """Independent mean scores: mu_i = location_i + scale_i t(df_i), in the order of `History.active`.

    Shape of each: `(num_candidates,)`. A scale of 0 means that the mean score counts as known.
    `prob_best.prob_best` computes P(best). Mean logit scores have no margin: any margin except 0
    raises a `ConfigError`.
    """

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    noise_variance: float
    has_margin: bool = True

    def interval(self, level: float) -> np.ndarray:
        half_width = self.scale * stdtrit(self.df, (1 + level) / 2)
        return np.stack([self.location - half_width, self.location + half_width], axis=1)

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        if margin != 0 and not self.has_margin:
            raise ConfigError(f"margin must be 0 with logit scores, which have other units, but is {margin}.")
        return prob_best(self.location, scale=self.scale, df=self.df, margin=margin)

    def expected_loss(self, chosen: int) -> Optional[float]:
        return super().expected_loss(chosen) if self.has_margin else None  # a mean logit does not tell the mean score


class ScoreBelief(Belief):
    """Base class of models that use only the scores or their logits. Logits have no margin."""

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
        noise_variance = float(squares.sum() / (num_scores - 1).sum())
        return StudentTPosterior(location, np.sqrt(squares / (num_scores * df)), df, noise_variance, self.has_margin)


@Belief.register("logit_student_t")
class LogitStudentT(StudentT):
    """Applies the model of `student_t` to log(score / (1 - score)), for scores in [0, 1] near an end (FIESTA, section
    4.2).

    All probabilities are then about E[logit score], not E[score]. The two can rank candidates differently. Of two
    candidates with the same mean score and no score below 1/2, the one that varies more has the larger mean logit. The
    paper found that the transformation made little difference.

    The model allows no margin. A margin is a difference of mean scores, and the mean score is not a function of the
    mean logit score alone. `choosing.probability.logit` describes how scores of exactly 0 or 1 are treated.
    """

    has_margin = False
    takes_logits = True


MAX_CELLS = 10**7
"""The most cells of a table of candidates and units, which takes about a GB."""


class ModeratedTPosterior(Posterior):
    """The leads among candidates, by `choosing.probability.leads`, on one task or on the average of several.

    Args:
        numbers: for each task, one number for each candidate and unit, NaN where there is none. Shape of each:
            `(num_candidates, num_units)`.
        unseen_squares: squared deviations that nothing has shown yet, by candidate; see `Table`.
    """

    def __init__(self, numbers: Sequence[np.ndarray], unseen_squares: Optional[np.ndarray] = None) -> None:
        self.numbers, self.num_tasks = numbers, len(numbers)
        unseen = None if unseen_squares is None else unseen_squares[None]
        self.model = TaskModel([TwoWayModel.from_numbers(each[None], unseen) for each in numbers])
        self._leads_by_candidate: Dict[int, Leads] = {}

    @cached_property
    def leader(self) -> int:
        return int(self.model.find_leader()[0])

    @property
    def means(self) -> np.ndarray:
        """The mean of each candidate. Shape: `(num_candidates,)`."""
        return np.asarray(self.model.means[0])

    def leads_of(self, candidate: int) -> Leads:
        if candidate not in self._leads_by_candidate:
            self._leads_by_candidate[candidate] = self.model.leads(np.array([candidate]))
        return self._leads_by_candidate[candidate]

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        if margin == 0:
            return np.asarray(prob_best_from_tails(self.leads.tails())[0])
        probs = [prob_best_from_tails(self.leads_of(index).tails(margin))[0, index] for index in range(len(self.means))]
        return np.array(probs)


@Belief.register("moderated_t")
class ModeratedT(ScoreBelief):
    """Compares the leads of candidates unit by unit, as a paired t-test does. It is the default.

    A unit is what candidates share and what is drawn again, such as a split. A candidate has one number on each, the
    mean of its runs there, so further seeds on few splits add little. Runs with equal split seeds share a unit. Without
    shared units the comparison is Student's t-test. On complete tables it is the paired t-test, except that the noise
    of all candidates adds up to four degrees of freedom (Smyth, 2004). `choosing.probability.leads` has the
    formulas, and docs/method.md an example.

    The posterior is of leads alone. Rules that draw means, such as `ttts`, need `student_t`.
    """

    min_evaluations = 2
    has_draws = False

    def posterior(self, history: History) -> ModeratedTPosterior:
        return ModeratedTPosterior([numbers_by_unit(part, self.scores(part)) for part in history.by_task.values()])


def numbers_by_unit(history: History, scores: List[np.ndarray]) -> np.ndarray:
    """Return the mean score of each active candidate on each unit, NaN where there is none.
    Shape: `(num_candidates, num_units)`.

    Raises:
        ScoreError: if the table would be too large.
    """
    return count_on_units(history, history.active, scores)[1]


def count_on_units(
    history: History, names: Sequence[str], scores: Optional[List[np.ndarray]] = None
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the number of runs of each candidate on each unit, the splits in ascending order, and the mean of their
    scores. Shape of both: `(num_candidates, num_units)`.

    Raises:
        ScoreError: if the table would be too large.
    """
    seeds = [history.split_seeds(name) for name in names]
    values = [history.scores(name) for name in names] if scores is None else scores
    units, columns = np.unique(np.concatenate(seeds), return_inverse=True)
    if len(seeds) * len(units) > MAX_CELLS:
        raise ScoreError(
            f"{len(seeds)} candidates on {len(units)} splits are too many to compare: their product must not exceed "
            f"{MAX_CELLS}. Leave out candidates, or use --belief student_t."
        )
    rows = np.repeat(np.arange(len(seeds)), [len(own) for own in seeds])
    cells, number = rows * len(units) + columns.ravel(), len(seeds) * len(units)
    num_runs = np.bincount(cells, minlength=number).reshape(len(seeds), len(units))
    sums = np.bincount(cells, np.concatenate(values), minlength=number).reshape(num_runs.shape)
    with np.errstate(invalid="ignore"):
        return num_runs, sums / num_runs
