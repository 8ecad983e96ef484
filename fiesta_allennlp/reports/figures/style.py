"""The look that all figures of a report share. Nothing in them depends on colour alone."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, Iterator

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.tables import ranked, shown_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def new_figure(look: Look, *, height: float) -> "Figure":
    """`height` is in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(look.width, height), layout="constrained")


def labels(report: Report, look: Look) -> Dict[str, str]:
    """The name that stands in a figure, of every candidate."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    names = [candidate.name for candidate in ranked(report)]
    return shown_names(names, look.name_length, has_glyph=lambda c: bool(font.get_char_index(ord(c))))


def colour_of(report: Report, name: str) -> str:
    if name == report.best:
        return BEST
    return WITHDRAWN if report.candidate(name).withdrawn else OTHER
