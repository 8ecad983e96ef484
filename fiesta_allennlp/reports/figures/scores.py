"""The scores of each candidate: their distributions, and the measures of systems that were asked about documents."""

from typing import TYPE_CHECKING, Optional, Tuple

import numpy as np

from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import Figure, colour_of, new_drawing
from fiesta_allennlp.reports.formats import Interval
from fiesta_allennlp.reports.record import CandidateReport, Report
from fiesta_allennlp.selection.summary import count_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LEAST_FOR_VIOLIN = 3
HALF_WIDTH = 0.36
"""Of a violin, in rows."""


def draw_distributions(report: Report) -> "Optional[Drawing]":
    """Draw a row for each candidate: its scores, their density, the mean with its 95 % interval, and the median.

    The density is Gaussian with Scott's bandwidth, cut at the least and the greatest score; fewer than 3 scores, or
    equal ones, have none. None where nothing has been scored, or by documents, of which single scores say little.
    """
    candidates = report.ranked
    scores = [score for candidate in candidates for score in candidate.scores]
    if not scores or report.by_documents:
        return None
    figure = new_drawing(rows.height_of(len(candidates)))
    axes = figure.add_subplot()
    limits = rows.limits_of(scores, [(c.num_evaluations, c.interval) for c in candidates])
    for row, candidate in enumerate(candidates):
        colour = colour_of(report, candidate.name)
        _draw_scores(axes, candidate, row, colour=colour, rasterised=len(scores) > rows.MOST_POINTS)
        _draw_summary(axes, candidate, row, limits=limits)
    rows.set_scores(axes, limits, f"{report.scored} {report.metric_text}")
    rows.set_rows(axes, report, [c.name for c in candidates], notes=[_number_note(c) for c in candidates])
    one, median = rows.mark("one score", "o", color="0.4", markersize=3), rows.mark("median", "|", color="black")
    interval = rows.mark_of_interval("95 % interval of the mean")
    rows.add_legend(figure, [one, rows.mark_of_mean(), interval, median])
    return figure


def _number_note(candidate: CandidateReport) -> str:
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
    """Draw interval, median and mean of two or more scores."""
    if candidate.num_evaluations < 2 or candidate.mean is None or candidate.median is None:
        return
    if candidate.interval is not None:
        rows.draw_interval(axes, candidate.interval, row, limits=limits)
    axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
    rows.draw_mean(axes, candidate.mean, row)


def _density(scores: np.ndarray) -> "Tuple[np.ndarray, np.ndarray]":
    """Return places, and half the width of a violin there, by Scott's bandwidth sd n^(-1/5).

    Shapes: `(num_places,)` twice.
    """
    at = np.linspace(scores.min(), scores.max(), 80)
    bandwidth = scores.std(ddof=1) * len(scores) ** -0.2
    # Shape: (num_places, num_scores)
    distances = (at[:, None] - scores) / bandwidth
    density = np.exp(-0.5 * distances**2).sum(axis=1)
    return at, HALF_WIDTH * density / density.max()


def distributions_caption(report: Report) -> str:
    many = f" More than {rows.MOST_POINTS} points are drawn as pixels."
    return (
        f"Each point is the {report.scored} score of one run. The shape around three or more points is their density "
        "(Gaussian kernel, Scott's bandwidth), cut at the lowest and the highest score. An arrow marks an "
        "interval that continues."
    ) + (many if report.num_evaluations > rows.MOST_POINTS else "")


def draw_measures(report: Report) -> "Optional[Drawing]":
    """Draw a row for each system of a selection by documents: the measure of all its answers and its 95 % interval.

    None where there is nothing to draw, or of another report.
    """
    systems = [(candidate, candidate.asked) for candidate in report.ranked if candidate.asked is not None]
    ends = [end for system, _ in systems for end in system.interval or ()]
    measures = [asked.measure for _, asked in systems if asked.measure is not None]
    if not measures:
        return None
    figure = new_drawing(rows.height_of(len(systems)))
    axes = figure.add_subplot()
    limits = rows.limits_of([*measures, *ends], [])
    for row, (system, asked) in enumerate(systems):
        if system.interval is not None:
            rows.draw_interval(axes, system.interval, row, limits=limits)
        if asked.measure is not None:
            axes.plot(asked.measure, row, "o", color=colour_of(report, system.name), markersize=6)
    rows.set_scores(axes, limits, report.metric)
    notes = [
        count_text(asked.num_documents, "document") + ("\nwithdrawn" if system.withdrawn else "")
        for system, asked in systems
    ]
    rows.set_rows(axes, report, [system.name for system, _ in systems], notes=notes)
    interval = [rows.mark_of_interval("95 % interval")] if ends else []
    rows.add_legend(figure, [rows.mark("all answers together", "o", color="0.4", markersize=6), *interval])
    return figure


def measures_caption(report: Report) -> str:
    return (
        "Each point is the measure of all answers of a system, and the line its 95 % credible interval by the "
        "selection's posterior. Intervals may overlap even where P(best) is high."
    )


DISTRIBUTIONS = Figure("distributions", draw_distributions, distributions_caption)
MEASURES = Figure("measures", draw_measures, measures_caption)
