"""What came out, in two sentences or so."""

from typing import Any, List, Mapping, Optional, Tuple

from fiesta_allennlp.reports.content import CandidateReport, Comparison
from fiesta_allennlp.reports.seconds import duration_text
from fiesta_allennlp.reports.summary import count_text, in_words, probability_text


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
