"""The base class of the figures of a report. It imports no matplotlib, so a package of your own may import it early."""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Dict, Optional

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.reports.record import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECTIONS = (
    "decision",
    "candidates",
    "distributions",
    "differences",
    "path",
    "allocation",
    "single",
    "development",
)
"""The sections of a page that can have figures, by the `id` of their headings. Not every report has all of them."""


class ReportFigure(Registrable):
    """A figure of a report. Its registered name is that of its files.

    `section` is the section it appears in, where figures have the order of their registration. `of_candidates` says
    whether it shows every candidate; the caption of one that does names how many of more than 40 are left out.
    """

    section: ClassVar[str] = "candidates"
    of_candidates: ClassVar[bool] = True

    @abstractmethod
    def draw(self, report: Report) -> Optional["Figure"]:
        """Return the drawing, or None if the report has nothing to show."""

    @abstractmethod
    def caption(self, report: Report) -> str:
        """Return the caption of a drawing, which is its alternative text as well."""


def registered_figures() -> Dict[str, ReportFigure]:
    """Return all figures by name, in the order of their registration. Refuse one of an unknown section."""
    figures = {name: figure() for name, figure in ReportFigure.classes().items()}
    for name, figure in figures.items():
        if figure.section not in SECTIONS:
            raise ConfigError(f"figure '{name}': no section '{figure.section}'. Sections: {', '.join(SECTIONS)}.")
    return figures
