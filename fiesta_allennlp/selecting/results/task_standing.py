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


MAX_NAME, MAX_TASK_NAME = 7, 18
"""The longest names, of candidates and of tasks, that fit into a line of 80 columns."""


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
    if not differences or not isinstance(decision.posterior, ModeratedTPosterior):
        return ()
    models, total = decision.posterior.model.tasks, sum(differences)
    return tuple(
        TaskStanding(
            task,
            {name: history.sign * float(part.scores(name).mean()) for name in names},
            leader=names[int(TaskModel([model]).find_leader()[0])],
            winner_without=names[int(TaskModel([each for each in models if each is not model]).find_leader()[0])],
            share_of_lead=difference / total if total > 0 else None,
        )
        for (task, part), model, difference in zip(history.by_task.items(), models, differences, strict=True)
    )


def find_prob_on_new_task(history: History, decision: Decision) -> Optional[float]:
    differences = _differences(history, decision)
    return prob_on_new_task(differences) if differences else None


def _differences(history: History, decision: Decision) -> List[float]:
    """Return the lead of the best candidate over its rival on each of several tasks."""
    if decision.posterior is None or decision.best is None or decision.rival is None:
        return []
    best, rival = (history.active.index(name) for name in (decision.best, decision.rival))
    return [float(leads.difference[0, rival]) for leads in decision.posterior.leads_of(best).by_task]


def describe_tasks(result: Any) -> Iterator[str]:
    """Name the tasks that make most of the lead, and those without which another candidate leads."""
    for each in result.tasks:
        if (each.share_of_lead or 0.0) > MOST_OF_LEAD:
            yield f"The task {each.task} makes {each.share_of_lead:.2f} of the lead of {result.leading}."
        if each.winner_without != result.leading:
            yield f"Without the task {each.task}, {each.winner_without} leads."


def describe_new_task(result: Any) -> Iterator[str]:
    """State whether the lead holds beyond the list of tasks, which decides nothing."""
    if result.prob_on_new_task is not None and result.lead is not None:
        pair = f"{result.leading} is better than {result.lead.rival}"
        yield f"On a new data set of this kind: {pair} with probability {probability_text(result.prob_on_new_task)}."


def task_table(result: Any, output: str = TERMINAL) -> Table:
    """Return a row for each task: means, the leader, the one without this task, and its share of the lead. On a
    terminal, long tasks take several lines, and candidates with long names have numbers."""
    names = [candidate.name for candidate in result.ranked if not candidate.withdrawn]
    has_numbers = output == TERMINAL and any(len(name) > MAX_NAME for name in names)
    labels = {name: str(place) if has_numbers else name for place, name in enumerate(names, 1)}
    digits, shown = num_decimals(result.candidates), names[: MAX_MEANS[output]]
    rows = [
        [
            "\n".join(wrap(each.task, MAX_TASK_NAME)) if output == TERMINAL else each.task,
            *(number_text(each.means.get(name), digits) for name in shown),
            labels[each.leader],
            labels[each.winner_without],
            number_text(each.share_of_lead, 2),
        ]
        for each in result.tasks
    ]
    without = "without it" if output == TERMINAL else "winner without it"
    headings = ["task", *(labels[name] for name in shown), "leader", without, "of the lead"]
    title = "Tasks, with equal weights" + "; candidates are numbered in the order above" * has_numbers
    return Table(headings, rows, title=title, wrapped=("leader", without))
