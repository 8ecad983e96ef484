"""The standing of candidates on each task, where they are compared by their average over several."""

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from fiesta_allennlp.choosing.beliefs.moderated_t import TaskAverage
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.probability.task_leads import prob_on_new_task
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import number_text, probability_text
from fiesta_allennlp.selecting.results.candidate_table import Table, num_decimals

MOST_OF_LEAD = 2 / 3
"""The share of a lead from which a task makes most of it."""

MAX_MEANS = 6
"""The most candidates whose means the table of tasks shows."""


@dataclass(frozen=True)
class TaskStanding:
    """The standing on a task.

    Attributes:
        task: its name.
        num_runs: finished runs of all candidates.
        means: mean score of each candidate that takes part.
        leader: the candidate that leads on this task.
        winner_without: the candidate that leads on the average of the other tasks, with `prob_without` as its P(best).
        share_of_lead: the part that the task makes of the lead over the nearest rival; None without a lead.
    """

    task: str
    num_runs: int
    means: Mapping[str, float]
    leader: str
    winner_without: str
    prob_without: float
    share_of_lead: Optional[float]


def find_tasks(history: History, decision: Decision) -> Tuple[TaskStanding, ...]:
    """Return the standing on each task; empty without tasks, or while P(best) is unknown."""
    posterior, names, standings = decision.posterior, history.active, []
    if not isinstance(posterior, TaskAverage):
        return ()
    differences = _differences(history, decision)
    total = sum(differences)
    for number, (task, part) in enumerate(history.by_task.items()):
        others = posterior.without(number)
        standings.append(
            TaskStanding(
                task,
                sum(map(part.num_finished, names)),
                {name: history.sign * float(part.scores(name).mean()) for name in names},
                leader=names[posterior.posteriors[number].leader],
                winner_without=names[others.leader],
                prob_without=float(others.prob_best()[others.leader]),
                share_of_lead=differences[number] / total if total > 0 else None,
            )
        )
    return tuple(standings)


def find_prob_on_new_task(history: History, decision: Decision) -> Optional[float]:
    differences = _differences(history, decision)
    return prob_on_new_task(differences) if len(differences) > 1 else None


def _differences(history: History, decision: Decision) -> List[float]:
    """Return the lead of the best candidate over its rival on each task."""
    if not isinstance(decision.posterior, TaskAverage) or decision.best is None or decision.rival is None:
        return []
    rival = history.active.index(decision.rival)
    by_task = decision.posterior.leads_by_task(history.active.index(decision.best))
    return [float(leads.difference[0, rival]) for leads in by_task]


def describe_tasks(result: Any) -> List[str]:
    """Name the tasks that make most of the lead, and those without which another candidate leads."""
    most = [each for each in result.tasks if (each.share_of_lead or 0.0) > MOST_OF_LEAD]
    without = [each for each in result.tasks if each.winner_without != result.leading]
    return [
        *(f"The task {each.task} makes {each.share_of_lead:.2f} of the lead of {result.leading}." for each in most),
        *(f"Without the task {each.task}, {each.winner_without} leads." for each in without),
    ]


def describe_new_task(result: Any) -> List[str]:
    """State whether the lead holds beyond the list of tasks, which decides nothing."""
    if result.prob_on_new_task is None or result.lead is None:
        return []
    pair = f"{result.leading} is better than {result.lead.rival}"
    chance = probability_text(result.prob_on_new_task)
    return [f"On a new data set of this kind: {pair} with probability {chance}."]


def task_table(result: Any) -> Table:
    """Return a row for each task: means, the leader, the winner without this task, and its share of the lead."""
    digits = num_decimals(result.candidates)
    names = [candidate.name for candidate in result.ranked if not candidate.withdrawn][:MAX_MEANS]
    rows = [
        [
            each.task,
            str(each.num_runs),
            *(number_text(each.means.get(name), digits) for name in names),
            each.leader,
            f"{each.winner_without} ({probability_text(each.prob_without)})",
            number_text(each.share_of_lead, 2),
        ]
        for each in result.tasks
    ]
    headings = ["task", "runs", *names, "leader", "winner without it", "of the lead"]
    return Table(headings, rows, title="Tasks, with equal weights", wrapped=tuple(headings[-3:-1]))
