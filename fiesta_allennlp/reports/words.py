"""Describes in sentences the result of a selection, a table of scores, two candidates or a replay."""

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import command
from fiesta_allennlp.core.records import UNDECIDED
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.reports.formats import render_paragraphs
from fiesta_allennlp.selection.metrics import Metric, scale_notes
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import (
    collapsed_text,
    count_text,
    duration_text,
    loss_text,
    number_text,
    probability_text,
)

if TYPE_CHECKING:
    from fiesta_allennlp.reports.reading import Words


def selection_in_words(result: Result, *, running: bool = False) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    decision = running_in_words(result) if running else ended_in_words(result)
    spent = queries_in_words(result) if isinstance(result, DocumentsResult) else spent_in_words(result)
    scales = scale_notes({candidate.name: [candidate.mean] for candidate in result.candidates if candidate.mean})
    doubts = (*scales, *collapsed_in_words(result))
    return tuple(filter(None, (decision, *doubts, result.scored_on, scope_in_words(result), spent)))


def collapsed_in_words(result: Result) -> Tuple[str, ...]:
    """Describe runs far from their candidate's others."""
    minimise = Metric.of(result.metric).minimise
    return tuple(collapsed_text(collapsed, minimise=minimise) for collapsed in result.collapsed)


def scope_in_words(result: Result) -> str:
    """Describe the limits of scores on official splits or on the validation set."""
    sentences = []
    if result.splits == OFFICIAL:
        sentences.append("P(best) is about new seeds on this one split, not about new data.")
    if result.score == "validation":
        sentences.append(
            "The scores are on the validation set, which a run may also use to choose its epoch or settings, so they "
            "tend to be better than scores on unseen data."
        )
    return " ".join(sentences)


def failures_in_words(result: Result) -> List[str]:
    """Name every failure, by reason, and every candidate that takes no part."""
    sentences: List[str] = []
    for candidate in result.candidates:
        runs_by_reason: Dict[str, List[str]] = {}
        for failed in candidate.failed_runs:
            if failed.kind != "score":
                runs_by_reason.setdefault(failed.reason, []).append(failed.run)
        sentences += [f"failed: {', '.join(names)} {reason}" for reason, names in runs_by_reason.items()]
        if candidate.num_missed:
            missed_runs = (failed.run for failed in candidate.failed_runs if failed.kind == "score")
            sentences.append(
                f"{candidate.name}: {candidate.missed_text} runs missed --min-score and are not in its mean: "
                f"{', '.join(missed_runs)}"
            )
        if candidate.withdrawn:
            status = "removed" if candidate.removed else "dropped out"
            sentences.append(f"{status}: {candidate.name}: {candidate.withdrawn_because}")
    return sentences


def ended_in_words(result: Result) -> str:
    leading, stopped_by, work = result.leading, result.stopped_by, _work(result)
    if stopped_by == "documents" and isinstance(result, DocumentsResult):
        return _all_answered_text(result)
    if stopped_by == "interrupted":
        saved_text = "no answer is lost" if isinstance(result, DocumentsResult) else "nothing that finished is lost"
        return f"Interrupted after {work}; {saved_text}. {leading_two_in_words(result)}".strip()
    if stopped_by == "failures":
        survivors = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        return f"No comparison: after {work}, {survivors} left. The others failed too often; see the reasons for each."
    if stopped_by in UNDECIDED:
        limit = "is the limit" if stopped_by == "max_hours" else "leaves too few runs to decide"
        return f"Inconclusive after {work}: {flag(str(stopped_by))} {limit}. {leading_two_in_words(result)}".strip()
    confidence = result.confidence
    if not result.is_decided:
        chance = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        return f"{leading} leads{chance}, by {result.metric_text}, after {work}.{_lead_text(result)}{_unspent(result)}"
    best_text = f" within {result.margin:g} of the best" if result.margin else " the best"
    chance = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        chance += f" (the very best with {probability_text(result.leader.prob_best)})"
    return f"{leading} is{best_text}{chance}, by {result.metric_text}, after {work}.{_lead_text(result)}"


def running_in_words(result: Result) -> str:
    leading, confidence, work = result.leading, result.confidence, _work(result)
    if leading is None or confidence is None:
        return f"The selection is running. After {work}, P(best) is not available yet."
    within = f"is within {result.margin:g} of the best" if result.margin else "leads"
    return (
        f"The selection is running. After {work}, {leading} {within} with probability {probability_text(confidence)}, "
        f"by {result.metric_text}.{_loss_text(result)}{_needed_runs_text(result)}"
    )


def changes(changed: Sequence[Mapping[str, Any]], words: "Words") -> Tuple[str, ...]:
    """Describe the changes of options that choose runs or stop the selection."""
    return tuple(
        f"{flag(change['option'])} was changed from {_option(change, 'before')} to {_option(change, 'now')} after "
        f"{change['num_done']} {words.evaluations_of(change['num_done'])}."
        for change in changed
    )


def _option(change: Mapping[str, Any], when: str) -> str:
    value = change[when]
    if value is None:
        return "its default" if change["option"] == "max_evaluations" else "none"
    return value["type"] if isinstance(value, dict) and list(value) == ["type"] else json.dumps(value)


def _work(result: Result) -> str:
    """Count the work, as in `4 runs of 3 candidates and 1 failed run`."""
    if isinstance(result, DocumentsResult):
        num_answered = sum(system.num_documents for system in result.candidates)
        work = f"{count_text(num_answered, 'answered document')} of {len(result.candidates)} systems"
    else:
        work = f"{count_text(result.num_evaluations, 'run')} of {len(result.candidates)} candidates"
    return f"{work} and {count_text(result.num_failures, 'failed run')}" if result.num_failures else work


