"""How to read each figure of a page."""

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.report_figures.path import MOST_STEPS, split_names
from fiesta_allennlp.reports.report_figures.rows import MOST_POINTS


def caption(report: Report, name: str) -> str:
    """What stands beneath the figure called `name`."""
    return " ".join(part for part in (_READ[name], *_notes(report, name)) if part)


_READ = {
    "distributions": (
        "Every point is the test score of one training. The shape around three or more of them is their density "
        "(Gaussian kernel, Scott's bandwidth), cut at the least and the greatest. An arrow: the interval goes on."
    ),
    "differences": (
        "Every point is one split that both candidates were trained on. Right of 0 the first one was better there. "
        "An arrow: the interval goes on. Where no split is shared, the line is Welch's interval of the two means."
    ),
    "path": "The belief after every finished training: how probable it was that a candidate is the best.",
    "allocation": "Every stroke is one finished training; the bars are their number.",
}


def _notes(report: Report, name: str) -> "list[str]":
    """What was left out or drawn in another way."""
    notes = []
    if name == "distributions" and report.num_evaluations > MOST_POINTS:
        notes.append(f"More than {MOST_POINTS} points: they are drawn as pixels.")
    if name == "differences" and report.margin:
        notes.append(f"The grey band is the margin, {report.margin:g}.")
    if name == "path" and report.path:
        others = split_names(report)[1]
        if others:
            notes.append(f"The {len(others)} candidates that were least probable are thin and grey.")
        if len(report.path) > MOST_STEPS:
            notes.append(f"{MOST_STEPS} of {len(report.path)} steps are drawn.")
    if name == "allocation" and not report.order:
        return ["The bars are the number of scores; nothing is known of their order."]
    return notes
