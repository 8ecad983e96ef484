"""The files of a report."""

import csv
import io
import os
from pathlib import Path
from typing import Callable, Dict, List

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import replacing
from fiesta_allennlp.reports.content import Report
from fiesta_allennlp.reports.figures.drawing import FIGURES, draw_all
from fiesta_allennlp.reports.figures.replay import FIGURE_ENDINGS
from fiesta_allennlp.reports.html import render as render_html
from fiesta_allennlp.reports.latex import render_latex
from fiesta_allennlp.reports.markdown import render_markdown

PLACE = "figures"
"""The directory of the figures, beside the other files."""


def check_output(directory: Path) -> None:
    """Before the work, and without making anything.

    # Raises

    `ConfigError` : where the directory cannot be made or written to.
    """
    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    if not there.is_dir():
        raise _unwritable(directory, NotADirectoryError(f"{there} is no directory"))
    if not os.access(there, os.W_OK | os.X_OK):
        raise _unwritable(directory, PermissionError(f"no permission to write to {there}"))


def _unwritable(directory: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--output {directory}: cannot be written to: {error}. Give another directory with --output.")


def write_report(report: Report, directory: Path) -> List[Path]:
    """Write every file of a report, those with text in one step each. Returns their paths, the page first.

    # Raises

    `ConfigError` : where the directory cannot be written to.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for old in FIGURES:  # one that has nothing to show now is not drawn
            for ending in FIGURE_ENDINGS:
                (directory / PLACE / f"{old}{ending}").unlink(missing_ok=True)
        figures = draw_all(report, directory / PLACE)
        drawn = {path.stem: f"{PLACE}/{path.name}" for path in figures if path.suffix == ".png"}
        renderers: Dict[str, Callable[[], str]] = {
            "report.html": lambda: render_html(report),
            "report.md": lambda: render_markdown(report, drawn),
            "table.tex": lambda: render_latex(report),
            "scores.csv": lambda: render_csv(report),
        }
        for name, render in renderers.items():
            with replacing(directory / name) as part:
                part.write_text(render(), encoding="utf-8", newline="")
    except OSError as error:
        raise _unwritable(directory, error) from error
    return [*(directory / name for name in renderers), *figures]


def render_csv(report: Report) -> str:
    """Every score, as a table that `fiesta-replay` reads: candidate, split, seed (the replicate) and score, and the
    development score beside it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["candidate", "split", "seed", "score", "development_score"])
    for candidate in report.candidates:
        development = candidate.development_scores or (None,) * candidate.num_evaluations
        columns = (candidate.split_seeds, candidate.replicates, candidate.scores, development)
        writer.writerows([candidate.name, *row] for row in zip(*columns, strict=True))
    return out.getvalue()
