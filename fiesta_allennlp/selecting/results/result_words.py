"""The results of selections in words: scored data, collapsed and failed runs, the forecast, and the nouns of each."""

import json
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional

from fiesta_allennlp.choosing.forecast import Forecast
from fiesta_allennlp.choosing.probability.collapsed_runs import CollapsedRuns
from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import chance_text, count_text


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


def failed_notes(history: History) -> List[str]:
    """Return a note for each candidate with scores that is dropped because of its failed runs."""
    return [
        f"{name} was dropped after {count_text(history.num_counted_failures(name), 'failed run')}, although it has "
        f"{count_text(len(history.evaluations_of(name)), 'score')}. If it was not at fault, raise --max-failures."
        for name in sorted(history.withdrawn)
        if history.evaluations_of(name)
    ]


@dataclass(frozen=True)
class Words:
    """The nouns of a result for its candidates and their evaluations."""

    candidate: str = "candidate"
    candidates: str = "candidates"
    evaluation: str = "run"
    evaluations: str = "runs"
    finished: str = "finished runs"
    model: str = "model"

    def evaluation_noun(self, count: int) -> str:
        return self.evaluation if count == 1 else self.evaluations


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


def unknown_text(num_unknown: int, labels: Mapping[str, int]) -> str:
    """Format the number of answers that are no gold label, and the commonest; empty if all are gold labels."""
    labels_text = join_some([f"{json.dumps(label, ensure_ascii=False)} {number}" for label, number in labels.items()])
    return f"{num_unknown}: {labels_text}" if num_unknown else ""


def missed_text(candidate: Any) -> str:
    """Format the runs of a `CandidateResult` that missed `--min-score`, as in `1 of 20 (5%)`; empty if none did."""
    total = candidate.num_missed + candidate.num_evaluations
    return f"{candidate.num_missed} of {total} ({candidate.num_missed / total:.0%})" if candidate.num_missed else ""


def failures_text(candidate: Any) -> str:
    """Format the number of failures of a `CandidateResult`, with the share of runs that missed `--min-score`."""
    missed = missed_text(candidate)
    if not candidate.num_missed:
        return str(candidate.failures)
    return missed if candidate.failures == candidate.num_missed else f"{candidate.failures}, {missed}"
