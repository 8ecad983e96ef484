"""What each system's answers are worth: the measure and its credible interval."""

from typing import TYPE_CHECKING, Optional

from fiesta_allennlp.reports.content import CandidateReport, Report
from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.style import Look, colour_of, new_figure
from fiesta_allennlp.reports.tables import ranked
from fiesta_allennlp.selection.summary import count_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_measures(report: Report, look: Look) -> "Optional[Figure]":
    """A row for each system of a selection by documents: the measure of all its answers and the 95 % credible interval.
    None where there is nothing to draw, or of another report."""
    systems = [candidate for candidate in ranked(report) if candidate.asked is not None]
    ends = [end for c in systems if c.asked is not None and c.asked.interval is not None for end in c.asked.interval]
    measures = [c.asked.measure for c in systems if c.asked is not None and c.asked.measure is not None]
    if not measures:
        return None
    figure = new_figure(look, height=rows.height_of(len(systems)))
    axes = figure.add_subplot()
    limits = rows.limits_of([*measures, *ends], [])
    for row, system in enumerate(systems):
        asked = system.asked
        if asked is not None and asked.interval is not None:
            rows.draw_interval(axes, asked.interval, row, limits=limits)
        if asked is not None and asked.measure is not None:
            axes.plot(asked.measure, row, "o", color=colour_of(report, system.name), markersize=6)
    rows.set_scores(axes, limits, report.metric, look=look)
    rows.set_rows(axes, report, [c.name for c in systems], look=look, notes=[_note(c) for c in systems])
    legend = [rows.mark("all answers together", "o", color="0.4", markersize=6)]
    if ends:
        legend.append(rows.mark("95 % interval", "_", color="black", markersize=9))
    rows.add_legend(figure, legend, look=look)
    return figure


def _note(system: CandidateReport) -> str:
    number = 0 if system.asked is None else system.asked.num_documents
    text = count_text(number, "document")
    return f"{text}\nwithdrawn" if system.withdrawn else text
