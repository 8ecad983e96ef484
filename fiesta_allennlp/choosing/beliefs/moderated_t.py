from functools import cached_property
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Belief, Posterior
from fiesta_allennlp.choosing.beliefs.student_t import ScoreBelief
from fiesta_allennlp.choosing.probability.leads import Leads, TwoWayModel, prob_best
from fiesta_allennlp.choosing.probability.task_leads import TaskModels, average_leads
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History

MAX_CELLS = 10**7
"""The most cells of a table of candidates and units, which takes about a GB."""


class LeadPosterior(Posterior):
    """A posterior of leads alone."""

    means: np.ndarray
    """The mean of each candidate. Shape: `(num_candidates,)`."""

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        if margin == 0:
            return np.asarray(prob_best(self.leads.tails())[0])
        probs = [prob_best(self.leads_of(index).tails(margin))[0, index] for index in range(len(self.means))]
        return np.array(probs)


class ModeratedTPosterior(LeadPosterior):
    """The leads among candidates, by `choosing.probability.leads`.

    Args:
        numbers: one number for each candidate and unit, NaN where there is none. Shape: `(num_candidates, num_units)`.
        unseen_squares: squared deviations that nothing has shown yet, by candidate; see `Table`.
    """

    def __init__(self, numbers: np.ndarray, unseen_squares: Optional[np.ndarray] = None) -> None:
        self.numbers = numbers
        self.model = TwoWayModel.from_numbers(numbers[None], None if unseen_squares is None else unseen_squares[None])
        self._leads_by_candidate: Dict[int, Leads] = {}

    @property
    def leader(self) -> int:
        return int(self.model.find_leader()[0])

    @cached_property
    def means(self) -> np.ndarray:
        return np.asarray(self.model.means[0])

    def leads_of(self, candidate: int) -> Leads:
        if candidate not in self._leads_by_candidate:
            self._leads_by_candidate[candidate] = self.model.leads(np.array([candidate]))
        return self._leads_by_candidate[candidate]


class TaskAverage(LeadPosterior):
    """The leads among candidates by the average of their means on several tasks, by `choosing.probability.task_leads`.

    Args:
        posteriors: those of the same candidates on each task, two or more.
    """

    def __init__(self, posteriors: Sequence[ModeratedTPosterior]) -> None:
        self.posteriors = posteriors
        self.models = TaskModels([each.model for each in posteriors])

    @cached_property
    def means(self) -> np.ndarray:
        return np.asarray(self.models.means[0])

    @cached_property
    def leader(self) -> int:
        return int(self.models.find_leader()[0])

    def leads_by_task(self, candidate: int) -> List[Leads]:
        return [each.leads_of(candidate) for each in self.posteriors]

    def leads_of(self, candidate: int) -> Leads:
        return average_leads(self.leads_by_task(candidate))

    def without(self, task: int) -> LeadPosterior:
        """Return the posterior of the average over the other tasks."""
        return average_posterior([each for number, each in enumerate(self.posteriors) if number != task])


def average_posterior(posteriors: Sequence[ModeratedTPosterior]) -> LeadPosterior:
    """Return the posterior of the average over tasks, from those on each task, one or more."""
    return posteriors[0] if len(posteriors) == 1 else TaskAverage(posteriors)


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

    def posterior(self, history: History) -> LeadPosterior:
        parts = history.by_task.values()
        return average_posterior([ModeratedTPosterior(numbers_by_unit(part, self.scores(part))) for part in parts])


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
