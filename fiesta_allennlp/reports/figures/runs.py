"""The runs in their order: P(best) after each, as in figure 2 of the FIESTA paper (Moss et al. 2019), and who ran.

Of a search also the first stage: the best score over its runs, and score against seconds.
"""

from itertools import takewhile
from typing import List, Optional, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fiesta_allennlp.reports.figures import figure as parts
from fiesta_allennlp.reports.figures.base import ReportFigure
from fiesta_allennlp.reports.record import CandidateReport, PathPoint, Report
from fiesta_allennlp.selection.summary import count_text, duration_text

LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))
LEADER = {"arrowstyle": "-", "linewidth": 0.8, "linestyle": ":", "shrinkA": 1, "shrinkB": 5, "relpos": (0, 0.5)}
"""The line from a name to the end of its path: dotted and with a gap, to set it apart from the path."""

PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
"""The background of a text that lines may cross."""

HEIGHT = 3.4
"""Inches."""


@ReportFigure.register("path")
class ProbabilityPath(ReportFigure):
    """Draw a line of P(best) for each candidate. The seven best are named, the others grey."""

    section = "path"

    def draw(self, report: Report) -> Optional[Figure]:
        path = report.path
        if not path:
            return None
        figure, axes = parts.new_axes(HEIGHT)
        x = [point.num_evaluations for point in path]
        named, others = split_names(report)
        for name in others:
            axes.plot(x, _line(path, name), color="0.75", linewidth=0.7, zorder=1)
        ends: List[Tuple[float, str, str]] = []
        shown = parts.labels(report)
        for name, colour, style in zip(named, parts.LINE_COLOURS, LINE_STYLES, strict=False):
            y = _line(path, name)
            axes.plot(x, y, color=colour, linestyle=style, linewidth=1.6)
            axes.plot(x[-1], y[-1], color=colour, marker="o", markersize=4, clip_on=False, zorder=3)
            ends.append((y[-1], shown[name], colour))
        if others:
            ends.append((max(path[-1].prob_best[name] for name in others), count_text(len(others), "other"), "0.6"))
        _label_ends(axes, ends)
        _set_axes(axes, report, x)
        return figure

    def caption(self, report: Report) -> str:
        words, last = report.words, report.path[-1].prob_best
        leader, num_others = max(last, key=last.__getitem__), len(split_names(report)[1])
        text = (
            f"P(best) of each {words.candidate} after each of the {words.finished}. {leader} has led since "
            f"{words.evaluation} {led_since(report.path, leader)}."
        )
        if not report.adaptive:
            text += (
                " The order of these scores is unknown. They are drawn as if the candidates had taken turns, each in "
                "the order of its rows."
            )
        if num_others:
            others, verb = (words.candidate, "is") if num_others == 1 else (words.candidates, "are")
            text += f" {num_others} {others} with a low probability {verb} drawn as thin gray lines without a name."
        return text


def split_names(report: Report) -> Tuple[List[str], List[str]]:
    """Return the candidates whose lines have a name, the best ones, and the others."""
    names = [candidate.name for candidate in report.ranked if candidate.name in report.path[-1].prob_best]
    return names[: len(parts.LINE_COLOURS)], names[len(parts.LINE_COLOURS) :]


def _line(path: Sequence[PathPoint], name: str) -> np.ndarray:
    return np.array([point.prob_best.get(name, np.nan) for point in path])


