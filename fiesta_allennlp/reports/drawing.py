"""The base class of the figures of a report, the parts that they share, and their files. It imports matplotlib, so it
is imported late. Nothing in a figure depends on colour alone."""

import base64
import io
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.patheffects import Normal
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from fiesta_allennlp.choosing.t_tests import Interval
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import atomic_replacement
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.reports.record import Report

BEST_COLOUR, OTHER_COLOUR, WITHDRAWN_COLOUR = "#0072B2", "#6E6E6E", "#ABABAB"
"""The best candidate, the others, and those that were withdrawn."""

FIGURE_WIDTH = 4.05
"""Inches. Three fit side by side on a page, and on a screen of 390 pixels the text has 11 of them."""

FONT_NAME, FONT_SIZE = "DejaVu Sans", 9.0
"""The font of every text, and its size in points."""

FIGURE_STYLE = {
    "font.family": FONT_NAME,
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "fiesta",
}

MAX_NAME_LENGTH = 18
"""Characters of the name of a candidate."""

MEAN_MARKER: Dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 4.5}
"""The look of the diamond of a mean."""


class ReportFigure(Registrable):
    """A figure of a report. Its registered name is that of its file."""

    @abstractmethod
    def draw(self, report: Report) -> Optional[Figure]:
        """Return the drawing, or None if the report has nothing to show."""

    @abstractmethod
    def caption(self, report: Report) -> str:
        """Return the caption of a drawing, which is its alternative text as well."""


@dataclass(frozen=True)
class Picture:
    """A figure as the data URI of an SVG picture, its size in CSS pixels, and its caption, which is the alternative
    text."""

    uri: str
    width: int
    height: int
    caption: str


def figure_style() -> ContextManager[None]:
    """Set the look of all figures that are made and saved within; a user's own settings play no part."""
    return style.context(["default", FIGURE_STYLE])


def save_picture(drawing: Figure, pdf: Path, caption: str) -> Picture:
    """Return a drawing as a picture for a page, and save it as a PDF."""
    if not isinstance(drawing, Figure):
        raise ConfigError(f"figure '{pdf.stem}': draw must return a matplotlib Figure or None but got {drawing!r}.")
    svg = io.BytesIO()  # from its own canvas, because `savefig` draws everything once more to measure it
    FigureCanvasSVG(drawing).print_svg(svg, metadata={"Date": None, "Creator": None})
    drawing.set_layout_engine("none")  # the layout is found, and stays
    for text in drawing.findobj(Text):
        text.set_path_effects([Normal()])  # outlines, because to cut a font to size takes as long as all the rest
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replacement(pdf) as temporary_path:
        FigureCanvasPdf(drawing).print_pdf(temporary_path, metadata={"CreationDate": None})
    uri = "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode()
    width, height = drawing.get_size_inches() * 96
    return Picture(uri, round(width), round(height), caption)


def new_axes(height: float) -> Tuple[Figure, Axes]:
    figure = Figure(figsize=(FIGURE_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def figure_height(num_rows: int) -> float:
    return 0.95 + num_rows * (0.5 if num_rows <= 4 else 0.38 if num_rows <= 12 else 0.28)


def labels(report: Report) -> Dict[str, str]:
    """Return the name of every candidate as a figure shows it."""
    font = get_font(findfont(FONT_NAME))
    names = [candidate.name for candidate in report.result.ranked]
    return shorten_names(names, MAX_NAME_LENGTH, has_glyph=lambda c: bool(font.get_char_index(ord(c))))


def shorten_names(names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool]) -> Dict[str, str]:
    """Return names cut in the middle to `length` characters. Those that would look the same get their place in front,
    and characters that cannot be drawn become a box."""
    drawable_names = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    short_names = {name: _cut_middle(text, length) for name, text in drawable_names.items()}
    num_uses = Counter(short_names.values())
    for position, name in enumerate(names, start=1):
        if num_uses[short_names[name]] > 1:
            position_prefix = f"#{position} "
            short_names[name] = position_prefix + _cut_middle(drawable_names[name], length - len(position_prefix))
    return short_names


def _cut_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    tail_length = (length - 1) // 2
    return text[: length - 1 - tail_length] + "…" + text[len(text) - tail_length :]


def colour_of(report: Report, name: str) -> str:
    is_active = any(candidate.name == name for candidate in report.result.active)
    return BEST_COLOUR if name == report.result.leading else OTHER_COLOUR if is_active else WITHDRAWN_COLOUR


def add_rows(axes: Axes, report: Report, names: Sequence[str], *, notes: Sequence[str] = (), heading: str = "") -> None:
    """Make one row for each candidate: its name on the left, and on the right a note, below `heading`."""
    short_names = labels(report)
    axes.set_yticks(range(len(names)), [short_names[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, pad=7)
    for text, name in zip(axes.get_yticklabels(), names, strict=True):
        colour = colour_of(report, name)
        text.set_color({OTHER_COLOUR: "black", WITHDRAWN_COLOUR: "0.45"}.get(colour, colour))
    for row, note in enumerate(notes):
        axes.text(1.015, row, note, transform=axes.get_yaxis_transform(), va="center")
    axes.text(1.015, -0.62, heading, transform=axes.get_yaxis_transform(), va="bottom")
    axes.grid(color="0.92", linewidth=0.6)


def set_score_axis(axes: Axes, label: str, values: Iterable[float], intervals: Iterable[Optional[Interval]]) -> None:
    """Give the axis of scores room for all `values` and all whole intervals."""
    interval_ends = [end for interval in intervals if interval is not None for end in interval]
    positions = np.array([*values, *interval_ends])
    low, high = float(positions.min()), float(positions.max())
    padding = 0.06 * (high - low) or 0.02 * abs(high) or 0.01
    axes.set(xlim=(low - padding, high + padding), xlabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3))


def spread_points(num_points: int) -> np.ndarray:
    """Return steps to the side, from -1 to 1, that keep neighbouring points apart. Shape: `(number,)`."""
    return (np.arange(num_points) * 0.6180339887 % 1) * 2 - 1


def draw_points(axes: Axes, values: Sequence[float], heights: np.ndarray, *, colour: str) -> None:
    size = 3.0 if len(values) <= 150 else 1.8
    axes.plot(values, heights, "o", color=colour, markersize=size, alpha=0.7, markeredgewidth=0, zorder=1.5)


def draw_mean(axes: Axes, mean: Optional[float], interval: Optional[Interval], row: int) -> None:
    """Draw a mean, which is None without a score on one of several tasks, and the line of its interval if there is one,
    with an arrow head where it continues beyond the axis."""
    if interval is not None:
        (low, high), (left, right) = interval, axes.get_xlim()
        axes.plot([max(low, left), min(high, right)], [row, row], color="black", linewidth=1.3, clip_on=False)
        for beyond, end, marker in ((low < left, left, CARETLEFT), (high > right, right, CARETRIGHT)):
            if beyond:
                axes.plot(end, row, marker=marker, color="black", markersize=5, clip_on=False)
    if mean is not None:
        axes.plot(mean, row, "D", **MEAN_MARKER)


def add_legend(figure: Figure, marks: Sequence[Line2D]) -> None:
    figure.legend(handles=marks, loc="outside upper left", ncols=len(marks), columnspacing=0.8, handletextpad=0.1)


def legend_mark(text: str, marker: str, **properties: Any) -> Line2D:
    return Line2D([], [], marker=marker, linestyle="", label=text, **properties)


def mean_legend_marks() -> List[Line2D]:
    return [legend_mark("mean", "D", **MEAN_MARKER), legend_mark("95% interval", "_", color="black", markersize=9)]
