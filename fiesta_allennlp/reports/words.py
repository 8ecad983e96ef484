"""Describes in sentences the outcome of a selection, a table of scores, two candidates or a replay.

`summary` is the content of `selection.json`, with a record for each candidate.
"""

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import command
from fiesta_allennlp.core.records import UNDECIDED
from fiesta_allennlp.reports.formats import render_paragraphs
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.summary import (
    CandidateSummary,
    count_text,
    duration_text,
    loss_text,
    number_text,
    probability_text,
)

if TYPE_CHECKING:
    from fiesta_allennlp.reports.reading import Words


def selection_in_words(summary: Mapping[str, Any], *, running: bool = False) -> Tuple[str, ...]:
    """Describe the decision or the state of a selection, and what it spent, sentence by sentence."""
    decision = running_in_words(summary) if running else in_words(summary)
    spent = queries_in_words(summary) if "documents" in summary else spent_in_words(summary)
    collapsed = collapsed_in_words(summary)
    return tuple(filter(None, (decision, *collapsed, summary.get("scored_on"), scope_in_words(summary), spent)))


def collapsed_in_words(summary: Mapping[str, Any]) -> Tuple[str, ...]:
    """Describe runs far from their candidate's others. Early versions did not record them."""
    return tuple(found["text"] for found in summary.get("collapsed", ()))


def scope_in_words(summary: Mapping[str, Any]) -> str:
    """Describe the limits of scores on official splits or on the validation set."""
    sentences = []
    if summary.get("splits") == OFFICIAL:
        sentences.append("P(best) is about new seeds on this one split, not about new data.")
    if summary.get("score") == "validation":
        sentences.append(
            "The scores are on the validation set, which a run may also use to choose its epoch or settings, so they "
            "tend to be better than scores on unseen data."
        )
    return " ".join(sentences)


def failures_in_words(summary: Mapping[str, Any]) -> List[str]:
    """Name every failure, by reason, and every candidate that takes no part."""
    sentences: List[str] = []
    for candidate in summary["candidates"]:
        failed = failed_runs(candidate)
        missed = [run for reason, runs in failed.items() if reason.startswith("score: ") for run in runs]
        sentences += [f"failed: {', '.join(runs)} {why}" for why, runs in failed.items() if runs[0] not in missed]
        if missed:
            sentences.append(
                f"{candidate.name}: {candidate.missed_text} runs missed --min-score and are not in its mean: "
                f"{', '.join(missed)}"
            )
        if candidate.withdrawn:
            what = "removed" if candidate.out == "removed" else "dropped out"
            sentences.append(f"{what}: {candidate.name}: {candidate.withdrawn_because}")
    return sentences


def failed_runs(candidate: CandidateSummary) -> Dict[str, List[str]]:
    """Return the names of a candidate's failed runs, by reason."""
    runs: Dict[str, List[str]] = {}
    for failure in candidate.failure_reasons:
        number, _, reason = failure.removeprefix(f"{candidate.name}-").partition(" ")
        runs.setdefault(reason, []).append(f"{candidate.name}-{number}")
    return runs


def in_words(summary: Mapping[str, Any]) -> str:
    best, stopped_by, done = summary["best"], summary["stopped_by"], _done(summary)
    if stopped_by == "documents":
        return _documents_ran_out(summary)
    if stopped_by == "interrupted":
        kept = "no answer is lost" if "documents" in summary else "nothing that finished is lost"
        return f"Interrupted after {done}; {kept}. {leaning(summary)}".strip()
    if stopped_by == "failures":
        left = next((f"only {c.name} is" for c in summary["candidates"] if not c.withdrawn), "no candidate is")
        return f"No comparison: after {done}, {left} left. The others failed too often; see the reasons for each."
    if stopped_by in UNDECIDED:
        why = "is the limit" if stopped_by == "max_hours" else "leaves too few runs to decide"
        return f"Inconclusive after {done}: {flag(stopped_by)} {why}. {leaning(summary)}".strip()
    confidence = summary["confidence"]
    if not summary.get("is_decided", True):
        sure = "" if confidence is None else f" with P(best) {probability_text(confidence)}"
        return f"{best} leads{sure}, by {metric_text(summary)}, after {done}.{_ahead(summary)}{_left_over(summary)}"
    margin = f" within {summary['margin']:g} of the best" if summary["margin"] else " the best"
    sure = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if summary["margin"] and confidence is not None:
        prob_best = next(c.prob_best for c in summary["candidates"] if c.name == best)
        sure += f" (the very best with {probability_text(prob_best)})"
    return f"{best} is{margin}{sure}, by {metric_text(summary)}, after {done}.{_ahead(summary)}"


