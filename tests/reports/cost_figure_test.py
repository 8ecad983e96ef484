"""The figure of `examples/figure`, which comes from a package of the user's: without it, nothing of it is there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.reports.drawing import ReportFigure
from fiesta_allennlp.reports.figures import draw_all
from fiesta_allennlp.reports.record import Report
from tests.conftest import REPOSITORY
from tests.reports.made_up import made_up
from tests.selections import write_selection


def report(output: Path, *options: str) -> str:
    """Return the page of a report that the command wrote."""
    run = output / "run"
    write_selection(run, {"a": [0.8, 0.9, 0.85], "b": [0.6, 0.7, 0.65]}).close()
    command = [sys.executable, "-m", "fiesta_allennlp", "report", str(run), "--output", str(output), *options]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY / "examples" / "figure")})
    return (output / "report.html").read_text(encoding="utf-8")


def test_a_figure_from_a_package_is_on_the_page_and_in_the_files(tmp_path: Path) -> None:
    page = report(tmp_path, "--include-package", "cost_figure")
    section = next(part for part in page.split("</section>") if 'id="pictures"' in part)
    assert len(re.findall("<figure>", section)) == len(re.findall("<figure>", page)) == 4
    assert (tmp_path / "figures" / "cost.pdf").read_bytes().startswith(b"%PDF")


def test_a_drawing_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Wrong(ReportFigure):
        def draw(self, report: Report) -> Any:
            return "a drawing"

        def caption(self, report: Report) -> str:
            return "A caption."

    monkeypatch.setitem(Registrable._registered, ReportFigure, {"wrong": Wrong})
    with pytest.raises(ConfigError, match="figure 'wrong': draw must return a matplotlib Figure .* got 'a drawing'"):
        draw_all(made_up(2), tmp_path)
