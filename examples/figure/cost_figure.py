"""A figure of your own in the report: the mean score of each candidate against the mean seconds of its runs.

fiesta report DIR --include-package cost_figure
"""

from typing import Any

from fiesta_allennlp.reports.figures import ReportFigure, colour_of, labels, new_axes
from fiesta_allennlp.reports.record import Report


@ReportFigure.register("cost")
class Cost(ReportFigure):
    """Draws a point for each candidate."""

    def draw(self, report: Report) -> Any:
        timed = [candidate for candidate in report.result.ranked if candidate.scores and candidate.seconds]
        if not timed:
            return None
        drawing, axes = new_axes(2.8)
        names = labels(report)
        for candidate in timed:
            seconds = candidate.seconds / len(candidate.scores)
            axes.plot(seconds, candidate.mean, "o", color=colour_of(report, candidate.name))
            axes.annotate(names[candidate.name], (seconds, candidate.mean), xytext=(5, 5), textcoords="offset points")
        axes.set(xlabel="seconds of a run", ylabel=f"mean {report.result.metric_text}", xmargin=0.2)
        return drawing

    def caption(self, report: Report) -> str:
        return "Mean score of each candidate against the seconds that one of its runs takes on average."