def running_in_words(summary: Mapping[str, Any]) -> str:
    best, confidence, done = summary["best"], summary["confidence"], _done(summary)
    if best is None or confidence is None:
        return f"The selection is running. After {done}, P(best) is not available yet."
    within = f"is within {summary['margin']:g} of the best" if summary["margin"] else "leads"
    return (
        f"The selection is running. After {done}, {best} {within} with probability {probability_text(confidence)}, by "
        f"{metric_text(summary)}.{_loss(summary)}{_lacking(summary)}"
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


def metric_text(summary: Mapping[str, Any]) -> str:
    return Metric.of(summary["metric"]).text


def _done(summary: Mapping[str, Any]) -> str:
    """Count the work, as in `4 runs of 3 candidates and 1 failed run`."""
    candidates = summary["candidates"]
    if "documents" in summary:
        number = sum(system.num_documents for system in candidates)
        done = f"{count_text(number, 'answered document')} of {len(candidates)} systems"
    else:
        done = f"{count_text(summary['num_evaluations'], 'run')} of {len(candidates)} candidates"
    failures = summary["num_failures"]
    return f"{done} and {count_text(failures, 'failed run')}" if failures else done


def leaning(summary: Mapping[str, Any]) -> str:
    """Name the two candidates that lead and the margin that would have decided; empty without P(best)."""
    known = [c for c in summary["candidates"] if c.prob_best is not None]
    first = sorted(known, key=lambda c: (c.name != summary["best"], -c.prob_best))[:2]
    if len(first) < 2:
        return ""
    one, other = (f"{c.name} (P(best) {probability_text(c.prob_best)})" for c in first)
    found = summary["credible_margin"]
    chosen = ""
    if found is not None:
        chosen = (
            f" --margin {found['margin']:g} would have selected {found['best']}, but a margin chosen after seeing the "
            "scores voids the target."
        )
    return f"Leading: {one}, then {other}.{_loss(summary)}{_lacking(summary)}{chosen}"


def _loss(summary: Mapping[str, Any]) -> str:
    """State what choosing the leader now costs. Early versions did not record it."""
    text = loss_text(summary["best"], summary.get("expected_loss"))
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _lacking(summary: Mapping[str, Any]) -> str:
    """Name the runs that a probable winner still needs. Early versions did not record them."""
    needs = [
        f"{name} needs at least {count_text(number, 'more run')}" for name, number in summary.get("lacking", {}).items()
    ]
    return f" That is enough, but before {summary['best']} can win, {' and '.join(needs)}." if needs else ""


def _ahead(summary: Mapping[str, Any]) -> str:
    """State the lead of the winner on shared splits, which the means do not show."""
    ahead = summary.get("ahead_on_shared_splits")
    if ahead is None:
        return _ahead_in_means(summary)
    both, by = f"the {ahead['num_splits']} splits that both ran on", f"{ahead['difference']:.2g}"
    if not ahead["has_better_mean"]:
        return f" It is ahead of {ahead['of']} by {by} on {both}."
    better = "lower" if Metric.of(summary["metric"]).minimise else "higher"
    return f" {ahead['of']} has a {better} mean, but on other splits. On {both}, {summary['best']} is ahead by {by}."


def _ahead_in_means(summary: Mapping[str, Any]) -> str:
    """State the lead of the winner where runs share no splits; empty if it does not lead."""
    sign = Metric.of(summary["metric"]).sign
    means = {c.name: sign * c.mean for c in summary["candidates"] if not c.withdrawn and c.mean is not None}
    best = means.pop(summary["best"], None)
    rival = max(means, key=means.__getitem__, default=None)
    if "documents" in summary or best is None or rival is None or best <= means[rival]:
        return ""
    return f" Its mean is {best - means[rival]:.2g} ahead of {rival}."


def _left_over(summary: Mapping[str, Any]) -> str:
    """Say why a budget was not spent whole; empty if it was, or if candidates dropped out."""
    left = summary.get("strategy", {}).get("budget", 0) - summary["num_evaluations"]
    if left <= 0 or summary["stopped_by"] != "budget" or any(c.withdrawn for c in summary["candidates"]):
        return ""
    verb = "was" if left == 1 else "were"
    return f" {count_text(left, 'run')} of the budget {verb} left, because a round gives its candidates equally many."


def spent_in_words(summary: Mapping[str, Any]) -> str:
    """State the time of all runs and, if it is decided, the runs of a plain loop; empty if neither is known."""
    time = f"The runs took {duration_text(summary['seconds'])} across all workers." if summary["seconds"] else ""
    plain = summary.get("plain_loop")
    if plain is None:
        return time
    low, high, limit = plain["low"], plain["high"], " (the limit)" if plain["is_limited"] else ""
    number = f"{low} to {high}" if low < high else f"{low}"
    return f"{time} Running all candidates equally often would take about {number} runs{limit}.".strip()


def queries_in_words(summary: Mapping[str, Any]) -> str:
    """State the number of queries and their cost; empty if they are unknown."""
    number, cost = summary["num_queries"], summary["cost"]
    if number is None:
        return ""
    were = "was" if number == 1 else "were"
    return f"{count_text(number, 'query')} {were} made, at a total cost of {cost:g}."


def _documents_ran_out(summary: Mapping[str, Any]) -> str:
    best, number = summary["best"], summary["documents"]["num_documents"]
    lead = next(system for system in summary["candidates"] if system.name == best)
    size = summary["documents"]["batch_size"]
    left = [system for system in summary["candidates"] if not system.withdrawn]
    fewer = [system.name for system in left if system.num_documents + system.failures * size < number]
    level = [s.name for s in left if (s.measure, s.num_documents) == (lead.measure, lead.num_documents) and s != lead]
    what = f"The systems answered all {number} documents: {best} is the best on this file"
    sure = ""
    if lead.prob_best is not None:
        sure = f" It is the best on other documents like these with probability {probability_text(lead.prob_best)}."
    if best in fewer:
        what = f"No documents are left for the next step of the plan: {best} leads"
    elif fewer:
        what = f"{best} is the best of the systems that answered all {number} documents"
        because = "" if "budget" in summary["strategy"] else " because they were unlikely to be the best"
        sure += f" {' and '.join(fewer)} answered fewer{because}."
    equal = f", level with {' and '.join(level)}" if level else ""
    return f"{what}, with {summary['metric']} {number_text(lead.measure)}{equal}, after {_done(summary)}.{sure}"


def scores_in_words(summary: Mapping[str, Any], **about: Any) -> List[str]:
    """Describe the decision about a table of scores, or about the two candidates of the comparison `pair`."""
    known = {"metric": metric_text(summary), "pair": None, "target": None, "needs": _lacking(summary), **about}
    return render_paragraphs("scores.j2", **{**summary, **known})


def replay_in_words(summary: Mapping[str, Any]) -> List[str]:
    known = {"minimise": False, "notes": (), **summary}
    return render_paragraphs("replay.j2", **known, plan=command("plan"))
