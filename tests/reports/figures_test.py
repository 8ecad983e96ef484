"""The figures of a report: what they show, and that nothing in them is cut or overlaps."""

import itertools
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, List

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from fiesta_allennlp import report
from fiesta_allennlp.core.registry import Registrable, import_package
from fiesta_allennlp.reports import record
from fiesta_allennlp.reports.figures import ReportFigure, draw_all, figure_style
from fiesta_allennlp.reports.record import Report
from tests.conftest import REPOSITORY
from tests.reports.made_up import CASES, TOP_TWO, by_documents, just_begun, long_names, made_up, of_table
from tests.selections import write_selection


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of few points, because each costs a posterior."""
    monkeypatch.setattr(record, "MAX_PATH_POINTS", 8)


def drawn(report: Report, name: str) -> Any:
    with figure_style():
        return ReportFigure.by_name(name)().draw(report)


def restricted(report: Report, candidates: Any) -> Report:
    return replace(report, result=replace(report.result, candidates=tuple(candidates)))


def caption(name: str, report: Report) -> str:
    return ReportFigure.by_name(name)().caption(report)


def points(figure: Figure) -> List[float]:
    """The x of every point, without legends."""
    found = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return sorted(float(x) for line in found for x in line.get_xdata())


def test_every_score_is_a_point() -> None:
    report = long_names()
    figure = drawn(report, "distributions")
    assert points(figure) == sorted(score for candidate in report.result.candidates for score in candidate.scores)


def test_a_candidate_without_a_score_on_a_task_has_points_and_no_mean() -> None:
    rows = [{"candidate": c, "task": t, "seed": s, "score": s / 9} for c in "ab" for t in "tu" for s in range(4)]
    figure = drawn(report([*rows[:-4], *({**row, "score": "failed"} for row in rows[-4:])]), "distributions")
    assert len(points(figure)) == 12


def test_differences_are_those_of_the_comparisons() -> None:
    report = of_table()
    figure = drawn(report, "differences")
    assert points(figure) == sorted(d for c in report.comparisons for d in c.paired_differences)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        comparison.second for comparison in report.comparisons
    ]
    assert {"unpaired", "splits ahead"} <= {text.get_text() for text in figure.axes[0].texts}
    unpaired = restricted(report, [c for c in report.result.candidates if c.name != "model_1"])
    for shown, has_pairs in ((report, True), (unpaired, False)):
        (legend,) = drawn(shown, "differences").legends
        assert ("split" in {text.get_text() for text in legend.get_texts()}) is has_pairs
        assert ("splits ahead" in {text.get_text() for text in drawn(shown, "differences").axes[0].texts}) is has_pairs


def texts_of(report: Report) -> List[str]:
    (legend,) = drawn(report, "path").legends
    return [text.get_text() for text in legend.get_texts()]


def test_the_path_has_a_line_for_each_candidate() -> None:
    report = made_up(3, strategy={**TOP_TWO, "confidence": 0.9})
    drawn_lines = drawn(report, "path").axes[0].lines
    lines = [line for line in drawn_lines if len(line.get_xdata()) == len(report.path)]
    ends = [line for line in drawn_lines if line.get_marker() == "o"]
    assert [end.get_ydata()[0] for end in ends] == [line.get_ydata()[-1] for line in lines]
    expected = [[point.prob_best[name] for point in report.path] for name in ("model_0", "model_1", "model_2")]
    assert sorted(list(line.get_ydata()) for line in lines) == sorted(expected)
    assert len({line.get_linestyle() for line in lines}) == 3
    assert [text for text in texts_of(report) if "confidence" in text] == ["confidence 0.9"], "what was asked for"
    budget = made_up(3, strategy={"type": "non_adaptive_fb", "budget": 24, "belief": TOP_TWO["belief"]})
    assert not any("confidence" in text for text in texts_of(budget))
    assert "33 others" in texts_of(made_up(40)), "of many candidates the likeliest are named"


MANY = partial(made_up, 40, num_evaluations=120)


@pytest.mark.parametrize("make", [MANY, *map(CASES.get, ("long_names", "ugly", "table", "documents"))])
def test_nothing_is_cut_or_overlaps_and_a_small_screen_shows_every_text_with_11_pixels(make: Any) -> None:
    report = make()
    for figure in filter(None, (drawn(report, kind) for kind in ReportFigure.classes())):
        with figure_style():
            figure.draw_without_rendering()
        box = figure.get_tightbbox()
        width, height = figure.get_size_inches()
        assert box.x0 > -0.01 and box.y0 > -0.01 and box.x1 < width + 0.01 and box.y1 < height + 0.01
        for axes in figure.axes:
            rows = [text.get_window_extent() for text in axes.get_yticklabels() if text.get_text()]
            assert not any(one.overlaps(two) for one, two in itertools.combinations(rows, 2))
            left, right = sorted(axes.get_xlim())
            ticks = [t for t in axes.get_xticklabels() if left <= t.get_position()[0] <= right]
            numbers = [text.get_window_extent() for text in ticks]
            assert not any(one.overlaps(two) for one, two in itertools.combinations(numbers, 2))
            assert axes.get_window_extent().width > 0.25 * width * figure.dpi
        smallest = min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text())
        assert smallest / 72 / width * (390 - 32) >= 11, "of 390 pixels, the page without its margins"


def test_files_are_written_and_the_same_report_gives_the_same_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own settings play no part, and where there is nothing to draw there is no file."""
    report = by_documents()
    first = draw_all(report, tmp_path / "first")
    monkeypatch.setitem(matplotlib.rcParams, "text.usetex", True)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    second = draw_all(report, tmp_path / "second")
    assert matplotlib.rcParams["text.usetex"] is True
    assert list(first) == ["path"]
    for name, picture in first.items():
        assert picture.uri == second[name].uri and picture.uri.startswith("data:image/svg+xml;base64,")
        one, two = ((tmp_path / place / f"{name}.pdf").read_bytes() for place in ("first", "second"))
        assert one == two and one.startswith(b"%PDF")
    assert draw_all(just_begun(), tmp_path / "new") == {}


def test_a_figure_from_a_package_is_on_the_page_and_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Registrable._registered, ReportFigure, {**Registrable._registered[ReportFigure]})
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "figure"))
    import_package("cost_figure")
    write_selection(tmp_path / "run", {"a": [0.8, 0.9, 0.85], "b": [0.6, 0.7, 0.65]}).close()
    report(tmp_path / "run", output=tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    section = next(part for part in page.split("</section>") if 'id="pictures"' in part)
    assert len(re.findall("<figure>", section)) == len(re.findall("<figure>", page)) == 4
    assert (tmp_path / "figures" / "cost.pdf").read_bytes().startswith(b"%PDF")
