"""The allocation of the runs: which candidate ran when, and how often in all."""

from typing import TYPE_CHECKING, Optional, Sequence

import numpy as np

from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import Figure, colour_of, new_drawing
from fiesta_allennlp.reports.record import CandidateReport, Report
from fiesta_allennlp.selection.summary import duration_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def draw_allocation(report: Report) -> "Optional[Drawing]":
    """Draw a row for each candidate: a stroke for every run in order of finishing, and a bar for their number.

    A table of scores has no order, and bars only. None where nothing has run.
    """
    candidates = report.ranked
    if not report.num_evaluations:
        return None
    figure = new_drawing(rows.height_of(len(candidates)))
    names = [candidate.name for candidate in candidates]
    ratios = [2, 1] if report.order else [1]
    grid = figure.add_gridspec(1, len(ratios), width_ratios=ratios, wspace=0.04)
    bars = figure.add_subplot(grid[-1])
    colours = [colour_of(report, name) for name in names]
    bars.barh(range(len(names)), [c.num_evaluations for c in candidates], height=0.6, color=colours)
    bars.set_xlabel(report.words.evaluations if report.order else "scores")
    _whole_numbers(bars)
    rows.set_rows(bars, report, names, notes=[_note(candidate) for candidate in candidates])
    if report.order:
        bars.tick_params(labelleft=False)
        strokes = figure.add_subplot(grid[0])
        _draw_order(strokes, report.order, names, colours=colours)
        rows.set_rows(strokes, report, names)
        _whole_numbers(strokes)
    return figure


def _draw_order(axes: "Axes", order: Sequence[str], names: Sequence[str], *, colours: Sequence[str]) -> None:
    """Draw the strokes of a candidate as one line with gaps: a stroke each makes large files."""
    finished = np.array(order)
    width = max(0.6, min(3.0, 150 / len(order)))
    for row, (name, colour) in enumerate(zip(names, colours, strict=True)):
        when = np.flatnonzero(finished == name) + 1
        places = np.tile([row - 0.3, row + 0.3, np.nan], len(when))
        axes.plot(np.repeat(when, 3), places, color=colour, linewidth=width, solid_capstyle="butt")
    axes.set_xlim(0, len(order) + 1)
    axes.set_xlabel("order of finishing")


def _whole_numbers(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=3))


def _note(candidate: CandidateReport) -> str:
    """Return how many runs there were, how long they took, and how many failed."""
    text = str(candidate.num_evaluations)
    if candidate.seconds:
        text += f"  {duration_text(candidate.seconds)}"
    return f"{text}\n{candidate.failures} failed" if candidate.failures else text


def allocation_caption(report: Report) -> str:
    if not report.order:
        return "The bars show the number of scores. Their order is unknown."
    return f"Each stroke is one of the {report.words.finished}. The bars show their number."


ALLOCATION = Figure("allocation", draw_allocation, allocation_caption)
