"""The look and the parts that the figures of a report share. Nothing in them depends on colour alone."""

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.ticker import MaxNLocator

from fiesta_allennlp.choosing.t_tests import Interval
from fiesta_allennlp.reports.latex_and_html import shorten_names
from fiesta_allennlp.reports.record import Report

LegendMarks = List[Tuple[str, Line2D]]

BEST_COLOUR, OTHER_COLOUR, WITHDRAWN_COLOUR = "#0072B2", "#6E6E6E", "#ABABAB"
"""The best candidate, the others, and those that were withdrawn."""

LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the yellow, which is too pale."""

FIGURE_WIDTH = 4.05
"""Inches. Three fit side by side on a page, and on a screen of 390 pixels the text has 11 of them."""

FONT_SIZE = 9.0
"""Points, of every text."""

MAX_NAME_LENGTH = 18
"""Characters of the name of a candidate."""

MEAN_MARKER: Dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 4.5}
"""The look of the diamond of a mean."""


def new_axes(height: float) -> Tuple[Figure, Axes]:
    figure = Figure(figsize=(FIGURE_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def labels(report: Report) -> Dict[str, str]:
    """Return the name of every candidate as a figure shows it."""
    font = get_font(findfont("DejaVu Sans"))
    names = [candidate.name for candidate in report.result.ranked]
    return shorten_names(names, MAX_NAME_LENGTH, has_glyph=lambda c: bool(font.get_char_index(ord(c))))


def colour_of(report: Report, name: str) -> str:
    if name == report.result.leading:
        return BEST_COLOUR
    return WITHDRAWN_COLOUR if report.candidate(name).withdrawn else OTHER_COLOUR


def figure_height(num_rows: int) -> float:
    return 0.95 + num_rows * (0.5 if num_rows <= 4 else 0.38 if num_rows <= 12 else 0.28)


def add_rows(axes: Axes, report: Report, names: Sequence[str], *, notes: Sequence[str] = (), heading: str = "") -> None:
    """Make one row for each candidate: its name on the left, and on the right a note, below `heading`."""
    short_names = labels(report)
    axes.set_yticks(range(len(names)), [short_names[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, pad=7)
    for text, name in zip(axes.get_yticklabels(), names, strict=True):
        if name == report.result.leading:
            text.set_color(BEST_COLOUR)
        elif report.candidate(name).withdrawn:
            text.set_color("0.45")
    for row, note in enumerate(notes):
        axes.text(1.015, row, note, transform=axes.get_yaxis_transform(), va="center")
    axes.text(1.015, -0.62, heading, transform=axes.get_yaxis_transform(), va="bottom")
    axes.grid(color="0.92", linewidth=0.6)


def set_score_axis(axes: Axes, limits: Interval, label: str) -> None:
    axes.set(xlim=limits, xlabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))


def draw_points(axes: Axes, values: Sequence[float], heights: np.ndarray, *, colour: str) -> None:
    size = 3.0 if len(values) <= 150 else 1.8
    axes.plot(values, heights, "o", color=colour, markersize=size, alpha=0.7, markeredgewidth=0, zorder=1.5)


def draw_interval(axes: Axes, interval: Optional[Interval], row: int) -> None:
    """Draw a line if there is an interval, with an arrow head where it continues beyond the axis."""
    if interval is None:
        return
    (low, high), (axis_left, axis_right) = interval, axes.get_xlim()
    axes.plot([max(low, axis_left), min(high, axis_right)], [row, row], color="black", linewidth=1.3, clip_on=False)
    for beyond, end, marker in ((low < axis_left, axis_left, CARETLEFT), (high > axis_right, axis_right, CARETRIGHT)):
        if beyond:
            axes.plot(end, row, marker=marker, color="black", markersize=5, clip_on=False)


def find_axis_limits(values: Iterable[float], intervals: Iterable[Optional[Interval]]) -> Interval:
    """Return the ends of an axis with room for all `values` and all whole intervals."""
    interval_ends = [end for interval in intervals if interval is not None for end in interval]
    positions = np.array([*values, *interval_ends])
    low, high = float(positions.min()), float(positions.max())
    padding = 0.06 * (high - low) or 0.02 * abs(high) or 0.01
    return low - padding, high + padding


def spread_points(num_points: int) -> np.ndarray:
    """Return steps to the side, from -1 to 1, that keep neighbouring points apart. Shape: `(number,)`."""
    return (np.arange(num_points) * 0.6180339887 % 1) * 2 - 1


def add_legend(figure: Figure, marks: LegendMarks) -> None:
    texts, lines = [text for text, _ in marks], [line for _, line in marks]
    figure.legend(lines, texts, loc="outside upper left", ncols=len(texts), columnspacing=0.8, handletextpad=0.1)


def legend_mark(text: str, marker: str, **properties: Any) -> Tuple[str, Line2D]:
    return text, Line2D([], [], marker=marker, linestyle="", **properties)


def mean_legend_marks(interval: str) -> LegendMarks:
    return [legend_mark("mean", "D", **MEAN_MARKER), legend_mark(interval, "_", color="black", markersize=9)]
