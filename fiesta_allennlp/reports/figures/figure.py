"""What a figure of a report is, and the look that all of them share. Nothing in them depends on colour alone."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Callable, Dict, Iterator, Optional, Sequence

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.formats import shown_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BEST, OTHER, WITHDRAWN = "#0072B2", "#6E6E6E", "#ABABAB"
"""The best candidate, the others, and those that were withdrawn."""

LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008), without the yellow, which is too pale."""


@dataclass(frozen=True)
class Look:
    """`width` in inches, `font` in points, `name_length` in characters."""

    width: float
    font: float
    name_length: int

    @property
    def narrow(self) -> bool:
        return self.width < 5


@dataclass(frozen=True)
class Figure:
    """A figure of a report, wherever it is shown.

    Attributes:
        name: that of its files too.
        draw: gives a matplotlib figure, or None where there is nothing to draw.
        alt: what it shows, in words with numbers, for those who cannot see it; only of what can be drawn.
        caption: how to read it.
    """

    name: str
    draw: "Callable[[Report, Look], Optional[Drawing]]"
    alt: Callable[[Report], str]
    caption: Callable[[Report], str]


MOST_CANDIDATES, NUM_SHOWN = 40, 30
"""Of more candidates than the first number, a figure shows as many as the second."""


def of_the_best(figure: Figure) -> Figure:
    """A figure with a row or a line for each candidate, which shows the best 30 of more than 40 candidates."""
    return replace(
        figure,
        draw=lambda report, look: figure.draw(best_candidates(report), look),
        caption=lambda report: figure.caption(best_candidates(report)) + _num_shown_text(report),
    )


def best_candidates(report: Report) -> Report:
    """The report of the candidates that figures show, with the comparisons among them and the order of all runs."""
    if len(report.candidates) <= MOST_CANDIDATES:
        return report
    shown = report.ranked[:NUM_SHOWN]
    names = {candidate.name for candidate in shown}
    return replace(report, candidates=shown, comparisons=tuple(c for c in report.comparisons if c.second in names))


def _num_shown_text(report: Report) -> str:
    number = len(report.candidates)
    shown = f" The figure shows the best {NUM_SHOWN} of {number} {report.words.candidates}."
    return shown if number > MOST_CANDIDATES else ""


WIDE = Look(width=7.6, font=9.0, name_length=30)
NARROW = Look(width=3.73, font=8.0, name_length=16)
"""For a telephone."""


@contextmanager
def styled(look: Look) -> Iterator[None]:
    """Figures are made and saved within this. A user's own matplotlib settings play no part."""
    from matplotlib import style

    settings = {
        "font.family": "DejaVu Sans",
        "font.size": look.font,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "text.parse_math": False,
        "pdf.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "fiesta",
    }
    with style.context(["default", settings]):
        yield


def new_drawing(look: Look, *, height: float) -> "Drawing":
    """`height` is in inches."""
    from matplotlib.figure import Figure as Drawing

    return Drawing(figsize=(look.width, height), layout="constrained")


def labels(report: Report, look: Look) -> Dict[str, str]:
    """The name that stands in a figure, of every candidate."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    names = [candidate.name for candidate in report.ranked]
    return shown_names(names, look.name_length, has_glyph=lambda c: bool(font.get_char_index(ord(c))))


def colour_of(report: Report, name: str) -> str:
    if name == report.best:
        return BEST
    return WITHDRAWN if report.candidate(name).withdrawn else OTHER


MOST_TOLD = 4
"""Candidates that an alt text tells one by one; of the others it has a summary."""


def alt_text(lead: str, told: Sequence[str]) -> str:
    return f"{lead}. " + "; ".join(told) + "."


def others_text(number: int, report: Report) -> str:
    return f"{number} other {report.words.candidates_of(number)}"
