"""The first stage of a search: the best score over its runs, and score against seconds."""

from typing import TYPE_CHECKING, Optional

import numpy as np

from fiesta_allennlp.reports.figures.figure import BEST, OTHER, Figure, new_drawing
from fiesta_allennlp.reports.record import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

HEIGHT = 2.8
"""Inches."""

LEAST_SCORES = 2


def draw_best_so_far(report: Report) -> "Optional[Drawing]":
    """Draw the score of each config as a point and the best so far as a line. None where nothing was screened."""
    from matplotlib.ticker import MaxNLocator

    screening = report.screening
    if screening is None or len(screening.scores) < LEAST_SCORES:
        return None
    figure = new_drawing(HEIGHT)
    axes = figure.add_subplot()
    runs = np.arange(1, len(screening.scores) + 1)
    axes.plot(runs, screening.scores, "o", color=OTHER, markersize=3, label="one config")
    axes.step(runs, screening.best_so_far, where="post", color=BEST, linewidth=1.6, label="best so far")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    _set_axes(axes, "finished runs of the screening", f"validation {screening.metric.text}")
    return figure


def _set_axes(axes: "Axes", xlabel: str, ylabel: str) -> None:
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(color="0.93", linewidth=0.6)
    axes.legend(loc="best")


def best_so_far_caption(report: Report) -> str:
    best = () if report.screening is None else report.screening.best_so_far
    reached = f" The best score was reached with run {1 + best.index(best[-1])}." if best else ""
    return (
        f"The best validation score after each run of the screening.{reached} One run of a config includes its luck, "
        "so the best of many scores is higher than the mean of that config."
    )


def draw_front(report: Report) -> "Optional[Drawing]":
    """Draw score against seconds, and the line of the configs that no other one beats in both.

    None where seconds were no objective.
    """
    screening = report.screening
    if screening is None or not screening.front:
        return None
    figure = new_drawing(HEIGHT)
    axes = figure.add_subplot()
    front = sorted(screening.front, key=lambda row: screening.run_seconds[row])
    axes.plot(screening.run_seconds, screening.scores, "o", color=OTHER, markersize=3, label="one config")
    line = [(screening.run_seconds[row], screening.scores[row]) for row in front]
    axes.step(*zip(*line, strict=True), "o-", where="post", color=BEST, markersize=5, label="Pareto front")
    _set_axes(axes, "seconds of the run", f"validation {screening.metric.text}")
    return figure


def front_caption(report: Report) -> str:
    front = () if report.screening is None else report.screening.front
    return (
        "Validation score and seconds of every screened config. No config beats one of the front in both; "
        f"{len(front)} are on it."
    )


FRONT = Figure("pareto_front", draw_front, front_caption)
BEST_SO_FAR = Figure("best_so_far", draw_best_so_far, best_so_far_caption)
