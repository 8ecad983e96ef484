"""What a figure of a report is, and the look that all of them share. Nothing in them depends on colour alone."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Dict, Iterator, Optional

from fiesta_allennlp.reports.formats import shown_names
from fiesta_allennlp.reports.record import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BEST, OTHER, WITHDRAWN = "#0072B2", "#6E6E6E", "#ABABAB"
"""The best candidate, the others, and those that were withdrawn."""

LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the yellow, which is too pale."""

WIDTH = 5.2
"""Inches. A page scales a figure to the screen: this width can still be read at 390 pixels, and fits a paper's text."""

FONT_SIZE = 9.0
"""Points."""

NAME_LENGTH = 20
"""Characters of the name of a candidate."""

MOST_CANDIDATES, NUM_SHOWN = 40, 30
"""Of more candidates than the first number, a figure shows as many as the second."""

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "fiesta",
}


@dataclass(frozen=True)
class Figure:
    """A figure of a report, wherever it is shown.

    Attributes:
        name: the name of its files, without the ending.
        draw: gives a matplotlib figure, or None where there is nothing to draw.
        caption: tells how to read it. It is the alternative text as well.
    """

    name: str
    draw: "Callable[[Report], Optional[Drawing]]"
    caption: Callable[[Report], str]


def of_the_best(figure: Figure) -> Figure:
    """Return the same figure, which shows the best 30 of more than 40 candidates."""
    return replace(
        figure,
        draw=lambda report: figure.draw(best_candidates(report)),
        caption=lambda report: figure.caption(best_candidates(report)) + _num_shown_text(report),
    )


def best_candidates(report: Report) -> Report:
    """Return the report of the candidates that figures show, with the comparisons among them and the order of all
    runs.
    """
    if len(report.candidates) <= MOST_CANDIDATES:
        return report
    shown = report.ranked[:NUM_SHOWN]
    names = {candidate.name for candidate in shown}
    return replace(report, candidates=shown, comparisons=tuple(c for c in report.comparisons if c.second in names))


def _num_shown_text(report: Report) -> str:
    number = len(report.candidates)
    shown = f" The figure shows the best {NUM_SHOWN} of {number} {report.words.candidates}."
    return shown if number > MOST_CANDIDATES else ""


@contextmanager
def styled() -> Iterator[None]:
    """Set the look of all figures, which are made and saved within this. A user's own settings play no part."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def new_drawing(height: float) -> "Drawing":
    """Return an empty drawing of this height in inches."""
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(WIDTH, height), layout="constrained")


def labels(report: Report) -> Dict[str, str]:
    """Return the name of every candidate as it stands in a figure."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    names = [candidate.name for candidate in report.ranked]
    return shown_names(names, NAME_LENGTH, has_glyph=lambda c: bool(font.get_char_index(ord(c))))


def colour_of(report: Report, name: str) -> str:
    if name == report.best:
        return BEST
    return WITHDRAWN if report.candidate(name).withdrawn else OTHER
