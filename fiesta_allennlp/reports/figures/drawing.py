"""Draws the figures of a report, once for its page and its files. It imports matplotlib, so it is imported late."""

import base64
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Mapping, Optional

from matplotlib import style
from matplotlib.figure import Figure

from fiesta_allennlp.files import replacing
from fiesta_allennlp.reports.figures.figure import FONT_SIZE
from fiesta_allennlp.reports.figures.runs import draw_allocation, draw_best_so_far, draw_front, draw_path, path_facts
from fiesta_allennlp.reports.figures.scores import draw_differences, draw_distributions
from fiesta_allennlp.reports.formats import prose
from fiesta_allennlp.reports.record import Report

FIGURES: Dict[str, Callable[[Report], Optional[Figure]]] = {
    "distributions": draw_distributions,
    "differences": draw_differences,
    "path": draw_path,
    "allocation": draw_allocation,
    "best_so_far": draw_best_so_far,
    "pareto_front": draw_front,
}
"""The functions that draw a report, by figure in the order of a page. They return None if there is nothing to draw."""

FIGURE_ENDINGS: Mapping[str, Any] = {".png": None, ".pdf": {"CreationDate": None}}
"""The endings of a figure's files, each with what is written into the file. No file has a date."""

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
class Picture:
    """A figure as the data URI of an SVG picture, its size in CSS pixels, and its caption, which is the alternative
    text."""

    uri: str
    width: int
    height: int
    caption: str


def styled() -> ContextManager[None]:
    """Set the look of all figures that are made and saved within; a user's own settings play no part."""
    return style.context(["default", STYLE])


def draw_all(report: Report, directory: Path) -> Mapping[str, Picture]:
    """Draw every figure that has something to show, by name in the order of a page, and as PNG and PDF into a
    directory."""
    shown = best_candidates(report)
    with styled():
        drawn = ((name, draw(shown)) for name, draw in FIGURES.items())
        return {
            name: _picture(drawing, name, caption(name, report), directory)
            for name, drawing in drawn
            if drawing is not None
        }


def best_candidates(report: Report) -> Report:
    """Return the report of the best 30 of more than 40 candidates, with the comparisons among them."""
    if len(report.candidates) <= MOST_CANDIDATES:
        return report
    shown = report.ranked[:NUM_SHOWN]
    names = {candidate.name for candidate in shown}
    return replace(report, candidates=shown, comparisons=tuple(c for c in report.comparisons if c.second in names))


def caption(name: str, report: Report) -> str:
    """Return the caption of a figure, which is the alternative text as well."""
    shown = best_candidates(report)
    facts = path_facts(shown) if name == "path" else {}
    return prose(f"caption_{name}", shown, num_candidates=len(report.candidates), **facts)


def _picture(drawing: Figure, name: str, text: str, directory: Path) -> Picture:
    out = io.BytesIO()
    drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    drawing.set_layout_engine("none")  # the layout is found, and stays
    directory.mkdir(parents=True, exist_ok=True)
    for ending, metadata in FIGURE_ENDINGS.items():
        with replacing(directory / f"{name}{ending}") as part:
            drawing.savefig(part, format=ending[1:], dpi=200, metadata=metadata)
    uri = "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()
    width, height = drawing.get_size_inches() * 96
    return Picture(uri, round(width), round(height), text)
