"""The standing of candidates on each task, where they are compared by their average over several."""

from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.choosing.beliefs.moderated_t import ModeratedTPosterior
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.probability.task_leads import TaskModel, prob_on_new_task
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import number_text, probability_text
from fiesta_allennlp.selecting.results.candidate_table import HTML, TERMINAL, Table, num_decimals

MOST_OF_LEAD = 2 / 3
"""The share of a lead from which a task makes most of it."""

MAX_MEANS = {TERMINAL: 3, HTML: 6}
"""The most candidates whose means the table of tasks shows: a terminal has 80 columns."""


MAX_HEADING = 7
"""The longest line of a name above its means that fits into 80 columns."""


@dataclass(frozen=True)
class TaskStanding:
    """The standing on a task.

    Attributes:
        task: its name.
        means: mean score of each candidate that takes part.
        leader: the candidate that leads on this task.
        winner_without: the candidate that leads on the average of the other tasks.
        share_of_lead: the part that the task makes of the lead over the nearest rival; None without a lead.
    """

    task: str
    means: Mapping[str, float]
    leader: str
    winner_without: str
    share_of_lead: Optional[float]


def find_tasks(history: History, decision: Decision) -> Tuple[TaskStanding, ...]:
    """Return the standing on each task; empty without tasks, or while P(best) is unknown."""
    names, differences = history.active, _differences(history, decision)
    if not isinstance(decision.posterior, ModeratedTPosterior):
        return ()
    standings, models = [], decision.posterior.model.tasks
    for (task, part), model, difference in zip(history.by_task.items(), models, differences, strict=False):
        means = {name: history.sign * float(part.scores(name).mean()) for name in names}
        others = [each for each in models if each is not model]
        leader, winner_without = (names[int(TaskModel(own).find_leader()[0])] for own in ([model], others))
        share = difference / sum(differences) if sum(differences) > 0 else None
        standings.append(TaskStanding(task, means, leader, winner_without, share))
    return tuple(standings)


def find_prob_on_new_task(history: History, decision: Decision) -> Optional[float]:
    return prob_on_new_task(_differences(history, decision))


def _differences(history: History, decision: Decision) -> List[float]:
    """Return the lead of the best candidate over its rival on each of several tasks."""
    if decision.posterior is None or decision.best is None or decision.rival is None:
        return []
    best, rival = (history.active.index(name) for name in (decision.best, decision.rival))
    return [float(leads.difference[0, rival]) for leads in decision.posterior.leads_of(best).by_task]


def describe_tasks(result: Any) -> Iterator[str]:
    """Name the tasks that make most of the lead, and those without which another candidate leads. State whether the
    lead holds beyond the list of tasks, which decides nothing."""
    for each in result.tasks:
        if (each.share_of_lead or 0.0) > MOST_OF_LEAD:
            yield f"The task {each.task} makes {each.share_of_lead:.2f} of the lead of {result.leading}."
        if each.winner_without != result.leading:
            yield f"Without the task {each.task}, {each.winner_without} leads."
    if result.prob_on_new_task is not None and result.lead is not None:
        pair = f"{result.leading} is better than {result.lead.rival}"
        yield f"On a new data set of this kind: {pair} with probability {probability_text(result.prob_on_new_task)}."


def task_table(result: Any, output: str = TERMINAL) -> Table:
    """Return a row for each task: means, the leader, the one without this task, and its share of the lead."""
    names = [candidate.name for candidate in result.ranked if not candidate.withdrawn][: MAX_MEANS[output]]
    digits, is_narrow = num_decimals(result.candidates), output == TERMINAL
    means = [[number_text(each.means.get(name), digits) for name in names] for each in result.tasks]
    rows = [
        [each.task, *own_means, each.leader, each.winner_without, number_text(each.share_of_lead, 2)]
        for each, own_means in zip(result.tasks, means, strict=True)
    ]
    without = "without it" if is_narrow else "winner without it"
    above = ["\n".join(wrap(name, MAX_HEADING)) if is_narrow else name for name in names]
    headings = ["task", *above, "leader", without, "of the lead"]
    return Table(headings, rows, title="Tasks, with equal weights", wrapped=("leader", without))
