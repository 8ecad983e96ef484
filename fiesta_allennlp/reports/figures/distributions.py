"""Score distributions: a violin for each candidate, with every score as a point."""

from typing import TYPE_CHECKING, Optional, Tuple

import numpy as np
from scipy.stats import gaussian_kde

from fiesta_allennlp.reports.content import CandidateReport, Interval, Report
from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.style import Look, colour_of, new_figure
from fiesta_allennlp.reports.tables import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_FOR_VIOLIN = 3
HALF_WIDTH = 0.36
"""Of a violin, in rows."""


def draw_distributions(report: Report, look: Look) -> "Optional[Figure]":
    """A row for each candidate: its scores, their density, the mean with its 95 % credible interval, and the median.

    The density is Gaussian with Scott's bandwidth, cut at the least and the greatest score; fewer than 3 scores, or
    equal ones, have none. None where nothing has been scored, or by documents, of which single scores say little.
    """
    candidates = ranked(report)
    scores = [score for candidate in candidates for score in candidate.scores]
    if not scores or report.by_documents:
        return None
    figure = new_figure(look, height=rows.height_of(len(candidates)))
    axes = figure.add_subplot()
    limits = rows.limits_of(scores, [(c.num_evaluations, c.interval) for c in candidates])
    for row, candidate in enumerate(candidates):
        colour = colour_of(report, candidate.name)
        _draw_scores(axes, candidate, row, colour=colour, rasterised=len(scores) > rows.MOST_POINTS)
        _draw_summary(axes, candidate, row, limits=limits)
    rows.set_scores(axes, limits, f"test {report.metric}", look=look)
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
    at = np.linspace(scores.min(), scores.max(), 80)
    density = gaussian_kde(scores)(at)
    return at, HALF_WIDTH * density / density.max()


def _legend() -> "rows.Marks":
    return [
        rows.mark("one score", "o", color="0.4", markersize=3),
        rows.mark("mean", "D", color="white", markeredgecolor="black", markersize=4.5),
        rows.mark("95 % interval of the mean", "_", color="black", markersize=9),
        rows.mark("median", "|", color="black", markersize=9),
    ]
