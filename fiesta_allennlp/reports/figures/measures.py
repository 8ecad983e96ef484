"""What each system's answers are worth: the measure and its credible interval."""

from typing import TYPE_CHECKING, List, Optional, Tuple

from fiesta_allennlp.reports.content import Asked, CandidateReport, Report
from fiesta_allennlp.reports.figures import rows
from fiesta_allennlp.reports.figures.figure import (
    MOST_TOLD,
    Figure,
    Look,
    alt_text,
    colour_of,
    new_drawing,
    others_text,
)
from fiesta_allennlp.reports.formats import interval_text
from fiesta_allennlp.selection.summary import count_text, number_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def draw_measures(report: Report, look: Look) -> "Optional[Drawing]":
    """A row for each system of a selection by documents: the measure of all its answers and the 95 % credible interval.
    None where there is nothing to draw, or of another report."""
    systems = _asked(report)
    ends = [end for _, asked in systems for end in asked.interval or ()]
    measures = [asked.measure for _, asked in systems if asked.measure is not None]
    if not measures:
        return None
    figure = new_drawing(look, height=rows.height_of(len(systems)))
    axes = figure.add_subplot()
    limits = rows.limits_of([*measures, *ends], [])
    for row, (system, asked) in enumerate(systems):
        if asked.interval is not None:
            rows.draw_interval(axes, asked.interval, row, limits=limits)
        if asked.measure is not None:
            axes.plot(asked.measure, row, "o", color=colour_of(report, system.name), markersize=6)
    rows.set_scores(axes, limits, report.metric, look=look)
    notes = [_note(system, asked) for system, asked in systems]
    rows.set_rows(axes, report, [system.name for system, _ in systems], look=look, notes=notes)
    legend = [rows.mark("all answers together", "o", color="0.4", markersize=6)]
    if ends:
        legend.append(rows.mark_of_interval("95 % interval"))
    rows.add_legend(figure, legend, look=look)
    return figure


def _asked(report: Report) -> List[Tuple[CandidateReport, Asked]]:
    """The systems in the order in which they are shown, each with what it was asked."""
    return [(candidate, candidate.asked) for candidate in report.ranked if candidate.asked is not None]


def _note(system: CandidateReport, asked: Asked) -> str:
    text = count_text(asked.num_documents, "document")
    return f"{text}\nwithdrawn" if system.withdrawn else text


def measures_text(report: Report) -> str:
    """The measure and the interval of the first few systems; the range of measures of the others."""
    known = [(system.name, asked) for system, asked in _asked(report) if asked.measure is not None]
    told = [
        f"{name}: {number_text(asked.measure)} over {count_text(asked.num_documents, 'document')}"
        + ("" if asked.interval is None else f", 95 % interval {interval_text(asked.interval)}")
        for name, asked in known[:MOST_TOLD]
    ]
    others = [asked.measure for _, asked in known[MOST_TOLD:] if asked.measure is not None]
    if others:
        ends = f"{number_text(min(others))} to {number_text(max(others))}"
        told.append(f"{others_text(len(others), report)}: from {ends}")
    return alt_text(f"{report.metric} of each system", told)


def measures_caption(report: Report) -> str:
    return (
        "Each point is the measure of all answers of a system, and the line its 95 % credible interval by the "
        "selection's posterior. Intervals may overlap even where P(best) is high."
    )


MEASURES = Figure("measures", draw_measures, measures_text, measures_caption)
