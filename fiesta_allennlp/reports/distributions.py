"""The scores of one candidate in numbers."""

from typing import AbstractSet, Mapping, Optional

import numpy as np
from scipy import stats

from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.reports.content import CandidateReport, Interval
from fiesta_allennlp.reports.summary import summarise_candidate

LEVEL = 0.95
"""Of every interval in a report."""


def report_candidate(
    history: History,
    decision: Decision,
    name: str,
    *,
    development: Optional[str],
    removed: AbstractSet[str] = frozenset(),
    num_parameters: Optional[Mapping[str, int]] = None,
) -> CandidateReport:
    """All that a report says of one candidate.

    `development` names the metric that is its development score; None where there is none. `removed` are candidates
    that the user took out.
    """
    evaluations = sorted(
        (e for e in history.evaluations if e.request.candidate == name), key=lambda e: e.request.replicate
    )
    scores = np.array([e.score for e in evaluations])
    summary = summarise_candidate(history, decision, name, removed=name in removed)
    has_any = len(scores) > 0
    return CandidateReport(
        name=name,
        scores=tuple(scores.tolist()),
        split_seeds=tuple(e.request.split_seed for e in evaluations),
        replicates=tuple(e.request.replicate for e in evaluations),
        development_scores=()
        if development is None
        else tuple(_finite(e.metrics.get(development)) for e in evaluations),
        mean=summary["mean"],
        sd=summary["sd"],
        median=float(np.median(scores)) if has_any else None,
        min=float(scores.min()) if has_any else None,
        max=float(scores.max()) if has_any else None,
        interval=mean_interval(scores),
        prob_best=summary["prob_best"],
        prob_within_margin=summary["prob_within_margin"],
        failures=tuple(summary["failure_reasons"]),
        withdrawn=summary["withdrawn"],
        withdrawn_because=summary["withdrawn_because"],
        seconds=summary["seconds"],
        mean_seconds=summary["mean_seconds"],
        num_parameters=(num_parameters or {}).get(name),
    )


def _finite(value: Optional[float]) -> Optional[float]:
    """None in place of a development score that is not a number, as of a training without an epoch."""
    return value if value is not None and np.isfinite(value) else None


def mean_interval(values: np.ndarray) -> Optional[Interval]:
    """mean -+ t(.975; n - 1) s / sqrt(n), for values of shape `(n,)`: the 95 % interval of a normal mean, as confidence
    interval and, under the prior 1 / sigma, as credible interval. None for fewer than 2 values."""
    if len(values) < 2:
        return None
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * stats.sem(values))
    return float(np.mean(values)) - half, float(np.mean(values)) + half
