"""The three figures of a report: the scores, their differences on shared splits, and P(best) after each run, as in
figure 2 of the FIESTA paper (Moss et al. 2019)."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.reports import drawing as shared
from fiesta_allennlp.reports.drawing import Picture, ReportFigure, figure_style, legend_mark, save_picture
from fiesta_allennlp.reports.record import Report

MIN_SCORES_OF_WHOLE_INTERVAL = 4
"""With fewer scores, an interval may continue beyond the axis, because it would squeeze the scores."""


def draw_all(report: Report, directory: Path) -> Mapping[str, Picture]:
    """Draw every figure that has something to show, by name in the order of registration, and as PDF into a
    directory, where old files of the others are removed."""
    figures = {name: figure_class() for name, figure_class in ReportFigure.classes().items()}
    paths = {name: directory / f"{name}.pdf" for name in figures}
    for path in paths.values():
        path.unlink(missing_ok=True)
    with figure_style():
        drawings = ((name, figure.draw(report)) for name, figure in figures.items())
        return {
            name: save_picture(drawing, paths[name], figures[name].caption(report))
            for name, drawing in drawings
            if drawing is not None
        }


@ReportFigure.register("distributions")
class Distributions(ReportFigure):
    """Draw scores, the mean with its interval, and the median of each candidate; None by documents."""

    def draw(self, report: Report) -> Optional[Figure]:
        candidates, result = report.result.compared, report.result
        scores = [score for candidate in candidates for score in candidate.scores]
        if not scores:
            return None
        figure, axes = shared.new_axes(shared.figure_height(len(candidates)))
        wide_intervals = [c.interval for c in candidates if c.num_evaluations >= MIN_SCORES_OF_WHOLE_INTERVAL]
        shared.set_score_axis(axes, f"{result.scored} {result.metric_text}".lstrip(), scores, wide_intervals)
        notes = []
        for row, candidate in enumerate(candidates):
            heights = row + 0.22 * shared.spread_points(len(candidate.scores)) * (len(candidate.scores) > 2)
            shared.draw_points(axes, candidate.scores, heights, colour=shared.colour_of(report, candidate.name))
            if candidate.num_evaluations > 1:
                axes.plot([candidate.median] * 2, [row - 0.28, row + 0.28], color="black", linewidth=1)
                shared.draw_mean(axes, candidate.mean, candidate.interval, row)
            note = f"n = {candidate.num_evaluations}" if candidate.scores else "no score"
            notes.append(f"{note}\n{candidate.state}" if candidate.withdrawn else note)
        shared.add_rows(axes, report, [c.name for c in candidates], notes=notes)
        score_mark = legend_mark("score", "o", color="0.4", markersize=3)
        shared.add_legend(figure, [score_mark, *shared.mean_legend_marks(), legend_mark("median", "|", color="black")])
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
        figure, axes = shared.new_axes(shared.figure_height(len(comparisons)))
        paired_differences = [difference for comparison in comparisons for difference in comparison.paired_differences]
        means = [float(comparison.mean_difference or 0.0) for comparison in comparisons]
        first_name = shared.labels(report)[comparisons[0].first]
        label = f"{first_name} minus the rival\n" + f"{result.scored} {result.metric_name}".lstrip()
        intervals = [comparison.interval for comparison in comparisons]
        shared.set_score_axis(axes, label, [0.0, *paired_differences, *means], intervals)
        axes.axvline(0, color="black", linewidth=0.8, zorder=1)
        marks = [legend_mark("split", "o", color="0.4", markersize=3)] if paired_differences else []
        marks += shared.mean_legend_marks()
        if result.margin:
            axes.axvspan(-result.margin, result.margin, color="0.85", zorder=0)
            marks.append(legend_mark(f"margin {result.margin:g}", "s", color="0.85", markersize=8))
        for row, comparison in enumerate(comparisons):
            num_pairs, colour = comparison.num_pairs, shared.colour_of(report, comparison.second)
            heights = row + 0.22 * shared.spread_points(num_pairs) * (num_pairs > 2)  # a band tells equal ones apart
            shared.draw_points(axes, comparison.paired_differences, heights, colour=colour)
            shared.draw_mean(axes, means[row], intervals[row], row)
        notes = [f"{c.num_ahead} of {c.num_pairs}" if c.num_pairs else "unpaired" for c in comparisons]
        columns: Dict[str, Any] = {"notes": notes, "heading": "splits ahead"} if paired_differences else {}
        shared.add_rows(axes, report, [c.second for c in comparisons], **columns)
        shared.add_legend(figure, marks)
        return figure

    def caption(self, report: Report) -> str:
        side = "Left" if report.result.minimise else "Right"
        text = (
            "Each point is one split that both candidates ran on. Without shared splits, the line is Welch's interval "
            f"of the two means. {side} of 0, the first candidate is better."
        )
        return f"{text} The gray band is the margin, {report.result.margin:g}." if report.result.margin else text


LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the yellow, which is too pale."""

LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))


@ReportFigure.register("path")
class ProbabilityPath(ReportFigure):
    """Draw a line of P(best) for each candidate. The seven best are named, the others grey."""

    def draw(self, report: Report) -> Optional[Figure]:
        path = report.path
        if not path:
            return None
        figure, axes = shared.new_axes(2.9)
        run_counts = [point.num_evaluations for point in path]
        names = [candidate.name for candidate in report.result.ranked if candidate.name in path[-1].prob_best]
        others = names[len(LINE_COLOURS) :]
        short_names = shared.labels(report)
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
