from functools import cached_property
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Belief, Posterior
from fiesta_allennlp.choosing.beliefs.student_t import ScoreBelief
from fiesta_allennlp.choosing.probability.leads import Leads, TwoWayModel, prob_best
from fiesta_allennlp.choosing.probability.task_leads import TaskModel
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History

MAX_CELLS = 10**7
"""The most cells of a table of candidates and units, which takes about a GB."""


class ModeratedTPosterior(Posterior):
    """The leads among candidates, by `choosing.probability.leads`, or by `choosing.probability.task_leads` where they
    are compared by the average of their means on several tasks.

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
            return np.asarray(prob_best(self.leads.tails())[0])
        probs = [prob_best(self.leads_of(index).tails(margin))[0, index] for index in range(len(self.means))]
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
