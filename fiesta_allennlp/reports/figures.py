"""The three figures of a report: the scores, their differences on shared splits, and P(best) after each run, as in
figure 2 of the FIESTA paper (Moss et al. 2019)."""

import base64
import io
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

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
from fiesta_allennlp.core.texts import count_text
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

MIN_SCORES_OF_WHOLE_INTERVAL = 4
"""With fewer scores, an interval may continue beyond the axis, because it would squeeze the scores."""

LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the yellow, which is too pale."""

LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))


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


def draw_all(report: Report, directory: Path) -> Mapping[str, Picture]:
    """Draw every figure that has something to show, by name in the order of registration, and as PDF into a
    directory, where old files of the others are removed."""
    pictures: Dict[str, Picture] = {}
    with figure_style():
        for name, figure_class in ReportFigure.classes().items():
            figure, path = figure_class(), directory / f"{name}.pdf"
            path.unlink(missing_ok=True)
            if (drawing := figure.draw(report)) is not None:
                pictures[name] = save_picture(drawing, path, figure.caption(report))
    return pictures


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


@ReportFigure.register("distributions")
class Distributions(ReportFigure):
    """Draw scores, the mean with its interval, and the median of each candidate; None by documents."""

    def draw(self, report: Report) -> Optional[Figure]:
        candidates, result = report.result.compared, report.result
        scores = [score for candidate in candidates for score in candidate.scores]
        if not scores:
            return None
        figure, axes = new_axes(figure_height(len(candidates)))
        wide_intervals = [c.interval for c in candidates if c.num_evaluations >= MIN_SCORES_OF_WHOLE_INTERVAL]
        set_score_axis(axes, f"{result.scored} {result.metric_text}".lstrip(), scores, wide_intervals)
        notes = []
        for row, candidate in enumerate(candidates):
            draw_points(axes, candidate.scores, row, colour=colour_of(report, candidate.name))
            if candidate.num_evaluations > 1:
                axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
                draw_mean(axes, candidate.mean, candidate.interval, row)
            note = f"n = {candidate.num_evaluations}" if candidate.scores else "no score"
            notes.append(f"{note}\n{candidate.state}" if candidate.withdrawn else note)
        add_rows(axes, report, [c.name for c in candidates], notes=notes)
        score_mark = legend_mark("score", "o", color="0.4", markersize=3)
        add_legend(figure, [score_mark, *mean_legend_marks(), legend_mark("median", "|", color="black")])
        return figure

    def caption(self, report: Report) -> str:
        return (
            f"Each point is the {f'{report.result.scored} score'.lstrip()} of one run. The interval is that of the "
            "mean. An arrow marks an interval that goes on beyond the plot."
        )


@ReportFigure.register("differences")
class Differences(ReportFigure):
    """Draw the differences on shared splits and their mean with its interval; without such splits, Welch's interval."""

    def draw(self, report: Report) -> Optional[Figure]:
        comparisons = [c for c in report.comparisons if c.mean_difference is not None]
        if not comparisons:
            return None
        result = report.result
        figure, axes = new_axes(figure_height(len(comparisons)))
        paired_differences = [difference for comparison in comparisons for difference in comparison.paired_differences]
        means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
        first_name = labels(report)[comparisons[0].first]
        label = f"{first_name} minus the rival\n" + f"{result.scored} {result.metric_name}".lstrip()
        intervals = [comparison.interval for comparison in comparisons]
        set_score_axis(axes, label, [0.0, *paired_differences, *means], intervals)
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)
        marks = [legend_mark("split", "o", color="0.4", markersize=3)] if paired_differences else []
        marks += mean_legend_marks()
        if result.margin:
            axes.axvspan(-result.margin, result.margin, color="0.85", zorder=0)
            marks.append(legend_mark(f"margin {result.margin:g}", "s", color="0.85", markersize=8))
        for row, comparison in enumerate(comparisons):
            draw_points(axes, comparison.paired_differences, row, colour=colour_of(report, comparison.second))
            draw_mean(axes, means[row], intervals[row], row)
        notes = [f"{c.num_ahead} of {c.num_pairs}" if c.num_pairs else "unpaired" for c in comparisons]
        columns: Dict[str, Any] = {"notes": notes, "heading": "splits ahead"} if paired_differences else {}
        add_rows(axes, report, [c.second for c in comparisons], **columns)
        add_legend(figure, marks)
        return figure

    def caption(self, report: Report) -> str:
        side = "Left" if report.result.minimise else "Right"
        text = (
            "Each point is one split that both candidates ran on. Without shared splits, the line is Welch's interval "
            f"of the two means. {side} of 0, the first candidate is better."
        )
        return f"{text} The gray band is the margin, {report.result.margin:g}." if report.result.margin else text


@ReportFigure.register("path")
class ProbabilityPath(ReportFigure):
    """Draw a line of P(best) for each candidate. The seven best are named, the others grey."""

    def draw(self, report: Report) -> Optional[Figure]:
        path = report.path
        if not path:
            return None
        figure, axes = new_axes(2.9)
        run_counts = [point.num_evaluations for point in path]
        names = [candidate.name for candidate in report.result.ranked if candidate.name in path[-1].prob_best]
        others = names[len(LINE_COLOURS) :]
        short_names = labels(report)
        looks: Dict[str, Dict[str, Any]] = {
            name: {"color": colour, "linestyle": style, "linewidth": 1.6, "label": short_names[name]}
            for name, colour, style in zip(names, LINE_COLOURS, LINE_STYLES, strict=False)
        }
        looks.update({name: {"color": "0.75", "linewidth": 0.7, "zorder": 1} for name in others})
        if others:
            looks[others[0]]["label"] = count_text(len(others), "other")
        for name, look in looks.items():
            axes.plot(run_counts, [point.prob_best.get(name, np.nan) for point in path], **look)
            axes.plot(run_counts[-1], path[-1].prob_best[name], "o", color=look["color"], markersize=4, clip_on=False)
        if report.strategy.confidence is not None:
            label = f"confidence {report.strategy.confidence:g}"
            axes.axhline(report.strategy.confidence, color="black", linewidth=0.8, linestyle=(0, (1, 1)), label=label)
        figure.legend(loc="outside right upper", handlelength=2.6)
        axes.set(ylim=(0, 1), xlabel=report.result.words.finished, ylabel="P(best)")
        if len(run_counts) > 1:
            axes.set_xlim(run_counts[0], run_counts[-1])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.grid(color="0.93", linewidth=0.6)
        return figure

    def caption(self, report: Report) -> str:
        words = report.result.words
        text = f"P(best) of each {words.candidate} after each of the {words.finished}."
        order = " The order of these scores is unknown. They are drawn as if the candidates had taken turns."
        return text if report.is_selection else text + order


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


def draw_points(axes: Axes, values: Sequence[float], row: int, *, colour: str) -> None:
    """Draw the points of a row. More than two make a band, in which neighbouring and equal ones stay apart."""
    sides = (np.arange(len(values)) * 0.6180339887 % 1) * 2 - 1  # from -1 to 1
    heights = row + 0.22 * sides * (len(values) > 2)
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
