"""How to read each figure of a page."""

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.path import MOST_STEPS, split_names
from fiesta_allennlp.reports.figures.rows import MOST_POINTS


def caption(report: Report, name: str) -> str:
    """What stands beneath the figure called `name`."""
    if name == "allocation" and not report.order:
        return "The bars are the number of scores; nothing is known of their order."
    read = _READ[name].format(candidate=report.words.candidate, finished=report.words.finished)
    return " ".join((read, *_notes(report, name)))


_READ = {
    "distributions": (
        "Every point is the test score of one training. The shape around three or more of them is their density "
        "(Gaussian kernel, Scott's bandwidth), cut at the least and the greatest. An arrow: the interval goes on."
    ),
    "differences": (
        "Every point is one split that both candidates were trained on. Right of 0 the first one was better there. "
        "An arrow: the interval goes on. Where no split is shared, the line is Welch's interval of the two means."
    ),
    "measures": (
        "Every point is the measure of all that a system answered, the line its 95 % credible interval by the "
        "selection's belief. Intervals may overlap although P(best) is sure."
    ),
    "path": "After so many {finished}, how probable it was that a {candidate} is the best.",
    "allocation": "Every stroke is one of the {finished}; the bars are their number.",
}


def _notes(report: Report, name: str) -> "list[str]":
    """What was left out or drawn in another way."""
    notes = []
    if name == "distributions" and report.num_evaluations > MOST_POINTS:
        notes.append(f"More than {MOST_POINTS} points: they are drawn as pixels.")
    if name == "differences" and report.margin:
        notes.append(f"The grey band is the margin, {report.margin:g}.")
    if name == "path" and not report.adaptive:
        notes.append("Nothing is known of the order of these scores: they are taken in the order of the table.")
    if name == "path" and report.path:
        others = split_names(report)[1]
        if others:
            lines = f"{len(others)} {report.words.candidates_of(len(others))}"
            notes.append(f"{lines} of low probability: thin and grey, without a name.")
        if len(report.path) > MOST_STEPS:
            notes.append(f"{MOST_STEPS} of {len(report.path)} steps are drawn.")
    return notes
