"""Describes in sentences the result of a selection, a table of scores, two candidates or a replay."""

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import command
from fiesta_allennlp.core.records import UNDECIDED
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.reports.formats import render_paragraphs
from fiesta_allennlp.selection.metrics import Metric
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
    decision = running_in_words(result) if running else in_words(result)
    spent = queries_in_words(result) if isinstance(result, DocumentsResult) else spent_in_words(result)
    collapsed = collapsed_in_words(result)
    return tuple(filter(None, (decision, *collapsed, result.scored_on, scope_in_words(result), spent)))


def collapsed_in_words(result: Result) -> Tuple[str, ...]:
    """Describe runs far from their candidate's others."""
    minimise = Metric.of(result.metric).minimise
    return tuple(collapsed_text(found, minimise=minimise) for found in result.collapsed)


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
        runs: Dict[str, List[str]] = {}
        for failed in candidate.failed_runs:
            if failed.kind != "score":
                runs.setdefault(failed.reason, []).append(failed.run)
        sentences += [f"failed: {', '.join(names)} {reason}" for reason, names in runs.items()]
        if candidate.num_missed:
            missed = (failed.run for failed in candidate.failed_runs if failed.kind == "score")
            sentences.append(
                f"{candidate.name}: {candidate.missed_text} runs missed --min-score and are not in its mean: "
                f"{', '.join(missed)}"
            )
        if candidate.withdrawn:
            what = "removed" if candidate.removed else "dropped out"
            sentences.append(f"{what}: {candidate.name}: {candidate.withdrawn_because}")
    return sentences


def in_words(result: Result) -> str:
    leading, stopped_by, done = result.leading, result.stopped_by, _done(result)
    if stopped_by == "documents" and isinstance(result, DocumentsResult):
        return _documents_ran_out(result)
    if stopped_by == "interrupted":
        kept = "no answer is lost" if isinstance(result, DocumentsResult) else "nothing that finished is lost"
        return f"Interrupted after {done}; {kept}. {leaning(result)}".strip()
    if stopped_by == "failures":
        left = next((f"only {candidate.name} is" for candidate in result.active), "no candidate is")
        return f"No comparison: after {done}, {left} left. The others failed too often; see the reasons for each."
    if stopped_by in UNDECIDED:
        why = "is the limit" if stopped_by == "max_hours" else "leaves too few runs to decide"
        return f"Inconclusive after {done}: {flag(str(stopped_by))} {why}. {leaning(result)}".strip()
    confidence = result.confidence
    if not result.is_decided:
        sure = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        return f"{leading} leads{sure}, by {result.metric_text}, after {done}.{_ahead(result)}{_left_over(result)}"
    margin = f" within {result.margin:g} of the best" if result.margin else " the best"
    sure = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if result.margin and result.leader is not None and confidence is not None:
        sure += f" (the very best with {probability_text(result.leader.prob_best)})"
    return f"{leading} is{margin}{sure}, by {result.metric_text}, after {done}.{_ahead(result)}"


def running_in_words(result: Result) -> str:
    leading, confidence, done = result.leading, result.confidence, _done(result)
    if leading is None or confidence is None:
        return f"The selection is running. After {done}, P(best) is not available yet."
    within = f"is within {result.margin:g} of the best" if result.margin else "leads"
    return (
        f"The selection is running. After {done}, {leading} {within} with probability {probability_text(confidence)}, "
        f"by {result.metric_text}.{_loss(result)}{_lacking(result)}"
    )


def changes(changed: Sequence[Mapping[str, Any]], words: "Words") -> Tuple[str, ...]:
    """Describe the changes of options that choose runs or stop the selection."""
    return tuple(
        f"{flag(change['option'])} was changed from {_value(change, 'before')} to {_value(change, 'now')} after "
        f"{change['num_done']} {words.evaluations_of(change['num_done'])}."
        for change in changed
    )


def _value(change: Mapping[str, Any], when: str) -> str:
    value = change[when]
    if value is None:
        return "its default" if change["option"] == "max_evaluations" else "none"
    return value["type"] if isinstance(value, dict) and list(value) == ["type"] else json.dumps(value)


def _done(result: Result) -> str:
    """Count the work, as in `4 runs of 3 candidates and 1 failed run`."""
    if isinstance(result, DocumentsResult):
        number = sum(system.num_documents for system in result.candidates)
        done = f"{count_text(number, 'answered document')} of {len(result.candidates)} systems"
    else:
        done = f"{count_text(result.num_evaluations, 'run')} of {len(result.candidates)} candidates"
    return f"{done} and {count_text(result.num_failures, 'failed run')}" if result.num_failures else done


