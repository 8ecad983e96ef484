"""P(best) after each run, as in figure 2 of the FIESTA paper (Moss et al. 2019)."""

from itertools import takewhile
from typing import List, Optional, Sequence, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.reports.figures import figure as shared
from fiesta_allennlp.reports.figures.report_figure import ReportFigure
from fiesta_allennlp.reports.record import PathPoint, Report

LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))
LEADER_STYLE = {"arrowstyle": "-", "linewidth": 0.8, "linestyle": ":", "shrinkA": 1, "shrinkB": 5, "relpos": (0, 0.5)}
"""The line from a name to the end of its path: dotted and with a gap, to set it apart from the path."""

TEXT_BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
"""The background of a text that lines may cross."""

PATH_HEIGHT = 2.9
"""Inches."""


@ReportFigure.register("path")
class ProbabilityPath(ReportFigure):
    """Draw a line of P(best) for each candidate. The seven best are named, the others grey."""

    def draw(self, report: Report) -> Optional[Figure]:
        path = report.path
        if not path:
            return None
        figure, axes = shared.new_axes(PATH_HEIGHT)
        run_counts = [point.num_evaluations for point in path]
        labelled_names, unlabelled_names = split_by_label(report)
        for name in unlabelled_names:
            axes.plot(run_counts, _prob_best_line(path, name), color="0.75", linewidth=0.7, zorder=1)
        line_ends: List[Tuple[float, str, str]] = []
        short_names = shared.labels(report)
        for name, colour, style in zip(labelled_names, shared.LINE_COLOURS, LINE_STYLES, strict=False):
            prob_best = _prob_best_line(path, name)
            axes.plot(run_counts, prob_best, color=colour, linestyle=style, linewidth=1.6)
            axes.plot(run_counts[-1], prob_best[-1], color=colour, marker="o", markersize=4, clip_on=False, zorder=3)
            line_ends.append((prob_best[-1], short_names[name], colour))
        if unlabelled_names:
            highest = max(path[-1].prob_best[name] for name in unlabelled_names)
            line_ends.append((highest, count_text(len(unlabelled_names), "other"), "0.6"))
        _label_line_ends(axes, line_ends)
        _set_path_axes(axes, report, run_counts)
        return figure

    def caption(self, report: Report) -> str:
        words, last_prob_best = report.result.words, report.path[-1].prob_best
        leader, num_others = max(last_prob_best, key=last_prob_best.__getitem__), len(split_by_label(report)[1])
        text = (
            f"P(best) of each {words.candidate} after each of the {words.finished}. {leader} has led since "
            f"{words.evaluation} {find_start_of_lead(report.path, leader)}."
        )
        if not report.is_selection:
            text += (
                " The order of these scores is unknown. They are drawn as if the candidates had taken turns, each in "
                "the order of its rows."
            )
        if num_others:
            noun, verb = (words.candidate, "is") if num_others == 1 else (words.candidates, "are")
            text += f" {num_others} {noun} with a low probability {verb} drawn as thin gray lines without a name."
        return text


def split_by_label(report: Report) -> Tuple[List[str], List[str]]:
    """Return the candidates whose lines have a name, the best ones, and the others."""
    names = [candidate.name for candidate in report.result.ranked if candidate.name in report.path[-1].prob_best]
    return names[: len(shared.LINE_COLOURS)], names[len(shared.LINE_COLOURS) :]


def _prob_best_line(path: Sequence[PathPoint], name: str) -> np.ndarray:
    return np.array([point.prob_best.get(name, np.nan) for point in path])


def _label_line_ends(axes: Axes, line_ends: Sequence[Tuple[float, str, str]]) -> None:
    min_distance = shared.FONT_SIZE * 1.25 / 72 / (PATH_HEIGHT - 0.75)
    sorted_ends = sorted(reversed(line_ends), key=lambda end: end[0])
    label_heights = space_out([y for y, _, _ in sorted_ends], min_distance)
    for (y, name, colour), label_height in zip(sorted_ends, label_heights, strict=True):
        axes.annotate(
            name,
            xy=(1.0, y),
            xytext=(1.05, label_height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            arrowprops={**LEADER_STYLE, "color": colour},
        )


def space_out(heights: Sequence[float], min_distance: float) -> List[float]:
    """Return rising `heights`, moved until they are `min_distance` apart and at most 1."""
    offsets = min_distance * np.arange(len(heights))
    spaced: List[float] = (np.minimum(np.maximum.accumulate(heights - offsets), 1 - offsets[-1]) + offsets).tolist()
    return spaced


def _set_path_axes(axes: Axes, report: Report, run_counts: Sequence[int]) -> None:
    target_confidence = report.strategy.confidence
    if target_confidence is not None:
        axes.axhline(target_confidence, color="black", linewidth=0.8, linestyle=(0, (1, 1)), zorder=0)
        axes.annotate(
            f"confidence {target_confidence:g}",
            xy=(run_counts[0], target_confidence),
            xytext=(4, -3),
            textcoords="offset points",
            va="top",
            bbox=TEXT_BACKGROUND,
            zorder=4,
        )
    axes.set_ylim(0, 1)
    if len(run_counts) > 1:
        axes.set_xlim(run_counts[0], run_counts[-1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.set_xlabel(report.result.words.finished)
    axes.set_ylabel("P(best)")
    axes.grid(color="0.93", linewidth=0.6)


def find_start_of_lead(path: Sequence[PathPoint], leader: str) -> int:
    """Return the number of the run since which a candidate has led."""
    points = takewhile(lambda point: point.prob_best.get(leader) == max(point.prob_best.values()), reversed(path))
    return min(point.num_evaluations for point in points)
