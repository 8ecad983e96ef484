"""The verdict over all candidates that ever took part, how often such winners are wrong, who is good enough, and the
standing on each task."""

from bisect import bisect_right
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations
from textwrap import wrap
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.beliefs.belief import Belief, Posterior
from fiesta_allennlp.choosing.beliefs.student_t import ModeratedT, ModeratedTPosterior
from fiesta_allennlp.choosing.probability.batch import nearest_rival
from fiesta_allennlp.choosing.probability.leads import TaskModel
from fiesta_allennlp.choosing.sampling_rules import TopTwo
from fiesta_allennlp.choosing.stopping_rules import EarlyLooks
from fiesta_allennlp.choosing.strategy import DECIDED_REASONS, ClassErrors, Decision, Margin, analyse, with_everybody
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import count_text, number_text, probability_text
from fiesta_allennlp.selecting.objections import find_questions
from fiesta_allennlp.selecting.results.candidate_table import HTML, TERMINAL, Table

EQUAL_SDS = 0.5
"""Candidates whose means differ by less than this share of the run-to-run sd are equal."""

PROB_LIMITS = (0.98,)
"""Limits between the classes of P(best)."""

LEAD_LIMITS = (1.0, 2.0)
"""Limits between the classes of the lead over the nearest rival, in run-to-run sds."""

CLASS_ERRORS = (
    (ClassErrors(138, 3655), ClassErrors(30, 691), ClassErrors(1, 187)),
    (ClassErrors(6, 103), ClassErrors(61, 1638), ClassErrors(73, 3484)),
)
"""How often winners of the default rule were wrong, on scores of real models, by class of P(best), then of the lead.
From `scripts/benchmarks/ends.py`, on the problems of both sets."""


def judge(history: History, decision: Decision, strategy: Strategy, *, allowed: Collection[str] = ()) -> Decision:
    """Return a decision of the strategy over all candidates that ever took part.

    A candidate that left, by failures or because it was removed, is compared by its scores if it has enough. It is
    unresolved if the scores do not exclude, with the target confidence, that it is better than `best` by more than the
    margin. The decision has questions about the scores, unless the names of their objections are among those `allowed`.
    """
    decision = replace(decision, questions=tuple(find_questions(history, allowed)))
    if decision.best is None or decision.posterior is None or decision.gate is not None:
        return _with_reason(decision)
    target, belief = strategy.confidence or CONFIDENCE, _belief_for_single_runs(history, strategy.belief)
    compared = with_everybody(history, belief)
    names, left = history.active, [name for name in compared.active if name in history.withdrawn]
    if left:
        whole, names = analyse(compared, belief, margin=Margin(decision.margin)), compared.active
        of_everybody = {key: getattr(whole, key) for key in ("prob_best", "prob_within_margin", "posterior")}
        decision = replace(decision, compared=names, **of_everybody)
    assert decision.posterior is not None and decision.best is not None
    chances = decision.posterior.leads_of(names.index(decision.best)).tails(decision.margin)[0]
    chance_by_name = {name: float(chances[names.index(name)]) for name in left}
    is_open = sum(chance_by_name.values()) > 1 - target
    unresolved = [name for name, chance in chance_by_name.items() if is_open and chance > (1 - target) / len(left)]
    best = [names.index(name) for name in smallest_set(decision.prob_best, target)]
    chance = prob_equal(decision.posterior, best)
    decision = _with_reason(replace(decision, unresolved=tuple(unresolved), prob_equal=chance))
    return replace(decision, class_errors=find_class_errors(decision, strategy))


def _belief_for_single_runs(history: History, belief: Belief) -> Belief:
    """Return the belief that also compares single runs of candidates that left, if there is noise of others."""
    if type(belief) is not ModeratedT or not history.withdrawn:
        return belief
    lenient = copy(belief)
    lenient.min_evaluations = 1
    everybody = with_everybody(history, lenient)
    has_single_runs = everybody.active != with_everybody(history, belief).active
    return lenient if has_single_runs and lenient.posterior(everybody).leads.noise.df[0] > 0 else belief


def _with_reason(decision: Decision) -> Decision:
    """Return the decision, which names no winner while something else is open."""
    reason = "questions" if decision.questions else "unresolved" if decision.unresolved else decision.stopped_by
    return replace(decision, stopped_by=reason) if decision.stopped_by in (*DECIDED_REASONS, "documents") else decision


def smallest_set(prob_best: Mapping[str, float], target: float) -> Tuple[str, ...]:
    """Return the fewest candidates whose P(best) together reaches the target, the most probable first."""
    names = sorted(prob_best, key=lambda name: -prob_best[name])
    for size in range(1, len(names)):
        if sum(prob_best[name] for name in names[:size]) >= target:
            return tuple(names[:size])
    return tuple(names)


def prob_equal(posterior: Posterior, indices: Sequence[int]) -> Optional[float]:
    """Return the least probability, over all pairs, that two candidates are within `EQUAL_SDS` run-to-run sds; None for
    a single one, or if the sd is unknown."""
    distance = EQUAL_SDS * posterior.noise_sd
    if len(indices) < 2 or distance == 0 or not posterior.has_margin:
        return None
    tails = {index: posterior.leads_of(index).tails(distance)[0] for index in indices}
    return min(float(1 - tails[i][j] - tails[j][i]) for i, j in combinations(indices, 2))