def leaning(result: Result) -> str:
    """Name the two candidates that lead and the margin that would have decided; empty without P(best)."""
    known = [candidate for candidate in result.candidates if candidate.prob_best is not None]
    first = sorted(known, key=lambda candidate: (candidate.name != result.leading, -(candidate.prob_best or 0.0)))[:2]
    if len(first) < 2:
        return ""
    one, other = (f"{candidate.name} (P(best) {probability_text(candidate.prob_best)})" for candidate in first)
    found = result.credible_margin
    chosen = ""
    if found is not None:
        chosen = (
            f" --margin {found['margin']:g} would have selected {found['best']}, but a margin chosen after seeing the "
            "scores voids the target."
        )
    return f"Leading: {one}, then {other}.{_loss(result)}{_lacking(result)}{chosen}"


def _loss(result: Result) -> str:
    """State what choosing the leader now costs."""
    text = loss_text(result.leading, result.expected_loss)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _lacking(result: Result) -> str:
    """Name the runs that a probable winner still needs."""
    needs = [f"{name} needs at least {count_text(number, 'more run')}" for name, number in result.lacking.items()]
    return f" That is enough, but before {result.leading} can win, {' and '.join(needs)}." if needs else ""


def _ahead(result: Result) -> str:
    """State the lead of the winner on shared splits, which the means do not show."""
    ahead = result.ahead_on_shared_splits
    if ahead is None:
        return _ahead_in_means(result)
    both, by = f"the {ahead['num_splits']} splits that both ran on", f"{ahead['difference']:.2g}"
    if not ahead["has_better_mean"]:
        return f" It is ahead of {ahead['of']} by {by} on {both}."
    better = "lower" if Metric.of(result.metric).minimise else "higher"
    return f" {ahead['of']} has a {better} mean, but on other splits. On {both}, {result.leading} is ahead by {by}."


def _ahead_in_means(result: Result) -> str:
    """State the lead of the winner where runs share no splits; empty if it does not lead."""
    sign = Metric.of(result.metric).sign
    means = {candidate.name: sign * candidate.mean for candidate in result.active if candidate.mean is not None}
    best = means.pop(str(result.leading), None)
    rival = max(means, key=means.__getitem__, default=None)
    if isinstance(result, DocumentsResult) or best is None or rival is None or best <= means[rival]:
        return ""
    return f" Its mean is {best - means[rival]:.2g} ahead of {rival}."


def _left_over(result: Result) -> str:
    """Say why a budget was not spent whole; empty if it was, or if candidates dropped out."""
    left = result.strategy.get("budget", 0) - result.num_evaluations
    if left <= 0 or result.stopped_by != "budget" or len(result.active) < len(result.candidates):
        return ""
    verb = "was" if left == 1 else "were"
    return f" {count_text(left, 'run')} of the budget {verb} left, because a round gives its candidates equally many."


def spent_in_words(result: Result) -> str:
    """State the time of all runs and, if it is decided, the runs of a plain loop; empty if neither is known."""
    time = f"The runs took {duration_text(result.seconds)} across all workers." if result.seconds else ""
    plain = result.plain_loop
    if plain is None:
        return time
    low, high, limit = plain["low"], plain["high"], " (the limit)" if plain["is_limited"] else ""
    number = f"{low} to {high}" if low < high else f"{low}"
    return f"{time} Running all candidates equally often would take about {number} runs{limit}.".strip()


def queries_in_words(result: DocumentsResult) -> str:
    """State the number of queries and their cost; empty if they are unknown."""
    if result.num_queries is None:
        return ""
    were = "was" if result.num_queries == 1 else "were"
    return f"{count_text(result.num_queries, 'query')} {were} made, at a total cost of {result.cost:g}."


def _documents_ran_out(result: DocumentsResult) -> str:
    leading, number = result.leading, result.documents["num_documents"]
    lead, size = result.leader, result.documents["batch_size"]
    left = [system for system in result.candidates if not system.withdrawn]
    fewer = [system.name for system in left if system.num_documents + system.failures * size < number]
    level = [s.name for s in left if (s.measure, s.num_documents) == (lead.measure, lead.num_documents) and s != lead]
    what = f"The systems answered all {number} documents: {leading} is the best on this file"
    sure = ""
    if lead.prob_best is not None:
        sure = f" It is the best on other documents like these with probability {probability_text(lead.prob_best)}."
    if leading in fewer:
        what = f"No documents are left for the next step of the plan: {leading} leads"
    elif fewer:
        what = f"{leading} is the best of the systems that answered all {number} documents"
        because = "" if "budget" in result.strategy else " because they were unlikely to be the best"
        sure += f" {' and '.join(fewer)} answered fewer{because}."
    equal = f", level with {' and '.join(level)}" if level else ""
    return f"{what}, with {result.metric} {number_text(lead.measure)}{equal}, after {_done(result)}.{sure}"


def scores_in_words(result: Result, **about: Any) -> List[str]:
    """Describe the decision about a table of scores, or about the two candidates of the comparison `pair`."""
    known = {"pair": None, "target": None, "needs": _lacking(result), **about}
    return render_paragraphs("scores.j2", result=result, **known)


def replay_in_words(summary: Mapping[str, Any]) -> List[str]:
    known = {"minimise": False, "notes": (), **summary}
    return render_paragraphs("replay.j2", **known, plan=command("plan"))
