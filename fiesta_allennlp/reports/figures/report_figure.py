"""The base class of the figures of a report. It imports no matplotlib, so a package of your own may import it early."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Dict, Optional

from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.reports.record import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ReportFigure(Registrable):
    """A figure of a report. Its registered name is that of its file."""

    @abstractmethod
    def draw(self, report: Report) -> Optional["Figure"]:
        """Return the drawing, or None if the report has nothing to show."""

    @abstractmethod
    def caption(self, report: Report) -> str:
        """Return the caption of a drawing, which is its alternative text as well."""


def registered_figures() -> Dict[str, ReportFigure]:
    """Return all figures by name, in the order of their registration."""
    return {name: figure() for name, figure in ReportFigure.classes().items()}