def class_of(decision: Decision) -> Optional[Tuple[int, int]]:
    """Return the classes of P(best) and of the lead of the best candidate. None if that has no rival, if nothing
    varied, or over several tasks."""
    names, posterior = tuple(decision.prob_best), decision.posterior
    if posterior is None or decision.best not in names or not posterior.has_margin:
        return None
    if not posterior.noise_sd or posterior.num_tasks > 1:
        return None
    leads = posterior.leads_of(names.index(decision.best))
    rival = int(nearest_rival(leads, leads.tails())[0])
    lead_in_sds = float(leads.difference[0, rival]) / posterior.noise_sd
    return bisect_right(PROB_LIMITS, decision.prob_best[decision.best]), bisect_right(LEAD_LIMITS, lead_in_sds)


def find_class_errors(decision: Decision, strategy: Strategy) -> Optional[ClassErrors]:
    """Return the errors of winners such as the best candidate. None for other rules than the default, for which
    nothing was measured."""
    is_default = (
        type(strategy) is TopTwo
        and type(strategy.belief) is ModeratedT
        and type(strategy.stop) is EarlyLooks
        and (strategy.confidence, strategy.parsed_margin.size) == (CONFIDENCE, 0)
    )
    place = class_of(decision) if is_default and decision.stopped_by == "confidence" else None
    return place and CLASS_ERRORS[place[0]][place[1]]


COSTS = {"seconds": "mean_seconds", "parameters": "num_parameters"}
"""The costs that a candidate has in every result."""


@dataclass(frozen=True)
class Preference:
    """The candidate `name` with the lowest `cost` which is good enough; both are None if nobody is good enough yet. The
    cost is `by` seconds, parameters, or a column."""

    by: str
    name: Optional[str] = None
    cost: Optional[float] = None


def with_preference(result: Any, by: Optional[str], costs: Mapping[str, float]) -> Any:
    """Return a result with the cheapest candidate whose probability to be within the margin of the best is at least the
    target. Without `by`, it stays as it is.

    Args:
        result: a `Result` with a margin.
        by: `seconds` of a run, `parameters`, or the name of a column.
        costs: mean of that column for each candidate; empty if there is no such column.

    Raises:
        ConfigError: if there is no margin, or the cost of a candidate that is good enough is unknown.
    """
    if by is None:
        return result
    if not result.margin:
        raise ConfigError(f"--prefer {by} needs --margin, within which a candidate is as good as the best.")
    good = [c for c in result.candidates if not c.withdrawn and (c.prob_within_margin or 0.0) >= result.target]
    own: Dict[str, Any] = {c.name: costs.get(c.name, getattr(c, COSTS.get(by, ""), None)) for c in good}
    if unknown := [name for name, cost in own.items() if cost is None]:
        raise ConfigError(f"--prefer {by}: nothing tells '{by}' of {join_some(unknown)}. Name a column of numbers.")
    name = min(own, key=lambda name: (own[name], name), default=None)
    return replace(result, preferred=Preference(by, name, None if name is None else own[name]))


def describe_preference(result: Any) -> Iterator[str]:
    """Name the cheapest candidate that is good enough."""
    chosen, within = result.preferred, f"within {result.margin:g} of the best"
    if chosen is not None and chosen.name is None:
        yield f"Nobody is {within} with the target probability yet."
    for candidate in result.candidates if chosen is not None else ():
        if candidate.name == chosen.name:
            chance = probability_text(candidate.prob_within_margin)
            yield f"Preferred by {chosen.by}: {chosen.name} ({chosen.cost:g}), {within} with probability {chance}."


def failed_notes(history: History) -> List[str]:
    """Return a note for each candidate with scores that is dropped because of its failed runs."""
    return [
        f"{name} was dropped after {count_text(history.num_counted_failures(name), 'failed run')}, although it has "
        f"{count_text(len(history.evaluations_of(name)), 'score')}. If it was not at fault, raise --max-failures."
        for name in sorted(history.withdrawn)
        if history.evaluations_of(name)
    ]


# The standing on each task, where candidates are compared by their average over several.

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
    names, posterior = history.active, decision.posterior
    if not history.tasks or not isinstance(posterior, ModeratedTPosterior) or decision.rival is None:
        return ()
    standings, models = [], posterior.model.tasks
    best, rival = names.index(str(decision.best)), names.index(decision.rival)
    differences = [float(leads.difference[0, rival]) for leads in posterior.leads_of(best).by_task]
    for (task, part), model, difference in zip(history.by_task.items(), models, differences, strict=True):
        means = {name: history.sign * float(part.scores(name).mean()) for name in names}
        others = [each for each in models if each is not model]
        leader, winner_without = (names[int(TaskModel(own).find_leader()[0])] for own in ([model], others))
        share = difference / sum(differences) if sum(differences) > 0 else None
        standings.append(TaskStanding(task, means, leader, winner_without, share))
    return tuple(standings)


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
    is_narrow = output == TERMINAL
    means = [[number_text(each.means.get(name), result.decimals) for name in names] for each in result.tasks]
    rows = [
        [each.task, *own_means, each.leader, each.winner_without, number_text(each.share_of_lead, 2)]
        for each, own_means in zip(result.tasks, means, strict=True)
    ]
    without = "without it" if is_narrow else "winner without it"
    above = ["\n".join(wrap(name, MAX_HEADING)) if is_narrow else name for name in names]
    headings = ["task", *above, "leader", without, "of the lead"]
    return Table(headings, rows, title="Tasks, with equal weights", wrapped=("leader", without))