def leading_two_in_words(result: Result) -> str:
    """Name the two candidates that lead and the margin that would have decided; empty without P(best)."""
    candidates = [c for c in result.candidates if c.prob_best is not None]
    leading_two = sorted(candidates, key=lambda c: (c.name != result.leading, -(c.prob_best or 0.0)))[:2]
    if len(leading_two) < 2:
        return ""
    leader_text, rival_text = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in leading_two)
    margin = result.credible_margin
    margin_text = ""
    if margin is not None:
        margin_text = (
            f" --margin {margin['margin']:g} would have selected {margin['best']}, but a margin chosen after seeing "
            "the scores voids the target."
        )
    return f"Leading: {leader_text}, then {rival_text}.{_loss_text(result)}{_needed_runs_text(result)}{margin_text}"


def _loss_text(result: Result) -> str:
    """State what choosing the leader now costs."""
    text = loss_text(result.leading, result.expected_loss)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _needed_runs_text(result: Result) -> str:
    """Name the runs that a probable winner still needs."""
    needs = [f"{name} needs at least {count_text(num_runs, 'more run')}" for name, num_runs in result.lacking.items()]
    return f" That is enough, but before {result.leading} can win, {' and '.join(needs)}." if needs else ""


def _lead_text(result: Result) -> str:
    """State the lead of the winner on shared splits, which the means do not show."""
    lead = result.ahead_on_shared_splits
    if lead is None:
        return _mean_lead_text(result)
    splits, gap = f"the {lead['num_splits']} splits that both ran on", f"{lead['difference']:.2g}"
    if not lead["has_better_mean"]:
        return f" It is ahead of {lead['of']} by {gap} on {splits}."
    better = "lower" if Metric.of(result.metric).minimise else "higher"
    return f" {lead['of']} has a {better} mean, but on other splits. On {splits}, {result.leading} is ahead by {gap}."


def _mean_lead_text(result: Result) -> str:
    """State the lead of the winner where runs share no splits; empty if it does not lead."""
    sign = Metric.of(result.metric).sign
    means = {candidate.name: sign * candidate.mean for candidate in result.active if candidate.mean is not None}
    best = means.pop(str(result.leading), None)
    rival = max(means, key=means.__getitem__, default=None)
    if isinstance(result, DocumentsResult) or best is None or rival is None or best <= means[rival]:
        return ""
    return f" Its mean is {best - means[rival]:.2g} ahead of {rival}."


def _unspent(result: Result) -> str:
    """Say why a budget was not spent whole; empty if it was, or if candidates dropped out."""
    spare = result.strategy.get("budget", 0) - result.num_evaluations
    if spare <= 0 or result.stopped_by != "budget" or len(result.active) < len(result.candidates):
        return ""
    verb = "was" if spare == 1 else "were"
    return f" {count_text(spare, 'run')} of the budget {verb} left, because a round gives its candidates equally many."


def spent_in_words(result: Result) -> str:
    """State the time of all runs and, if it is decided, the runs of a plain loop; empty if neither is known."""
    time_text = f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""
    plain_loop = result.plain_loop
    if plain_loop is None:
        return time_text
    low, high, limit_note = plain_loop["low"], plain_loop["high"], " (the limit)" if plain_loop["is_limited"] else ""
    num_runs = f"{low} to {high}" if low < high else f"{low}"
    return f"{time_text} Running all candidates equally often would take about {num_runs} runs{limit_note}.".strip()


def queries_in_words(result: DocumentsResult) -> str:
    """State the number of queries and their cost; empty if they are unknown."""
    if result.num_queries is None:
        return ""
    were = "was" if result.num_queries == 1 else "were"
    return f"{count_text(result.num_queries, 'query')} {were} made, at a total cost of {result.cost:g}."


def _all_answered_text(result: DocumentsResult) -> str:
    leading, total = result.leading, result.documents["num_documents"]
    best, batch_size = result.leader, result.documents["batch_size"]
    active = [system for system in result.candidates if not system.withdrawn]
    incomplete = [system.name for system in active if system.num_documents + system.failures * batch_size < total]
    ties = [s.name for s in active if (s.measure, s.num_documents) == (best.measure, best.num_documents) and s != best]
    lead = f"The systems answered all {total} documents: {leading} is the best on this file"
    chance = ""
    if best.prob_best is not None:
        chance = f" It is the best on other documents like these with probability {probability_text(best.prob_best)}."
    if leading in incomplete:
        lead = f"No documents are left for the next step of the plan: {leading} leads"
    elif incomplete:
        lead = f"{leading} is the best of the systems that answered all {total} documents"
        reason = "" if "budget" in result.strategy else " because they were unlikely to be the best"
        chance += f" {' and '.join(incomplete)} answered fewer{reason}."
    tie = f", level with {' and '.join(ties)}" if ties else ""
    return f"{lead}, with {result.metric} {number_text(best.measure)}{tie}, after {_work(result)}.{chance}"


def scores_in_words(result: Result, **template_values: Any) -> List[str]:
    """Describe the decision about a table of scores, or about the two candidates of the comparison `pair`."""
    all_values = {"pair": None, "target": None, "needs": _needed_runs_text(result), **template_values}
    return render_paragraphs("scores.j2", result=result, **all_values)


def replay_in_words(summary: Mapping[str, Any]) -> List[str]:
    template_values = {"minimise": False, "notes": (), **summary}
    return render_paragraphs("replay.j2", **template_values, plan=command("plan"))
