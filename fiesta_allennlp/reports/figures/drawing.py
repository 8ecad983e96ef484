"""All figures of a report: as files, and within its page."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Tuple

from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.allocation import draw_allocation
from fiesta_allennlp.reports.figures.differences import draw_differences
from fiesta_allennlp.reports.figures.distributions import draw_distributions
from fiesta_allennlp.reports.figures.measures import draw_measures
from fiesta_allennlp.reports.figures.path import draw_path
from fiesta_allennlp.reports.figures.replay import FIGURE_ENDINGS
from fiesta_allennlp.reports.figures.style import NARROW, WIDE, Look, styled

FIGURES: Mapping[str, Callable[[Report, Look], Any]] = {
    "distributions": draw_distributions,
    "measures": draw_measures,
    "differences": draw_differences,
    "path": draw_path,
    "allocation": draw_allocation,
}
"""By name, which is that of its files too. Each gives a matplotlib figure, or None where there is nothing to draw."""


@dataclass(frozen=True)
class Embedded:
    """A figure within a page: data URIs of an SVG picture, and of a narrow one for telephones. Sizes in CSS pixels."""

    wide: str
    narrow: str
    width: int
    height: int


def draw_all(report: Report, directory: Path) -> Tuple[Path, ...]:
    """Draw every figure of a report that has something to show, as PNG (200 dots an inch) and PDF, into `directory`,
    which is made if need be. The same report gives the same files.

    # Returns

    The paths, as in `distributions.png`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    with styled(WIDE):
        for name, draw in FIGURES.items():
            figure = draw(report, WIDE)
            for ending in FIGURE_ENDINGS if figure is not None else ():
                paths.append(directory / f"{name}{ending}")
                metadata = {"CreationDate": None} if ending == ".pdf" else None
                figure.savefig(paths[-1], dpi=200, metadata=metadata)
    return tuple(paths)


def embed(report: Report, name: str) -> Optional[Embedded]:
    """The figure called `name` for a page; None where there is nothing to draw."""
    wide, narrow = _svg(report, name, WIDE), _svg(report, name, NARROW)
    if wide is None or narrow is None:
        return None
    return Embedded(wide=wide.uri, narrow=narrow.uri, width=wide.width, height=wide.height)


@dataclass(frozen=True)
class _Svg:
    uri: str
    width: int
    height: int


def _svg(report: Report, name: str, look: Look) -> Optional[_Svg]:
    """A figure as a data URI, and its size in CSS pixels, of which an inch has 96."""
    with styled(look):
        figure = FIGURES[name](report, look)
        if figure is None:
            return None
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    width, height = figure.get_size_inches() * 96
    uri = "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()
    return _Svg(uri, round(width), round(height))
