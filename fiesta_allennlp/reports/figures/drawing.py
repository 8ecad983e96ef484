"""Draws the figures of a report, once for its page and its files. It imports matplotlib, so it is imported late."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import ContextManager, Mapping

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal
from matplotlib.text import Text

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import atomic_replacement
from fiesta_allennlp.reports.figures import scores, standing  # noqa: F401  # they register their figures
from fiesta_allennlp.reports.figures.figure import FONT_SIZE
from fiesta_allennlp.reports.figures.report_figure import registered_figures
from fiesta_allennlp.reports.record import Report

FIGURE_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "fiesta",
}


@dataclass(frozen=True)
class Picture:
    """A figure as the data URI of an SVG picture, its size in CSS pixels, and its caption, which is the alternative
    text."""

    uri: str
    width: int
    height: int
    caption: str


def figure_style() -> ContextManager[None]:
    """Set the look of all figures that are made and saved within; a user's own settings play no part."""
    return style.context(["default", FIGURE_STYLE])


def draw_all(report: Report, directory: Path) -> Mapping[str, Picture]:
    """Draw every figure that has something to show, by name in the order of registration, and as PDF into a
    directory."""
    with figure_style():
        drawings = ((name, figure, figure.draw(report)) for name, figure in registered_figures().items())
        return {
            name: _save_picture(drawing, directory / f"{name}.pdf", figure.caption(report))
            for name, figure, drawing in drawings
            if drawing is not None
        }


def _save_picture(drawing: Figure, pdf: Path, caption: str) -> Picture:
    if not isinstance(drawing, Figure):
        raise ConfigError(f"figure '{pdf.stem}': draw must return a matplotlib Figure or None but got {drawing!r}.")
    svg = io.BytesIO()
    drawing.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    drawing.set_layout_engine("none")  # the layout is found, and stays
    for text in drawing.findobj(Text):
        text.set_path_effects([Normal()])  # outlines, because to cut a font to size takes as long as all the rest
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with atomic_replacement(pdf) as temporary_path:
        drawing.savefig(temporary_path, format="pdf", metadata={"CreationDate": None})
    uri = "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode()
    width, height = drawing.get_size_inches() * 96
    return Picture(uri, round(width), round(height), caption)
