"""What came out, in two sentences or so."""

from typing import Any, List, Mapping, Optional, Tuple

from fiesta_allennlp.reports.content import CandidateReport, Comparison
from fiesta_allennlp.selection.summary import count_text, duration_text, probability_text


def equal_evaluations(candidates: Tuple[CandidateReport, ...], best: Optional[str]) -> Optional[int]:
    """How many evaluations it takes to evaluate every candidate that has any as often as `best`."""
    known = {candidate.name: candidate.num_evaluations for candidate in candidates if candidate.num_evaluations}
    return known[best] * len(known) if best in known else None


def selection_in_words(summary: Mapping[str, Any], *, running: bool, equal: Optional[int]) -> Tuple[str, ...]:
    """The decision of a selection, or how it stands, and what equal allocation would have cost where it is more.

    # Parameters

    summary : the content of `selection.json`.
    equal : the evaluations of equal allocation.
    """
    done = f"{count_text(summary['num_evaluations'], 'evaluation')} of {len(summary['candidates'])} candidates"
    words = [running_in_words(summary, done) if running else in_words(summary)]
    if equal is not None and equal > summary["num_evaluations"]:
        words.append(_cost_in_words(summary, equal))
    return tuple(words)


def running_in_words(summary: Mapping[str, Any], done: str) -> str:
    """How a selection stands that is at work, after what was `done`."""
    best, confidence = summary["best"], summary["confidence"]
    if best is None or confidence is None:
        return f"The selection is running; after {done} nothing can be said yet."
    within = f"is within {summary['margin']:g} of the best" if summary["margin"] else "leads"
    return (
        f"The selection is running; after {done} {best} {within} with probability {probability_text(confidence)}, by "
        f"{summary['metric']}."
    )


def _cost_in_words(summary: Mapping[str, Any], equal: int) -> str:
    spent, equal_seconds = summary["seconds"], summary["seconds_of_equal_allocation"]
    text = f"Evaluating every candidate as often as {summary['best']} would have taken {count_text(equal, 'training')}"
    if equal_seconds:
        text += f" and {duration_text(equal_seconds)}, in place of {summary['num_evaluations']} and "
        return f"{text}{duration_text(spent)}, all workers together."
    return f"{text}, in place of {summary['num_evaluations']}."


def table_in_words(
    candidates: Tuple[CandidateReport, ...],
    best: Optional[str],
    confidence: Optional[float],
    *,
    metric: str,
    belief: str,
    min_evaluations: int,
) -> Tuple[str, ...]:
    """What a table of scores says. The belief needs `min_evaluations` of every candidate."""
    number = sum(candidate.num_evaluations for candidate in candidates)
    scores = f"{count_text(number, 'score')} of {len(candidates)} candidates"
    if best is None or confidence is None:
        needed = count_text(min_evaluations, "score")
        return (f"Nothing can be said of {scores}: the belief {belief} needs {needed} of every candidate.",)
    return (
        f"{best} is the best with probability {probability_text(confidence)}, by {metric}, after {scores}.",
        "These scores are a table: nothing is known of the order in which they were made.",
    )


def pair_in_words(
    comparison: Comparison, best: Optional[str], confidence: Optional[float], metric: str
) -> Tuple[str, ...]:
    """How two candidates compare."""
    difference, interval = comparison.mean_difference, comparison.interval
    if difference is None:
        return (f"{comparison.first} and {comparison.second} cannot be compared: one of them has no score.",)
    words: List[str] = []
    if best is not None and confidence is not None:
        other = comparison.second if best == comparison.first else comparison.first
        words.append(f"{best} is better than {other} with probability {probability_text(confidence)}, by {metric}.")
    over = f"over {count_text(comparison.num_pairs, 'shared split')}" if comparison.paired else "without shared splits"
    ends = "" if interval is None else f" (95 % interval {interval[0]:.4f} to {interval[1]:.4f})"
    words.append(f"{comparison.first} less {comparison.second} is {difference:+.4f}{ends}, {over}.")
    return tuple(words)


def in_words(summary: Mapping[str, Any]) -> str:
    """The decision in one or two sentences."""
    best, stopped_by = summary["best"], summary["stopped_by"]
    trained = f"{count_text(summary['num_evaluations'], 'evaluation')} of {len(summary['candidates'])} candidates"
    if summary["num_failures"]:
        trained += f" and {count_text(summary['num_failures'], 'failure')}"
    if stopped_by == "interrupted":
        return f"Interrupted after {trained}; nothing that finished is lost. {leaning(summary)}".strip()
    if stopped_by == "failures":
        left = f"only {best} is left" if best else "no candidate is left"
        return f"No comparison: after {trained} {left}, because the others failed too often. See their reasons."
    if stopped_by == "max_evaluations":
        return f"Undecided after {trained}, the most that was allowed. {leaning(summary)}".strip()
    if stopped_by == "max_hours":
        return f"Undecided after {trained}, in the time that was allowed. {leaning(summary)}".strip()
    margin = f" within {summary['margin']:g} of the best" if summary["margin"] else " the best"
    confidence = summary["confidence"]
    sure = "" if confidence is None else f" with probability {probability_text(confidence)}"
    if summary["margin"] and confidence is not None:
        prob_best = next(c["prob_best"] for c in summary["candidates"] if c["name"] == best)
        sure += f" (the very best with {probability_text(prob_best)})"
    return f"{best} is{margin}{sure}, by {summary['metric']}, after {trained}.{_ahead(summary)}"


def savings_in_words(summary: Mapping[str, Any]) -> str:
    """The time saved against equal allocation, in a sentence; empty where there is nothing to compare or to boast."""
    equal, spent = summary["seconds_of_equal_allocation"], summary["seconds"]
    if equal is None or not equal > spent:
        return ""
    return (
        f"Training took {duration_text(spent)}, all workers together. Training every candidate as often as "
        f"{summary['best']} would have taken {duration_text(equal)}, so {1 - spent / equal:.0%} was saved."
    )


def _ahead(summary: Mapping[str, Any]) -> str:
    """Why a winner has not the highest mean of the table; empty where it has, or where the paired scores do not say."""
    ahead = summary["ahead_on_shared_splits"]
    if ahead is None:
        return ""
    return (
        f" {ahead['of']} has a higher mean, but not over the same splits: on the {ahead['num_splits']} that both have "
        f"seen, {summary['best']} is ahead by {ahead['difference']:.2g}."
    )


def leaning(summary: Mapping[str, Any]) -> str:
    """Between which two it stands, with their probabilities, and the margin that would decide it; empty where nothing
    can be said yet."""
    known = [c for c in summary["candidates"] if c["prob_best"] is not None]
    first = sorted(known, key=lambda c: -c["prob_best"])[:2]
    if len(first) < 2:
        return ""
    names = " and ".join(f"{c['name']} (best with probability {probability_text(c['prob_best'])})" for c in first)
    found = summary["credible_margin"]
    if found is None:
        return f"It stands between {names}."
    return f"It stands between {names}. With a margin of {found['margin']:g} it would be decided, for {found['best']}."
