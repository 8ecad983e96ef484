"""Paired differences: on every split that both have, the best candidate's score minus a rival's."""

from typing import TYPE_CHECKING, Optional, Tuple

from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import Figure, colour_of, labels, new_drawing
from fiesta_allennlp.reports.record import Comparison, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def shown_comparisons(report: Report) -> Tuple[Comparison, ...]:
    """Return those with a difference to show, in the order in which the candidates are shown."""
    places = {candidate.name: place for place, candidate in enumerate(report.ranked)}
    known = [comparison for comparison in report.comparisons if comparison.mean_difference is not None]
    return tuple(sorted(known, key=lambda comparison: places[comparison.second]))


def draw_differences(report: Report) -> "Optional[Drawing]":
    """Draw a row for each rival: the differences on shared splits, and their mean with its 95 % interval.

    Right of the line at 0 the first candidate is ahead, left of it where the metric is minimised. Where no split is
    shared, the row has the difference of the means alone. None where there is no difference to show.
    """
    comparisons = shown_comparisons(report)
    if not comparisons:
        return None
    figure = new_drawing(rows.height_of(len(comparisons)))
    axes = figure.add_subplot()
    points = [difference for comparison in comparisons for difference in comparison.paired_differences]
    means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
    limits = rows.limits_of([0.0, *points, *means], [(c.num_pairs, c.interval) for c in comparisons])
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)
    if report.margin:
        axes.axvspan(-report.margin, report.margin, color="0.85", zorder=0)
    for row, comparison in enumerate(comparisons):
        colour = colour_of(report, comparison.second)
        _draw_points(axes, comparison, row, colour=colour, rasterised=len(points) > rows.MOST_POINTS)
        if comparison.interval is not None:
            rows.draw_interval(axes, comparison.interval, row, limits=limits)
        if comparison.num_pairs != 1:
            rows.draw_mean(axes, means[row], row)
    first = labels(report)[comparisons[0].first]
    rows.set_scores(axes, limits, f"{first} minus the rival, {report.scored} {report.metric}")
    notes = [ahead_text(comparison) for comparison in comparisons]
    rows.set_rows(axes, report, [c.second for c in comparisons], notes=notes, heading="ahead on")
    rows.add_legend(figure, _legend(report))
    return figure


def _draw_points(axes: "Axes", comparison: Comparison, row: int, *, colour: str, rasterised: bool) -> None:
    """Draw the points in a band, so that equal ones can be told apart."""
    number = comparison.num_pairs
    places = row + 0.22 * rows.spread(number) * (number > 2)
    rows.draw_points(axes, comparison.paired_differences, places, colour=colour, rasterised=rasterised)


def ahead_text(comparison: Comparison) -> str:
    """Return on how many of the shared splits the first candidate is ahead."""
    if not comparison.num_pairs:
        return "unpaired"
    return f"{comparison.num_ahead} of {comparison.num_pairs}"


def _legend(report: Report) -> "rows.Marks":
    marks = [rows.mark("one split", "o", color="0.4", markersize=3)] if _has_pairs(report) else []
    marks += [rows.mark_of_mean(), rows.mark_of_interval("95 % interval")]
    if report.margin:
        marks.append(rows.mark(f"within margin {report.margin:g}", "s", color="0.85", markersize=8))
    return marks


def _has_pairs(report: Report) -> bool:
    return any(comparison.num_pairs for comparison in report.comparisons)


def differences_caption(report: Report) -> str:
    margin = f" The grey band is the margin, {report.margin:g}." if report.margin else ""
    side = "Left" if report.minimise else "Right"
    if not _has_pairs(report):
        return (
            f"Each line is Welch's 95 % interval of the difference of two means. {side} of 0, the first candidate is "
            "better. An arrow marks an interval that continues."
        ) + margin
    return (
        f"Each point is one split that both candidates ran on. {side} of 0, the first candidate was better. An arrow "
        "marks an interval that continues. Without shared splits, the line is Welch's interval of the two means."
    ) + margin


DIFFERENCES = Figure("differences", draw_differences, differences_caption)
