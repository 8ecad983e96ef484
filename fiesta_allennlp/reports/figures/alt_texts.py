"""What each figure shows, in words with numbers, for those who cannot see it."""

from typing import Callable, Mapping, Sequence

from fiesta_allennlp.reports.content import CandidateReport, Comparison, PathPoint, Report
from fiesta_allennlp.reports.figures.differences import ahead_text, shown_comparisons
from fiesta_allennlp.reports.tables import interval_text, number_text, ranked
from fiesta_allennlp.selection.summary import count_text, probability_text

MOST = 4
"""Candidates told one by one; of the others a summary."""


def distributions_text(report: Report) -> str:
    """Range, mean and median of the first few candidates; the range of means of the others."""
    scored = [candidate for candidate in ranked(report) if candidate.scores]
    told = [_scores_text(candidate) for candidate in scored[:MOST]]
    means = [candidate.mean for candidate in scored[MOST:] if candidate.mean is not None]
    if means:
        means_text = f"{number_text(min(means))} to {number_text(max(means))}"
        told.append(f"{count_text(len(means), 'other candidate')}: means from {means_text}")
    without = len(report.candidates) - len(scored)
    if without:
        told.append(f"{count_text(without, 'candidate')} without a score")
    return _sentences(f"Distributions of test {report.metric}, a row for each candidate", told)


def _scores_text(candidate: CandidateReport) -> str:
    out = ", withdrawn" if candidate.withdrawn else ""
    if candidate.num_evaluations == 1:
        return f"{candidate.name}: one score, {number_text(candidate.mean)}{out}"
    ends = f"{number_text(candidate.min)} to {number_text(candidate.max)}"
    middle = f"mean {number_text(candidate.mean)}, median {number_text(candidate.median)}"
    return f"{candidate.name}: {count_text(candidate.num_evaluations, 'score')} from {ends}, {middle}{out}"


def measures_text(report: Report) -> str:
    """The measure and the interval of the first few systems; the range of measures of the others."""
    known = [(c.name, c.asked) for c in ranked(report) if c.asked is not None and c.asked.measure is not None]
    told = [
        f"{name}: {number_text(asked.measure)} over {count_text(asked.num_documents, 'document')}"
        + ("" if asked.interval is None else f", 95 % interval {interval_text(asked.interval)}")
        for name, asked in known[:MOST]
    ]
    others = [asked.measure for _, asked in known[MOST:] if asked.measure is not None]
    if others:
        told.append(f"{_others(len(others), report)}: from {number_text(min(others))} to {number_text(max(others))}")
    return _sentences(f"{report.metric} of each system", told)


def _others(number: int, report: Report) -> str:
    return f"{number} other {report.words.candidates_of(number)}"


def differences_text(report: Report) -> str:
    """The nearest rivals, and the range of the others."""
    nearest = sorted(shown_comparisons(report), key=lambda comparison: abs(comparison.mean_difference or 0.0))
    told = [_difference_text(comparison) for comparison in nearest[:MOST]]
    others = [float(comparison.mean_difference or 0.0) for comparison in nearest[MOST:]]
    if others:
        ends = f"{min(others):+.4f} to {max(others):+.4f}"
        told.append(f"{count_text(len(others), 'other rival')}: mean differences from {ends}")
    lead = f"Differences in test {report.metric} on shared splits, {nearest[0].first} less a rival, the nearest first"
    return _sentences(lead, told)


def _difference_text(comparison: Comparison) -> str:
    interval = "" if comparison.interval is None else f", 95 % interval {interval_text(comparison.interval)}"
    ahead = f", ahead on {ahead_text(comparison)} splits" if comparison.num_pairs else ", no shared split"
    return f"{comparison.second}: mean difference {comparison.mean_difference:+.4f}{interval}{ahead}"


def path_text(report: Report) -> str:
    """Where the lines end, and since when the last leader has led."""
    path = [point for point in report.path if point.prob_best]
    last = path[-1]
    final = sorted(last.prob_best, key=lambda name: -last.prob_best[name])
    told = [f"{name} ends at {probability_text(last.prob_best[name])}" for name in final[:MOST]]
    if len(final) > MOST:
        rest = sum(last.prob_best[name] for name in final[MOST:])
        told.append(f"{_others(len(final) - MOST, report)} together {probability_text(rest)}")
    told.append(f"{final[0]} has led since {report.words.evaluation} {_leading_since(path, final[0])}")
    finished = f"{last.num_evaluations} {report.words.finished}"
    return _sentences(f"Probability of being the best over {finished}", told)


def _leading_since(path: Sequence[PathPoint], name: str) -> int:
    """After how many evaluations `name`, which leads at the end, came to lead for good."""
    since = path[-1].num_evaluations
    for point in reversed(path):
        if point.prob_best.get(name, 0.0) < max(point.prob_best.values()):
            break
        since = point.num_evaluations
    return since


def allocation_text(report: Report) -> str:
    """The numbers of trainings, the largest first."""
    counts = sorted(report.candidates, key=lambda candidate: -candidate.num_evaluations)
    total = report.num_evaluations
    told = [f"{c.name} {c.num_evaluations} ({c.num_evaluations / total:.0%})" for c in counts[:MOST]]
    others = [candidate.num_evaluations for candidate in counts[MOST:]]
    if others:
        each = f"{min(others)}" if min(others) == max(others) else f"{min(others)} to {max(others)}"
        told.append(f"{_others(len(others), report)} {each} each")
    if report.num_failures:
        told.append(f"{report.num_failures} {report.words.evaluations_of(report.num_failures)} failed")
    what = f"{report.words.evaluations.capitalize()} of each {report.words.candidate}"
    return _sentences(f"{what}, of {total} in all", told)


def _sentences(lead: str, told: Sequence[str]) -> str:
    return f"{lead}. " + "; ".join(told) + "."


ALT_TEXTS: Mapping[str, Callable[[Report], str]] = {
    "distributions": distributions_text,
    "measures": measures_text,
    "differences": differences_text,
    "path": path_text,
    "allocation": allocation_text,
}
"""By the figure's name. Only for reports of which that figure can be drawn."""
