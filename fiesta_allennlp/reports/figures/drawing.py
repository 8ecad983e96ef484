"""The figures of a report as files and within its page, and that of a replay.

matplotlib is imported inside the functions, because it takes half a second and most commands draw nothing.
"""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.files import replacing
from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.allocation import ALLOCATION
from fiesta_allennlp.reports.figures.differences import DIFFERENCES
from fiesta_allennlp.reports.figures.distributions import DISTRIBUTIONS
from fiesta_allennlp.reports.figures.figure import NARROW, WIDE, Figure, Look, of_the_best, styled
from fiesta_allennlp.reports.figures.measures import MEASURES
from fiesta_allennlp.reports.figures.path import PATH
from fiesta_allennlp.reports.figures.screening import BEST_SO_FAR, FRONT, PARALLEL

FIGURES: Tuple[Figure, ...] = (
    *map(of_the_best, (DISTRIBUTIONS, MEASURES, DIFFERENCES, PATH, ALLOCATION)),
    BEST_SO_FAR,
    PARALLEL,
    FRONT,
)

FIGURE_ENDINGS = (".png", ".pdf")


@dataclass(frozen=True)
class Picture:
    """A figure within a page as the data URI of an SVG picture. Sizes in CSS pixels, of which an inch has 96."""

    uri: str
    width: int
    height: int


@dataclass(frozen=True)
class Embedded:
    """A figure within a page, in two widths: `narrow` is for telephones."""

    wide: Picture
    narrow: Picture
    alt: str
    caption: str


def draw_all(report: Report, directory: Path) -> Tuple[Path, ...]:
    """Draw every figure of a report that has something to show, as PNG (200 dots an inch) and PDF, into `directory`,
    which is made if need be. The same report gives the same files.

    Returns:
        The paths, as in `distributions.png`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    with styled(WIDE):
        for figure in FIGURES:
            drawing = figure.draw(report, WIDE)
            if drawing is None:
                continue
            for ending in FIGURE_ENDINGS:
                paths.append(directory / f"{figure.name}{ending}")
                metadata: Any = {"CreationDate": None} if ending == ".pdf" else None
                with replacing(paths[-1]) as part:
                    drawing.savefig(part, format=ending[1:], dpi=200, metadata=metadata)
    return tuple(paths)


def embed(report: Report, figure: Figure) -> Optional[Embedded]:
    """A figure for a page; None where there is nothing to draw."""
    wide, narrow = _picture(report, figure, WIDE), _picture(report, figure, NARROW)
    if wide is None or narrow is None:
        return None
    return Embedded(wide, narrow, figure.alt(report), figure.caption(report))


def _picture(report: Report, figure: Figure, look: Look) -> Optional[Picture]:
    with styled(look):
        drawing = figure.draw(report, look)
        if drawing is None:
            return None
        out = io.BytesIO()
        drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    width, height = drawing.get_size_inches() * 96
    uri = "data:image/svg+xml;base64," + base64.b64encode(out.getvalue()).decode()
    return Picture(uri, round(width), round(height))


def draw_evaluations(num_evaluations: Sequence[int], summary: Mapping[str, Any], path: Path) -> None:
    """The distribution of the number of evaluations over the repetitions of a replay, with its mean and its 5 to 95 %
    range.

    Args:
        num_evaluations: of every repetition.
        summary: the content of the replay's JSON file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(num_evaluations, bins="auto", color="0.75")
    quantiles, mean = summary["evaluations"]["quantiles"], summary["evaluations"]["mean"]
    axes.axvspan(
        quantiles["5"], quantiles["95"], zorder=0, alpha=0.15, label=f"5-95 %: {quantiles['5']} to {quantiles['95']}"
    )
    axes.axvline(mean, color="black", label=f"mean {mean:.1f}")
    axes.set_xlabel("runs needed")
    axes.set_ylabel(f"repetitions (of {summary['repetitions']})")
    axes.set_title(
        f"{summary['strategy']['type']}, {summary['belief']['type']}, {summary['splits']} splits: "
        f"{summary['correct']:.1%} correct",
        fontsize="medium",
    )
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
