"""Paired differences: on every split that both have, the best candidate's score less a rival's."""

from typing import TYPE_CHECKING, Optional, Tuple

from fiesta_allennlp.reports.content import Comparison, Report
from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import MOST_TOLD, Figure, Look, alt_text, colour_of, labels, new_drawing
from fiesta_allennlp.reports.formats import interval_text
from fiesta_allennlp.selection.summary import count_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def shown_comparisons(report: Report) -> Tuple[Comparison, ...]:
    """Those with a difference to show, in the order in which the candidates are shown."""
    places = {candidate.name: place for place, candidate in enumerate(report.ranked)}
    known = [comparison for comparison in report.comparisons if comparison.mean_difference is not None]
    return tuple(sorted(known, key=lambda comparison: places[comparison.second]))


def draw_differences(report: Report, look: Look) -> "Optional[Drawing]":
    """A row for each rival: the differences on shared splits, and their mean with its 95 % interval. Right of the
    line at 0 the first candidate is ahead, left of it where the metric is minimised. Where no split is shared, the
    difference of the means alone.

    None where there is no difference to show.
    """
    comparisons = shown_comparisons(report)
    if not comparisons:
        return None
    figure = new_drawing(look, height=rows.height_of(len(comparisons)))
    axes = figure.add_subplot()
    points = [difference for comparison in comparisons for difference in comparison.paired_differences]
    means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
    limits = rows.limits_of([0.0, *points, *means], [(c.num_pairs, c.interval) for c in comparisons])
    axes.axvline(0, color="black", linewidth=0.8, zorder=1)
    if report.margin:
        axes.axvspan(-report.margin, report.margin, color="0.85", zorder=0)
    for row, comparison in enumerate(comparisons):
        colour = colour_of(report, comparison.second)
        _draw_comparison(axes, comparison, row, colour=colour, rasterised=len(points) > rows.MOST_POINTS)
        if comparison.interval is not None:
            rows.draw_interval(axes, comparison.interval, row, limits=limits)
        if comparison.num_pairs != 1:
            rows.draw_mean(axes, means[row], row)
    rows.set_scores(axes, limits, _axis_label(report, comparisons[0], look), look=look)
    names = [comparison.second for comparison in comparisons]
    notes = [ahead_text(comparison) for comparison in comparisons]
    rows.set_rows(axes, report, names, look=look, notes=notes, heading="ahead on")
    rows.add_legend(figure, _legend(report), look=look)
    return figure


def _draw_comparison(axes: "Axes", comparison: Comparison, row: int, *, colour: str, rasterised: bool) -> None:
    """The points lie in a band, so that equal ones can be told apart."""
    number = comparison.num_pairs
    places = row + 0.22 * rows.spread(number) * (number > 2)
    rows.draw_points(axes, comparison.paired_differences, places, colour=colour, rasterised=rasterised)


def ahead_text(comparison: Comparison) -> str:
    """On how many of the shared splits the first candidate is ahead."""
    if not comparison.num_pairs:
        return "unpaired"
    return f"{comparison.num_ahead} of {comparison.num_pairs}"


def _axis_label(report: Report, comparison: Comparison, look: Look) -> str:
    first = labels(report, look)[comparison.first]
    between = "\n" if look.narrow else ", "
    return f"{first} less the rival{between}{report.scored} {report.metric}"


def _legend(report: Report) -> "rows.Marks":
    marks = [rows.mark("one split", "o", color="0.4", markersize=3)] if _has_pairs(report) else []
    marks += [rows.mark_of_mean(), rows.mark_of_interval("95 % interval")]
    if report.margin:
        marks.append(rows.mark(f"within margin {report.margin:g}", "s", color="0.85", markersize=8))
    return marks


def _has_pairs(report: Report) -> bool:
    return any(comparison.num_pairs for comparison in report.comparisons)


def differences_text(report: Report) -> str:
    """The nearest rivals, and the range of the others."""
    nearest = sorted(shown_comparisons(report), key=lambda comparison: abs(comparison.mean_difference or 0.0))
    told = [_difference_text(comparison) for comparison in nearest[:MOST_TOLD]]
    others = [float(comparison.mean_difference or 0.0) for comparison in nearest[MOST_TOLD:]]
    if others:
        ends = f"{min(others):+.4f} to {max(others):+.4f}"
        told.append(f"{count_text(len(others), 'other rival')}: mean differences from {ends}")
    on = "" if report.on_official_splits else " on shared splits"
    what = f"Differences in {report.scored} {report.metric_text}{on}"
    lead = f"{what}, {nearest[0].first} minus a rival, nearest first"
    return alt_text(lead, told)


def _difference_text(comparison: Comparison) -> str:
    interval = "" if comparison.interval is None else f", 95 % interval {interval_text(comparison.interval)}"
    ahead = f", ahead on {ahead_text(comparison)} splits" if comparison.num_pairs else ", no shared split"
    return f"{comparison.second}: mean difference {comparison.mean_difference:+.4f}{interval}{ahead}"


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


DIFFERENCES = Figure("differences", draw_differences, differences_text, differences_caption)
