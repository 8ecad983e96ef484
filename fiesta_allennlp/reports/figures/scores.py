"""The scores: their distributions, and their differences on shared splits."""

from typing import Any, Dict, Optional, Tuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from fiesta_allennlp.reports.figures import figure as shared
from fiesta_allennlp.reports.figures.report_figure import ReportFigure
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult

MIN_SCORES_FOR_VIOLIN = 8

MIN_SCORES_OF_WHOLE_INTERVAL = 4
"""With fewer scores, an interval may continue beyond the axis, because it would squeeze the scores."""

VIOLIN_HALF_WIDTH = 0.36
"""Of a violin, in rows."""


@ReportFigure.register("distributions")
class Distributions(ReportFigure):
    """Draw scores, their density, the mean with its interval, and the median of each candidate; None by documents."""

    def draw(self, report: Report) -> Optional[Figure]:
        candidates = report.result.compared
        scores = [score for candidate in candidates for score in candidate.scores]
        if not scores:
            return None
        figure, axes = shared.new_axes(shared.figure_height(len(candidates)))
        wide_intervals = [c.interval for c in candidates if c.num_evaluations >= MIN_SCORES_OF_WHOLE_INTERVAL]
        limits = shared.find_axis_limits(scores, wide_intervals)
        shared.set_score_axis(axes, limits, f"{report.result.scored} {report.result.metric_text}".lstrip())
        for row, candidate in enumerate(candidates):
            _draw_scores(axes, candidate, row, colour=shared.colour_of(report, candidate.name))
            if candidate.num_evaluations > 1:
                axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
                shared.draw_interval(axes, candidate.interval, row)
                axes.plot(candidate.mean, row, "D", **shared.MEAN_MARKER)
        shared.add_rows(axes, report, [c.name for c in candidates], notes=[_num_scores_note(c) for c in candidates])
        score_mark = shared.legend_mark("score", "o", color="0.4", markersize=3)
        median_mark = shared.legend_mark("median", "|", color="black")
        shared.add_legend(figure, [score_mark, *shared.mean_legend_marks("95% interval"), median_mark])
        return figure

    def caption(self, report: Report) -> str:
        return (
            f"Each point is the {f'{report.result.scored} score'.lstrip()} of one run. The interval is that of the "
            "mean. The shape around eight or more points is their density. An arrow marks an interval that goes on "
            "beyond the plot."
        )


def _num_scores_note(candidate: CandidateResult) -> str:
    num_scores_text = f"n = {candidate.num_evaluations}" if candidate.scores else "no score"
    return f"{num_scores_text}\n{candidate.state}" if candidate.withdrawn else num_scores_text


def _draw_scores(axes: Axes, candidate: CandidateResult, row: int, *, colour: str) -> None:
    scores = np.array(candidate.scores)
    half_widths = np.zeros(len(scores))
    if len(scores) >= MIN_SCORES_FOR_VIOLIN and np.ptp(scores) > 0:
        grid, grid_half_widths = _violin_outline(scores)
        axes.fill_between(grid, row - grid_half_widths, row + grid_half_widths, color=colour, alpha=0.25, linewidth=0.5)
        half_widths = np.interp(scores, grid, grid_half_widths)
    heights = row + 0.85 * half_widths * shared.spread_points(len(scores))
    shared.draw_points(axes, candidate.scores, heights, colour=colour)


def _violin_outline(scores: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Return places and half the width of a Gaussian violin there, by Scott's bandwidth sd n^(-1/5)."""
    grid = np.linspace(scores.min(), scores.max(), 80)
    densities = GaussianKDE(scores)(grid)
    return grid, VIOLIN_HALF_WIDTH * densities / densities.max()


@ReportFigure.register("differences")
class Differences(ReportFigure):
    """Draw the differences on shared splits and their mean with its interval; without such splits, Welch's interval."""

    def draw(self, report: Report) -> Optional[Figure]:
        comparisons = [c for c in report.comparisons if c.mean_difference is not None]
        if not comparisons:
            return None
        figure, axes = shared.new_axes(shared.figure_height(len(comparisons)))
        paired_differences = [difference for comparison in comparisons for difference in comparison.paired_differences]
        means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
        limits = shared.find_axis_limits([0.0, *paired_differences, *means], [c.interval for c in comparisons])
        first_name = shared.labels(report)[comparisons[0].first]
        label = f"{first_name} minus the rival\n" + f"{report.result.scored} {report.result.metric_name}".lstrip()
        shared.set_score_axis(axes, limits, label)
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)
        if report.result.margin:
            axes.axvspan(-report.result.margin, report.result.margin, color="0.85", zorder=0)
        for row, comparison in enumerate(comparisons):
            colour = shared.colour_of(report, comparison.second)
            num_pairs = comparison.num_pairs
            heights = row + 0.22 * shared.spread_points(num_pairs) * (num_pairs > 2)  # a band tells equal ones apart
            shared.draw_points(axes, comparison.paired_differences, heights, colour=colour)
            shared.draw_interval(axes, comparison.interval, row)
            if num_pairs != 1:
                axes.plot(means[row], row, "D", **shared.MEAN_MARKER)
        notes = [f"{c.num_ahead} of {c.num_pairs}" if c.num_pairs else "unpaired" for c in comparisons]
        names, has_pairs = [c.second for c in comparisons], any(c.num_pairs for c in comparisons)
        columns: Dict[str, Any] = {"notes": notes, "heading": "splits ahead"} if has_pairs else {}
        shared.add_rows(axes, report, names, **columns)
        marks = [shared.legend_mark("split", "o", color="0.4", markersize=3)] if paired_differences else []
        marks += shared.mean_legend_marks("95% interval")
        if report.result.margin:
            marks.append(shared.legend_mark(f"margin {report.result.margin:g}", "s", color="0.85", markersize=8))
        shared.add_legend(figure, marks)
        return figure

    def caption(self, report: Report) -> str:
        side = "Left" if report.result.minimise else "Right"
        if any(comparison.num_pairs for comparison in report.comparisons):
            text = (
                f"Each point is one split that both candidates ran on. {side} of 0, the first candidate was better. "
                "Without shared splits, the line is Welch's interval of the two means."
            )
        else:
            text = (
                f"Each line is Welch's 95% interval of the difference between two means. {side} of 0, the first "
                "candidate is better."
            )
        return f"{text} The gray band is the margin, {report.result.margin:g}." if report.result.margin else text
