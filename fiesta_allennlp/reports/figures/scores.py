"""The scores: their distributions, and their differences on shared splits."""

from typing import Optional, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from fiesta_allennlp.reports.figures import figure as parts
from fiesta_allennlp.reports.figures.base import ReportFigure
from fiesta_allennlp.reports.record import CandidateReport, Report

LEAST_FOR_VIOLIN = 3
HALF_WIDTH = 0.36
"""Of a violin, in rows."""


@ReportFigure.register("distributions")
class Distributions(ReportFigure):
    """Draw scores, their density, the mean with its interval, and the median of each candidate; None by documents."""

    section = "distributions"

    def draw(self, report: Report) -> Optional[Figure]:
        candidates = report.ranked
        scores = [score for candidate in candidates for score in candidate.scores]
        if not scores or report.by_documents:
            return None
        figure, axes = parts.new_axes(parts.height_of(len(candidates)))
        limits = parts.limits_of(scores, [(c.num_evaluations, c.interval) for c in candidates])
        parts.set_scores(axes, limits, f"{report.scored} {report.metric_text}".lstrip())
        for row, candidate in enumerate(candidates):
            _draw_scores(axes, candidate, row, colour=parts.colour_of(report, candidate.name))
            if candidate.num_evaluations > 1:
                axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
                parts.draw_interval(axes, candidate.interval, row)
                axes.plot(candidate.mean, row, "D", **parts.MEAN)
        parts.set_rows(axes, report, [c.name for c in candidates], notes=[_number_note(c) for c in candidates])
        one, median = parts.mark("one score", "o", color="0.4", markersize=3), parts.mark("median", "|", color="black")
        parts.add_legend(figure, [one, *parts.marks_of_mean("95% interval of the mean"), median])
        return figure

    def caption(self, report: Report) -> str:
        return (
            f"Each point is the {f'{report.scored} score'.lstrip()} of one run. The shape around three or more points "
            "is their density (Gaussian kernel, Scott's bandwidth), cut at the lowest and the highest score. An arrow "
            "marks an interval that continues."
        )


def _number_note(candidate: CandidateReport) -> str:
    number = f"n = {candidate.num_evaluations}" if candidate.scores else "no score"
    return f"{number}\nwithdrawn" if candidate.withdrawn else number


def _draw_scores(axes: Axes, candidate: CandidateReport, row: int, *, colour: str) -> None:
    scores = np.array(candidate.scores)
    widths = np.zeros(len(scores))
    if len(scores) >= LEAST_FOR_VIOLIN and np.ptp(scores) > 0:
        at, density = _density(scores)
        axes.fill_between(at, row - density, row + density, color=colour, alpha=0.25, linewidth=0.5)
        widths = np.interp(scores, at, density)
    places = row + 0.85 * widths * parts.spread(len(scores))
    parts.draw_points(axes, candidate.scores, places, colour=colour)


def _density(scores: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return places and half the width of a Gaussian violin there, by Scott's bandwidth sd n^(-1/5)."""
    at = np.linspace(scores.min(), scores.max(), 80)
    density = GaussianKDE(scores)(at)
    return at, HALF_WIDTH * density / density.max()


@ReportFigure.register("differences")
class Differences(ReportFigure):
    """Draw the differences on shared splits and their mean with its interval; without such splits, Welch's interval."""

    section = "differences"

    def draw(self, report: Report) -> Optional[Figure]:
        comparisons = [c for c in report.ranked_comparisons if c.mean_difference is not None]
        if not comparisons:
            return None
        figure, axes = parts.new_axes(parts.height_of(len(comparisons)))
        points = [difference for comparison in comparisons for difference in comparison.paired_differences]
        means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
        limits = parts.limits_of([0.0, *points, *means], [(c.num_pairs, c.interval) for c in comparisons])
        first = parts.labels(report)[comparisons[0].first]
        parts.set_scores(axes, limits, f"{first} minus the rival, {report.scored} {report.metric}".replace(",  ", ", "))
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)
        if report.margin:
            axes.axvspan(-report.margin, report.margin, color="0.85", zorder=0)
        for row, comparison in enumerate(comparisons):
            colour = parts.colour_of(report, comparison.second)
            number = comparison.num_pairs
            places = row + 0.22 * parts.spread(number) * (number > 2)  # in a band, so that equal ones can be told apart
            parts.draw_points(axes, comparison.paired_differences, places, colour=colour)
            parts.draw_interval(axes, comparison.interval, row)
            if number != 1:
                axes.plot(means[row], row, "D", **parts.MEAN)
        notes = [f"{c.num_ahead} of {c.num_pairs}" if c.num_pairs else "unpaired" for c in comparisons]
        parts.set_rows(axes, report, [c.second for c in comparisons], notes=notes, heading="ahead on")
        marks = [parts.mark("one split", "o", color="0.4", markersize=3)] if points else []
        marks += parts.marks_of_mean("95% interval")
        if report.margin:
            marks.append(parts.mark(f"within margin {report.margin:g}", "s", color="0.85", markersize=8))
        parts.add_legend(figure, marks)
        return figure

    def caption(self, report: Report) -> str:
        side = "Left" if report.minimise else "Right"
        if any(comparison.num_pairs for comparison in report.comparisons):
            text = (
                f"Each point is one split that both candidates ran on. {side} of 0, the first candidate was better. "
                "An arrow marks an interval that continues. Without shared splits, the line is Welch's interval of "
                "the two means."
            )
        else:
            text = (
                f"Each line is Welch's 95% interval of the difference between two means. {side} of 0, the first "
                "candidate is better. An arrow marks an interval that continues."
            )
        return f"{text} The gray band is the margin, {report.margin:g}." if report.margin else text
