"""The facts about a decision, declared once for all outputs: a status, the next runs, a report, JSON."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.choosing.forecast import Forecast
from fiesta_allennlp.choosing.probability.batch import nearest_rival
from fiesta_allennlp.choosing.probability.leads import prob_on_new_task
from fiesta_allennlp.choosing.strategy import ClassErrors, Decision, GateDecision
from fiesta_allennlp.core.choice_settings import CONFIDENCE, POWER
from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.metrics import find_longer_names
from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.core.texts import chance_text, count_text, duration_text, probability_text
from fiesta_allennlp.selecting.results import verdict
from fiesta_allennlp.selecting.results.candidate_result import CollapsedRuns, find_collapsed_runs

JSON, NEXT, STATE, NOTES = "json", "next", "state", "notes"
"""The outputs: JSON, `fiesta next`, the state of a selection in status and report, and notes below."""


@dataclass(frozen=True)
class LeadOverRival:
    """The lead of the leading candidate over `rival`, the other active candidate that is most probably better.

    `difference` is that of their means, above 0, and `standard_error` its error, in units of the metric. `t` is their
    ratio, with `df` degrees of freedom. On other splits than the leader's, the rival may have the better mean.
    """

    rival: str
    difference: float
    standard_error: float
    t: float
    df: float
    rival_has_better_mean: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class DecisionFacts:
    """The facts about a decision that are computed from the history and the posterior.

    Attributes:
        margin: the margin within which a candidate is as good as the best.
        target: the target confidence, or its default if a budget ends the selection.
        gave_up: whether an open selection ended because its limit left too few runs to decide.
        varied: whether the scores showed any noise, without which there is no estimate.
        expected_loss: what choosing `leading` costs on average at least, in units of the metric.
        lacking: if `leading` reached the target confidence, but was not named because candidates had too few runs: the
            number of runs that each still needs.
        lead: lead of `leading` over its nearest rival.
        unresolved: candidates that left and could still be the best.
        questions: what is asked about the scores before a winner is named.
        prob_equal: the least probability, over all pairs of `best_set`, that two are within half a run-to-run sd.
        class_errors: how many winners with such a P(best) and lead were wrong in simulated selections.
        other_metrics: what a run reports by longer names than that of the metric, such as `test_accuracy = 0.9`.
        collapsed: runs far below (or above) their candidate's others, by candidate.
        forecast: how many more runs an open selection makes, where that is known.
        tasks: the standing on each task, if candidates are compared by their average over several.
        preferred: the cheapest candidate that is good enough, if that is asked for.
        gate: the verdicts against a baseline, if these are asked for.
    """

    margin: float = 0.0
    target: float = CONFIDENCE
    gave_up: bool = False
    varied: bool = True
    expected_loss: Optional[float] = None
    lacking: Mapping[str, int] = field(default_factory=dict)
    lead: Optional[LeadOverRival] = None
    unresolved: Tuple[str, ...] = ()
    questions: Tuple[str, ...] = ()
    prob_equal: Optional[float] = None
    class_errors: Optional[ClassErrors] = None
    other_metrics: Tuple[str, ...] = ()
    collapsed: Tuple[CollapsedRuns, ...] = ()
    forecast: Optional[Forecast] = None
    tasks: Tuple[verdict.TaskStanding, ...] = ()
    gate: Optional[GateDecision] = None
    preferred: Optional[verdict.Preference] = None

    @property
    def prob_on_new_task(self) -> Optional[float]:
        """The probability that the lead over the nearest rival is above 0 on a further task; None without tasks."""
        return prob_on_new_task([task.share_of_lead or 0.0 for task in self.tasks])


@dataclass(frozen=True)
class Fact:
    """A fact about a decision.

    Attributes:
        name: the attribute of a `Result`, and the key in JSON.
        outputs: where it is shown.
        value: its value after a history and a decision. By default, it is a property of the result.
        sentences: what it says, with full stops; empty where it does not apply.
        of_documents: whether it is only about selections by documents, or only about others. None if about both.
    """

    name: str
    outputs: FrozenSet[str] = frozenset({JSON})
    value: Optional[Callable[[History, Decision], Any]] = None
    sentences: Callable[[Any], Iterable[str]] = lambda result: ()
    of_documents: Optional[bool] = None


def prob_first_wins(scores: Sequence[np.ndarray]) -> float:
    """Compute the probability that a score of the first row is the highest, if one of each row is drawn. A tie of k
    counts 1 / k.

    For a score x it is int_0^1 prod_j (L_j + E_j u) du, with the probabilities L_j and E_j that score j is lower than x
    or equal to it. Gauss and Legendre's rule gives it exactly."""
    first, *rivals = scores
    nodes, weights = np.polynomial.legendre.leggauss(len(rivals) // 2 + 1)
    nodes, weights = (nodes + 1) / 2, weights / 2
    prob_rivals_lower = np.ones((len(first), len(nodes)))
    for rival in rivals:
        lower, upper = (np.searchsorted(np.sort(rival), first, side=side) / len(rival) for side in ("left", "right"))
        prob_rivals_lower *= lower[:, None] + (upper - lower)[:, None] * nodes
    return float(np.clip((prob_rivals_lower @ weights).mean(), 0, 1))


def expected_loss(history: History, decision: Decision) -> Optional[float]:
    if decision.posterior is None or decision.best not in history.active or not decision.posterior.noise_sd:
        return None
    return decision.posterior.expected_loss(history.active.index(decision.best))


def find_lead(history: History, decision: Decision) -> Optional[LeadOverRival]:
    """Return the lead of the best candidate over its rival; None if it has none, or if nothing varied."""
    names, posterior = history.active, decision.posterior
    if posterior is None or decision.best not in names or not posterior.has_margin:
        return None
    leads = posterior.leads_of(names.index(decision.best))
    rival = int(nearest_rival(leads, leads.tails(decision.margin))[0])
    lead = posterior.lead(rival, names.index(decision.best))
    if lead is None or lead.difference <= 1e-12 * abs(history.mean(decision.best) or 0.0):
        return None
    best_mean, rival_mean = (history.sign * (history.mean(name) or 0.0) for name in (decision.best, names[rival]))
    is_better = rival_mean > best_mean
    return LeadOverRival(names[rival], lead.difference, lead.standard_error, lead.t, lead.df, is_better)


def _has_varied(history: History, decision: Decision) -> bool:
    return decision.posterior is None or decision.posterior.noise_sd > 0


def _find_collapsed(history: History, decision: Decision) -> Tuple[CollapsedRuns, ...]:
    return tuple(runs for part in history.by_task.values() for runs in find_collapsed_runs(part))


def _other_metrics_of(history: History, decision: Decision) -> Tuple[str, ...]:
    return find_other_metrics(history.evaluations)


def find_other_metrics(runs: Sequence[Evaluation]) -> Tuple[str, ...]:
    run = next((run for run in runs if run.metric in run.metrics), None)
    return () if run is None else find_longer_names(run.metric, run.metrics)


def describe_other_metrics(metric: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"The metric is {metric}, by exactly this name. Runs also report {join_some(names)}."


def _describe_other_metrics(result: Any) -> Iterator[str]:
    return describe_other_metrics(result.metric_name, result.other_metrics)


def _is_open(result: Any) -> bool:
    """Return whether candidates are compared, and none is named yet."""
    return result.gate is None and result.leading is not None and not result.decided and result.stopped_by != "failures"


def describe_best_set(result: Any) -> Iterator[str]:
    """Name the candidates that could still be the best, unless that is one or all of them."""
    names = result.best_set
    compared = [c for c in result.candidates if c.prob_best is not None]
    if _is_open(result) and result.verdict != "equal" and 1 < len(names) < len(compared):
        together = sum(c.prob_best for c in compared if c.name in names)
        yield f"{join_some(names, ' or ')} is the best with probability {probability_text(together)}."


def _describe_leading(result: Any) -> Iterator[str]:
    """Name the two candidates that lead a selection without a winner. Without P(best), name those without a run."""
    if result.running or result.decided or result.stopped_by in (None, "failures"):
        return
    candidates = [c for c in result.candidates if c.prob_best is not None]
    leading_two = sorted(candidates, key=lambda c: (c.name != result.leading, -c.prob_best))[:2]
    if len(leading_two) == 2:
        leader_text, rival_text = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in leading_two)
        yield f"Leading: {leader_text}, then {rival_text}."
    elif result.without_runs:
        yield f"Without a finished {result.words.evaluation}: {join_some(result.without_runs)}."


def _describe_target(result: Any) -> Iterator[str]:
    """Say what a selection without a winner misses."""
    is_elsewhere = result.stopped_by in ("questions", "unresolved", "no_variation") or result.verdict == "equal"
    if is_elsewhere or not _is_open(result) or result.running or result.lacking or result.confidence is None:
        return
    is_below = result.confidence < result.target
    reason = f"P(best) is below the target {result.target:g}" if is_below else "The stopping rule is not met"
    yield f"{reason}: a margin or more runs can change that."
    if result.gave_up:
        yield "The remaining runs would probably not have decided it."


def _describe_open(result: Any) -> Iterator[str]:
    """Say what a selection misses that ended without a winner."""
    if result.stopped_by is not None:
        yield from _describe_target(result)


def _describe_constant(result: Any) -> Iterator[str]:
    """Say why there is no estimate."""
    if not result.varied and result.leading is not None and not result.questions:
        yield "There is no estimate of the noise: the differences between the candidates have not varied."


def _describe_loss(result: Any) -> Iterator[str]:
    """State what choosing the leader now costs. A cost that the decimals of the scores do not show is less than the
    last of them."""
    loss, digits = result.expected_loss, result.decimals
    if _is_open(result) and loss is not None:
        unit = 10.0**-digits
        cost = f"less than {unit:.{digits}f}" if loss < unit else f"at least {loss:.2g}"
        yield f"Choosing {result.leading} now costs {cost} on average."


def _describe_lacking(result: Any) -> Iterator[str]:
    """Name the runs that a probable winner still needs."""
    needs = [f"{name} needs at least {count_text(num_runs, 'more run')}" for name, num_runs in result.lacking.items()]
    if needs:
        yield f"The target is reached, but before {result.leading} can win, {join_some(needs, ' and ')}."


def _describe_lead(result: Any) -> Iterator[str]:
    """State the lead of the leading candidate, with what tests it."""
    lead = result.lead
    if lead is None or result.running:
        return
    error = f"standard error {lead.standard_error:.2g}, t {lead.t:.2f} with {lead.df:.1f} degrees of freedom"
    yield f"{result.leading} leads {lead.rival} by {lead.difference:.2g} ({error})."
    if lead.rival_has_better_mean:
        yield f"{lead.rival} has a {'lower' if result.minimise else 'higher'} mean, but on other splits."


def _describe_gate(result: Any) -> Iterator[str]:
    """State the verdict about each candidate against the baseline."""
    main = result.gate and result.gate.against
    for each in result.gate.verdicts if result.gate else ():
        name, limits = each.candidate, (each.allowed_error, 1 - each.allowed_error)
        decides = " or less, or ".join(map(probability_text, limits))
        chance = f"by more than {result.gate.max_drop:g} with probability {probability_text(1 - each.prob_no_worse)}"
        texts = {
            "better": f"{name} is better than {main} with probability {probability_text(each.prob_better)}.",
            "no worse": f"{name} is no worse than {main} (worse {chance}).",
            "worse": f"{name} is worse than {main} {chance}.",
            "open": f"Open: {name} is worse than {main} {chance}. After these runs, {decides} or more decides.",
        }
        yield texts[each.verdict]
    if result.gate and result.gate.unjudged:
        yield f"Open: {join_some(result.gate.unjudged)} left with too few scores to be judged."


def describe_errors(result: Any) -> Iterator[str]:
    """State how often winners of this class are wrong."""
    if errors := result.class_errors:
        share = f"{errors.wrong / errors.winners:.1%}"
        yield f"Of {errors.winners:,} simulated winners with such a P(best) and lead, {share} were wrong."


def describe_collapsed_runs(runs: CollapsedRuns, *, minimise: bool) -> str:
    """Describe collapsed runs: their meaning for P(best), and what to do."""
    side = "above" if minimise else "below"
    verb = "lies" if len(runs.scores) == 1 else "lie up to"
    scores_text = join_some([f"{run}: {score:.4g}" for run, score in runs.scores.items()])
    return (
        f"{len(runs.scores)} of {runs.num_runs} runs of {runs.candidate} {verb} {runs.sds:.0f} robust sds "
        f"{side} the others ({scores_text}). P(best) cannot account for collapses too rare to show in these "
        "runs. Use --min-score to count collapsed runs as failed, or report their share."
    )


def _describe_collapsed(result: Any) -> Iterator[str]:
    return (describe_collapsed_runs(runs, minimise=result.minimise) for runs in result.collapsed)


def forecast_text(forecast: Optional[Forecast]) -> str:
    """Return the number of further runs and their time; empty if unknown."""
    if forecast is None:
        return ""
    limit_text = ", the limit" if forecast.is_limited else ""
    range_text = f" (5-95%: {forecast.low} to {forecast.high}{limit_text})"
    if forecast.low == forecast.high:
        range_text = " (the limit)" if forecast.is_limited else ""
    text = f"about {count_text(forecast.median, 'more run')}{range_text}"
    seconds, seconds_left = forecast.seconds_per_run, forecast.seconds_left
    if seconds:
        text += f", {_duration_range_text(forecast.low * seconds, forecast.high * seconds)}"
    if seconds_left is None or not seconds:
        return text
    left_text = _duration_range_text(seconds_left, seconds_left)
    chance = chance_text(forecast.prob_decided)
    return f"{text}; decided within the remaining {left_text} of --max-hours with probability {chance}"


def _duration_range_text(low: float, high: float) -> str:
    """Return a span of seconds, in hours from 90 minutes on, and in minutes from 90 seconds on."""
    unit, seconds, digits = ("h", 3600, 1) if high >= 5400 else ("min", 60, 0) if high >= 90 else ("s", 1, 0)
    bounds = [f"{max(0.0, end) / seconds:.{digits}f}" for end in (low, high)]
    return f"{' to '.join(dict.fromkeys(bounds))} {unit}"


def _describe_forecast(result: Any) -> List[str]:
    text = forecast_text(result.forecast)
    return [f"A{text[1:]}."] if text and not result.lacking else []


def describe_claim(result: Any) -> Iterator[str]:
    """State what a claim about the winner costs."""
    num_runs = result.runs_to_claim
    if num_runs is None:
        return
    seconds = num_runs * ((result.leader.mean_seconds or 0) + (result.rival.mean_seconds or 0))
    time_text = f" ({duration_text(seconds)})" if seconds else ""
    effort = f"{num_runs} fresh runs of each{time_text}, with power {POWER:.2f} if the lead is as large as it looks"
    yield f"To write that {result.leading} is better than {result.rival.name}: {effort} (fiesta confirm)."


SHOWN = frozenset({JSON, NEXT, STATE})
ASKED = frozenset({JSON, NEXT, NOTES})

FACTS: List[Fact] = [
    Fact("verdict"),
    Fact("best"),
    Fact("best_set", SHOWN, sentences=describe_best_set),
    Fact("leading", frozenset({JSON, STATE}), sentences=_describe_leading),
    Fact("confidence"),
    Fact("single_runs_wrong"),
    Fact("target", frozenset({JSON, STATE}), sentences=_describe_target),
    Fact("lead", SHOWN, find_lead, _describe_lead),
    Fact("gate", frozenset({JSON, NEXT}), lambda history, decision: decision.gate, _describe_gate),
    Fact("preferred", SHOWN, sentences=verdict.describe_preference),
    Fact("tasks", SHOWN, verdict.find_tasks),
    Fact("prob_on_new_task", SHOWN, sentences=verdict.describe_tasks),
    Fact("varied", SHOWN, _has_varied, _describe_constant),
    Fact("gave_up", frozenset({JSON, NEXT}), lambda history, decision: decision.gave_up, _describe_open),
    Fact("unresolved", value=lambda history, decision: decision.unresolved),
    Fact("questions", ASKED, lambda history, decision: decision.questions, lambda result: [*result.questions]),
    Fact("other_metrics", frozenset({JSON, NOTES}), _other_metrics_of, _describe_other_metrics),
    Fact("prob_equal", value=lambda history, decision: decision.prob_equal),
    Fact("class_errors", SHOWN, lambda history, decision: decision.class_errors, describe_errors),
    Fact("runs_to_claim", SHOWN, sentences=describe_claim, of_documents=False),
    Fact("margin", value=lambda history, decision: decision.margin),
    Fact("expected_loss", SHOWN, expected_loss, _describe_loss),
    Fact("lacking", SHOWN, lambda history, decision: dict(Counter(decision.lacking)), _describe_lacking),
    Fact("forecast", SHOWN, sentences=_describe_forecast),
    Fact("collapsed", ASKED, _find_collapsed, _describe_collapsed, of_documents=False),
    Fact("without_runs"),
    Fact("num_evaluations"),
    Fact("num_failures"),
    Fact("num_queries", of_documents=True),
    Fact("cost", of_documents=True),
    Fact("seconds"),
    Fact("stopped_by"),
]
"""The facts in the order of their sentences. Every output walks this list, so one more entry is one more fact in all
of them."""


def facts_of(result: Any, output: str) -> List[Fact]:
    """Return the facts that an output shows of a result, or of its class."""
    return [f for f in FACTS if output in f.outputs and f.of_documents in (None, result.by_documents)]


def fact_values(result: Any) -> Dict[str, Any]:
    """Return the values by name, for JSON."""
    return {fact.name: getattr(result, fact.name) for fact in facts_of(result, JSON)}


def fact_sentences(result: Any, output: str) -> List[str]:
    """Return the sentences that an output shows, in order."""
    return [sentence for fact in facts_of(result, output) for sentence in fact.sentences(result)]


def runs_left_text(result: Any) -> str:
    """Return how many more runs a running selection makes, in a few words; empty where that is unknown."""
    if result.lacking:
        return f"at least {count_text(sum(result.lacking.values()), 'more run')}"
    return "" if result.forecast is None else f"about {count_text(result.forecast.median, 'more run')}"


def computed_facts(history: History, decision: Decision, result_class: Any) -> Dict[str, Any]:
    """Return the values of the facts that follow from a history and a decision, by name."""
    return {f.name: f.value(history, decision) for f in facts_of(result_class, JSON) if f.value is not None}
