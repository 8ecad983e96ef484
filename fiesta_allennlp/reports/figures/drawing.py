"""Draws the figures of a report, once for its page and its files. matplotlib is imported late."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Tuple

from fiesta_allennlp.files import replacing
from fiesta_allennlp.reports.figures.figure import Figure, styled
from fiesta_allennlp.reports.figures.runs import ALLOCATION, BEST_SO_FAR, FRONT, PATH
from fiesta_allennlp.reports.figures.scores import DIFFERENCES, DISTRIBUTIONS, MEASURES
from fiesta_allennlp.reports.record import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FIGURES: Tuple[Figure, ...] = (DISTRIBUTIONS, MEASURES, DIFFERENCES, PATH, ALLOCATION, BEST_SO_FAR, FRONT)

FIGURE_ENDINGS: Mapping[str, Any] = {".png": None, ".pdf": {"CreationDate": None}}
"""The endings of a figure's files, each with what is written into the file. No file has a date."""


@dataclass(frozen=True)
class Picture:
    """A figure as the data URI of an SVG picture, its size in CSS pixels, and its caption, which is the alternative
    text."""

    uri: str
    width: int
    height: int
    caption: str


def draw_all(report: Report, directory: Optional[Path] = None) -> Mapping[str, Picture]:
    """Draw every figure that has something to show, by name in the order of a page, and as PNG and PDF into a
    directory."""
    with styled():
        drawn = ((figure, figure.draw(report)) for figure in FIGURES)
        return {
            figure.name: _picture(drawing, figure, figure.caption(report), directory)
            for figure, drawing in drawn
            if drawing is not None
        }


def _picture(drawing: "Drawing", figure: Figure, caption: str, directory: Optional[Path]) -> Picture:
    out = io.BytesIO()
    drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    drawing.set_layout_engine("none")  # the layout is found, and stays
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        for ending, metadata in FIGURE_ENDINGS.items():
            with replacing(directory / f"{figure.name}{ending}") as part:
                drawing.savefig(part, format=ending[1:], dpi=200, metadata=metadata)
    uri = "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()
    width, height = drawing.get_size_inches() * 96
    return Picture(uri, round(width), round(height), caption)
