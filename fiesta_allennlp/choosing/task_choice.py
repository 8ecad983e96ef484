"""The tasks of runs, where candidates are compared by their average over several tasks."""

from typing import List, Sequence

import numpy as np

from fiesta_allennlp.choosing.beliefs.moderated_t import ModeratedT
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.task_leads import choose_task
from fiesta_allennlp.choosing.strategy import Strategy
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History


def check_tasks(strategy: Strategy, history: History) -> None:
    """Check that a strategy can compare candidates by their average over the tasks of a history.

    Raises:
        ConfigError: if its belief or its stopping rule is not about leads, or it has a budget.
    """
    has_rules = isinstance(strategy, FixedConfidence) and strategy.rules(1, 1) is not None
    if history.tasks and not (has_rules and type(strategy.belief) is ModeratedT):
        raise ConfigError(
            f"{len(history.by_task)} tasks need the default posterior, sampling rule and stopping rule. Remove "
            "--strategy, --belief, --stop, --budget and --preset, or keep one task with --where."
        )


def choose_tasks(history: History, decision: Decision, names: Sequence[str], *, num_starts: int) -> List[str]:
    """Return the task of each of these runs: the one with the fewest units of a candidate until it has `num_starts` on
    each, and then the one on which a unit makes the variance of its lead fall most; see `task_leads.choose_task`."""
    tasks, active = list(history.by_task), history.active
    units = {
        name: np.array([part.num_started_units(name) for part in history.by_task.values()], dtype=float)
        for name in active
    }
    chosen: List[str] = []
    for name in names:
        own, best, posterior = units[name], decision.best, decision.posterior
        index = int(own.argmin())
        if own.min() >= num_starts and posterior is not None and best is not None:
            rival = (decision.rival or name) if name == best else name
            leads = posterior.leads_by_task(active.index(best))
            variances = np.array([each.variance[0, active.index(rival)] for each in leads])
            other = units[rival if name == best else best]
            index = int(choose_task(variances[None], own[None], other[None])[0])
        own[index] += 1
        chosen.append(tasks[index])
    return chosen