def _label_ends(axes: Axes, ends: Sequence[Tuple[float, str, str]]) -> None:
    step = parts.FONT_SIZE * 1.25 / 72 / (HEIGHT - 0.75)
    ordered = sorted(reversed(ends), key=lambda end: end[0])
    for (y, name, colour), place in zip(ordered, apart([y for y, _, _ in ordered], step), strict=True):
        axes.annotate(
            name,
            xy=(1.0, y),
            xytext=(1.05, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            arrowprops={**LEADER, "color": colour},
        )


def apart(places: Sequence[float], step: float) -> List[float]:
    """Return rising `places`, moved until they are `step` apart and at most 1."""
    steps = step * np.arange(len(places))
    moved: List[float] = (np.minimum(np.maximum.accumulate(places - steps), 1 - steps[-1]) + steps).tolist()
    return moved


def _set_axes(axes: Axes, report: Report, x: Sequence[int]) -> None:
    asked = report.asked_confidence
    if asked is not None:
        axes.axhline(asked, color="black", linewidth=0.8, linestyle=(0, (1, 1)), zorder=0)
        axes.annotate(
            f"confidence {asked:g}",
            xy=(x[0], asked),
            xytext=(4, -3),
            textcoords="offset points",
            va="top",
            fontsize="small",
            bbox=PAPER,
            zorder=4,
        )
    axes.set_ylim(0, 1)
    if len(x) > 1:
        axes.set_xlim(x[0], x[-1])
    parts.set_whole_numbers(axes, 6)
    axes.set_xlabel(report.words.finished)
    axes.set_ylabel("P(best)")
    axes.grid(color="0.93", linewidth=0.6)


def led_since(path: Sequence[PathPoint], leader: str) -> int:
    """Return the number of the run since which a candidate has led."""
    led = takewhile(lambda point: point.prob_best.get(leader) == max(point.prob_best.values()), reversed(path))
    return min(point.num_evaluations for point in led)


@ReportFigure.register("allocation")
class Allocation(ReportFigure):
    """Draw a stroke for every run in order of finishing, which a table does not have, and bars for their number."""

    section = "allocation"

    def draw(self, report: Report) -> Optional[Figure]:
        candidates = report.ranked
        if not report.num_evaluations:
            return None
        figure = parts.new_drawing(parts.height_of(len(candidates)))
        names = [candidate.name for candidate in candidates]
        ratios = [2, 1] if report.order else [1]
        grid = figure.add_gridspec(1, len(ratios), width_ratios=ratios, wspace=0.04)
        bars = figure.add_subplot(grid[-1])
        colours = [parts.colour_of(report, name) for name in names]
        bars.barh(range(len(names)), [c.num_evaluations for c in candidates], height=0.6, color=colours)
        bars.set_xlabel(report.words.evaluations if report.order else "scores")
        parts.set_whole_numbers(bars, 3)
        parts.set_rows(bars, report, names, notes=[_note(candidate) for candidate in candidates])
        if report.order:
            bars.tick_params(labelleft=False)
            strokes = figure.add_subplot(grid[0])
            _draw_order(strokes, report.order, names, colours=colours)
            parts.set_rows(strokes, report, names)
            parts.set_whole_numbers(strokes, 3)
        return figure

    def caption(self, report: Report) -> str:
        if report.order:
            return f"Each stroke is one of the {report.words.finished}. The bars show their number."
        return "The bars show the number of scores. Their order is unknown."


def _draw_order(axes: Axes, order: Sequence[str], names: Sequence[str], *, colours: Sequence[str]) -> None:
    """Draw the strokes of a candidate as one line with gaps, because a stroke each makes large files."""
    finished = np.array(order)
    width = max(0.6, min(3.0, 150 / len(order)))
    for row, (name, colour) in enumerate(zip(names, colours, strict=True)):
        when = np.flatnonzero(finished == name) + 1
        places = np.tile([row - 0.3, row + 0.3, np.nan], len(when))
        axes.plot(np.repeat(when, 3), places, color=colour, linewidth=width, solid_capstyle="butt")
    axes.set_xlim(0, len(order) + 1)
    axes.set_xlabel("order of finishing")


def _note(candidate: CandidateReport) -> str:
    text = str(candidate.num_evaluations)
    if candidate.seconds:
        text += f"  {duration_text(candidate.seconds)}"
    return f"{text}\n{candidate.failures} failed" if candidate.failures else text


SCREENING_HEIGHT = 2.8


@ReportFigure.register("best_so_far")
class BestSoFar(ReportFigure):
    section = "screening"
    of_candidates = False

    def draw(self, report: Report) -> Optional[Figure]:
        screening = report.screening
        if screening is None or len(screening.scores) < 2:
            return None
        figure, axes = parts.new_axes(SCREENING_HEIGHT)
        runs = np.arange(1, len(screening.scores) + 1)
        axes.plot(runs, screening.scores, "o", color=parts.OTHER, markersize=3, label="one config")
        axes.step(runs, screening.best_so_far, where="post", color=parts.BEST, linewidth=1.6, label="best so far")
        parts.set_whole_numbers(axes, 6)
        _label_axes(axes, "finished runs of the screening", f"validation {screening.metric.text}")
        return figure

    def caption(self, report: Report) -> str:
        best = report.screening.best_so_far if report.screening else ()
        return (
            f"The best validation score after each run of the screening. Run {1 + best.index(best[-1])} reached the "
            "best score. One run of a config includes its luck, so the best of many scores is higher than the mean of "
            "that config."
        )


def _label_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(color="0.93", linewidth=0.6)
    axes.legend(loc="best")


@ReportFigure.register("pareto_front")
class ParetoFront(ReportFigure):
    """Draw score against seconds, and the line of configs that no other one beats in both; None for one objective."""

    section = "screening"
    of_candidates = False

    def draw(self, report: Report) -> Optional[Figure]:
        screening = report.screening
        if screening is None or not screening.front:
            return None
        figure, axes = parts.new_axes(SCREENING_HEIGHT)
        front = sorted(screening.front, key=lambda row: screening.run_seconds[row])
        axes.plot(screening.run_seconds, screening.scores, "o", color=parts.OTHER, markersize=3, label="one config")
        line = [(screening.run_seconds[row], screening.scores[row]) for row in front]
        axes.step(*zip(*line, strict=True), "o-", where="post", color=parts.BEST, markersize=5, label="Pareto front")
        _label_axes(axes, "seconds of the run", f"validation {screening.metric.text}")
        return figure

    def caption(self, report: Report) -> str:
        front = report.screening.front if report.screening else ()
        return (
            "Validation score and seconds of every screened config. No config beats a config on the front in both; "
            f"{len(front)} are on it."
        )
