"""Score distributions: a violin for each candidate, with every score as a point."""

from typing import TYPE_CHECKING, Optional, Tuple

import numpy as np

from fiesta_allennlp.reports.content import CandidateReport, Report
from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import MOST_TOLD, Figure, Look, alt_text, colour_of, new_drawing
from fiesta_allennlp.reports.formats import Interval
from fiesta_allennlp.selection.summary import count_text, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LEAST_FOR_VIOLIN = 3
HALF_WIDTH = 0.36
"""Of a violin, in rows."""


def draw_distributions(report: Report, look: Look) -> "Optional[Drawing]":
    """A row for each candidate: its scores, their density, the mean with its 95 % credible interval, and the median.

    The density is Gaussian with Scott's bandwidth, cut at the least and the greatest score; fewer than 3 scores, or
    equal ones, have none. None where nothing has been scored, or by documents, of which single scores say little.
    """
    candidates = report.ranked
    scores = [score for candidate in candidates for score in candidate.scores]
    if not scores or report.by_documents:
        return None
    figure = new_drawing(look, height=rows.height_of(len(candidates)))
    axes = figure.add_subplot()
    limits = rows.limits_of(scores, [(c.num_evaluations, c.interval) for c in candidates])
    for row, candidate in enumerate(candidates):
        colour = colour_of(report, candidate.name)
        _draw_scores(axes, candidate, row, colour=colour, rasterised=len(scores) > rows.MOST_POINTS)
        _draw_summary(axes, candidate, row, limits=limits)
    rows.set_scores(axes, limits, f"{report.scored} {report.metric_text}", look=look)
    rows.set_rows(axes, report, [c.name for c in candidates], look=look, notes=[_note(c) for c in candidates])
    rows.add_legend(figure, _legend(), look=look)
    return figure


def _note(candidate: CandidateReport) -> str:
    number = f"n = {candidate.num_evaluations}" if candidate.scores else "no score"
    return f"{number}\nwithdrawn" if candidate.withdrawn else number


def _draw_scores(axes: "Axes", candidate: CandidateReport, row: int, *, colour: str, rasterised: bool) -> None:
    scores = np.array(candidate.scores)
    widths = np.zeros(len(scores))
    if len(scores) >= LEAST_FOR_VIOLIN and np.ptp(scores) > 0:
        at, density = _density(scores)
        axes.fill_between(at, row - density, row + density, color=colour, alpha=0.25, linewidth=0.5)
        widths = np.interp(scores, at, density)
    places = row + 0.85 * widths * rows.spread(len(scores))
    rows.draw_points(axes, candidate.scores, places, colour=colour, rasterised=rasterised)


def _draw_summary(axes: "Axes", candidate: CandidateReport, row: int, *, limits: Interval) -> None:
    """Of two or more scores; a single one speaks for itself."""
    if candidate.num_evaluations < 2 or candidate.mean is None or candidate.median is None:
        return
    if candidate.interval is not None:
        rows.draw_interval(axes, candidate.interval, row, limits=limits)
    axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
    rows.draw_mean(axes, candidate.mean, row)


def _density(scores: np.ndarray) -> "Tuple[np.ndarray, np.ndarray]":
    """Where, and how wide the half of a violin is there. Shapes: `(num_places,)` twice."""
    from scipy.stats import gaussian_kde

    at = np.linspace(scores.min(), scores.max(), 80)
    density = gaussian_kde(scores)(at)
    return at, HALF_WIDTH * density / density.max()


def _legend() -> "rows.Marks":
    return [
        rows.mark("one score", "o", color="0.4", markersize=3),
        rows.mark_of_mean(),
        rows.mark_of_interval("95 % interval of the mean"),
        rows.mark("median", "|", color="black", markersize=9),
    ]


def distributions_text(report: Report) -> str:
    """Range, mean and median of the first few candidates; the range of means of the others."""
    scored = [candidate for candidate in report.ranked if candidate.scores]
    told = [_scores_text(candidate) for candidate in scored[:MOST_TOLD]]
    means = [candidate.mean for candidate in scored[MOST_TOLD:] if candidate.mean is not None]
    if means:
        means_text = f"{number_text(min(means))} to {number_text(max(means))}"
        told.append(f"{count_text(len(means), 'other candidate')}: means from {means_text}")
    without = len(report.candidates) - len(scored)
    if without:
        told.append(f"{count_text(without, 'candidate')} without a score")
    return alt_text(f"Distributions of {report.scored} {report.metric_text}, a row for each candidate", told)


def _scores_text(candidate: CandidateReport) -> str:
    out = ", withdrawn" if candidate.withdrawn else ""
    if candidate.num_evaluations == 1:
        return f"{candidate.name}: one score, {number_text(candidate.mean)}{out}"
    ends = f"{number_text(candidate.min)} to {number_text(candidate.max)}"
    middle = f"mean {number_text(candidate.mean)}, median {number_text(candidate.median)}"
    return f"{candidate.name}: {count_text(candidate.num_evaluations, 'score')} from {ends}, {middle}{out}"


def distributions_caption(report: Report) -> str:
    many = f" More than {rows.MOST_POINTS} points are drawn as pixels."
    return (
        f"Each point is the {report.scored} score of one run. The shape around three or more points is their density "
        "(Gaussian kernel, Scott's bandwidth), cut at the lowest and the highest score. An arrow marks an "
        "interval that continues."
    ) + (many if report.num_evaluations > rows.MOST_POINTS else "")


DISTRIBUTIONS = Figure("distributions", draw_distributions, distributions_text, distributions_caption)
