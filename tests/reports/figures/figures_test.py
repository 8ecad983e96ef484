"""The figures of a report: what they show, and that nothing in them is cut or overlaps."""

import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator, List

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from scipy.stats import gaussian_kde

from fiesta_allennlp.reports.figures import drawing
from fiesta_allennlp.reports.figures.drawing import FIGURES, draw_all
from fiesta_allennlp.reports.figures.figure import styled
from fiesta_allennlp.reports.figures.runs import MOST_STEPS, apart, split_names, thinned
from fiesta_allennlp.reports.figures.scores import _density
from fiesta_allennlp.reports.record import PathPoint, Report
from tests.reports.made_up import by_documents, just_begun, long_names, made_up, of_table, screened, ugly

REPORTS = {
    "two": made_up(2),
    "running": made_up(3, num_evaluations=9),
    "one_each": made_up(12, num_evaluations=12),
    "forty": made_up(40, num_evaluations=120),
    "long_names": long_names(),
    "ugly": ugly(),
    "table": of_table(),
    "documents": by_documents(),
    "screened": screened(),
}


BY_NAME = {figure.name: figure for figure in FIGURES}


def drawn(report: Report, name: str) -> Any:
    with styled():
        return BY_NAME[name].draw(report)


def caption_of(report: Report) -> str:
    return BY_NAME["differences"].caption(report)


def points(figure: Figure) -> List[float]:
    """The x of every point, without legends."""
    found = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return sorted(float(x) for line in found for x in line.get_xdata())


def rendered(report: Report) -> Iterator[Figure]:
    for figure in FIGURES:
        with styled():
            drawing = figure.draw(report)
            if drawing is not None:
                drawing.draw_without_rendering()
                yield drawing


def test_every_score_is_a_point_and_three_make_a_violin() -> None:
    report = long_names()
    figure = drawn(report, "distributions")
    assert points(figure) == sorted(score for candidate in report.candidates for score in candidate.scores)
    violins = [shape for shape in figure.axes[0].collections if isinstance(shape, PolyCollection)]
    assert len(violins) == sum(candidate.num_evaluations >= 3 for candidate in report.candidates)


def test_equal_scores_have_no_violin() -> None:
    report = made_up(2)
    same = replace(report.candidates[1], scores=(0.5,) * 4, mean=0.5, median=0.5, interval=(0.5, 0.5))
    figure = drawn(replace(report, candidates=(report.candidates[0], same)), "distributions")
    assert len(figure.axes[0].collections) == 1


def test_measures_are_points_with_their_intervals() -> None:
    report = by_documents()
    figure = drawn(report, "measures")
    asked = [candidate.asked for candidate in report.candidates if candidate.asked is not None]
    assert points(figure) == sorted(one.measure for one in asked if one.measure is not None)
    lines = sorted(tuple(line.get_xdata()) for line in figure.axes[0].lines if len(line.get_xdata()) == 2)
    assert lines == sorted(system.interval for system in report.candidates if system.interval is not None)
    assert drawn(report, "distributions") is None and drawn(made_up(2), "measures") is None


def test_differences_are_those_of_the_comparisons() -> None:
    report = of_table()
    figure = drawn(report, "differences")
    assert points(figure) == sorted(d for c in report.comparisons for d in c.paired_differences)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["model_1", "model_2"]
    assert {"unpaired", "ahead on"} <= {text.get_text() for text in figure.axes[0].texts}


def test_differences_without_pairs_are_explained_as_welchs() -> None:
    report = of_table()
    unpaired = replace(report, comparisons=tuple(c for c in report.comparisons if not c.num_pairs))
    told = []
    for shown in (report, unpaired):
        (legend,) = drawn(shown, "differences").legends
        told.append(("one split" in {text.get_text() for text in legend.get_texts()}, caption_of(shown)))
    assert [has_mark for has_mark, _ in told] == [True, False]
    assert "Each point is one split" in told[0][1]
    assert told[1][1].startswith("Each line is Welch's 95% interval of the difference of two means. Right of 0")


def test_the_path_has_a_line_for_each_candidate() -> None:
    report = made_up(3)
    drawn_lines = drawn(report, "path").axes[0].lines
    lines = [line for line in drawn_lines if len(line.get_xdata()) == len(report.path)]
    ends = [line for line in drawn_lines if line.get_marker() == "o"]
    assert [end.get_ydata()[0] for end in ends] == [line.get_ydata()[-1] for line in lines]
    expected = [[point.prob_best[name] for point in report.path] for name in ("model_0", "model_1", "model_2")]
    assert sorted(list(line.get_ydata()) for line in lines) == sorted(expected)
    assert len({line.get_linestyle() for line in lines}) == 3


def test_the_line_is_at_the_confidence_that_was_asked_for() -> None:
    report = replace(made_up(2), confidence=0.7, asked_confidence=0.9)
    texts = [text.get_text().strip() for text in drawn(report, "path").axes[0].texts]
    assert "confidence 0.9" in texts and "confidence 0.7" not in texts
    assert not any(
        "confidence" in t.get_text() for t in drawn(replace(report, asked_confidence=None), "path").axes[0].texts
    )


def test_a_withdrawn_candidate_ends_where_it_was_withdrawn() -> None:
    path = (PathPoint(2, {"a": 0.5, "b": 0.5}), PathPoint(3, {"a": 1.0}))
    report = made_up(2, names=("a", "b"))
    texts = drawn(replace(report, path=path), "path").axes[0].texts
    ends = [text.xy[1] for text in texts if isinstance(text, Annotation) and text.get_text() in ("a", "b")]
    assert sorted(ends) == [0.5, 1.0]


def test_of_many_candidates_the_likeliest_are_named() -> None:
    named, others = split_names(made_up(40))
    assert len(named) == 7 and len(others) == 33 and named[0] == "model_0"
    assert "33 others" in [text.get_text() for text in drawn(made_up(40), "path").axes[0].texts]


def test_a_long_path_is_thinned_and_keeps_its_ends() -> None:
    path = [PathPoint(number, {"a": 1.0} if number > 1 else {}) for number in range(1, 2001)]
    thin = thinned(path)
    assert len(thin) == MOST_STEPS and (thin[0].num_evaluations, thin[-1].num_evaluations) == (2, 2000)
    assert thinned(path[:5]) == tuple(path[1:5])


@pytest.mark.parametrize(
    ("places", "expected"),
    [([0.0, 0.5], [0.0, 0.5]), ([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]), ([0.98, 1.0], [0.9, 1.0])],
)
def test_labels_are_moved_apart(places: List[float], expected: List[float]) -> None:
    assert apart(places, 0.1) == pytest.approx(expected)


def test_strokes_and_bars_count_the_trainings() -> None:
    report = made_up(4)
    strokes, bars = sorted(drawn(report, "allocation").axes, key=lambda axes: len(axes.patches))
    assert [bar.get_width() for bar in bars.patches] == [len(line.get_xdata()) / 3 for line in strokes.lines]
    assert sum(bar.get_width() for bar in bars.patches) == report.num_evaluations
    assert len(drawn(of_table(), "allocation").axes) == 1


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_cut_and_no_names_overlap(name: str) -> None:
    for figure in rendered(REPORTS[name]):
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
            assert axes.get_window_extent().width > 0.25 * width * figure.dpi or len(figure.axes) == 2


def test_files_are_written_and_the_same_report_gives_the_same_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [BY_NAME[name] for name in ("distributions", "path", "best_so_far", "measures")]
    monkeypatch.setattr(drawing, "FIGURES", few)
    report = screened()
    first, second = (draw_all(report, tmp_path / name) for name in ("first", "second"))
    assert list(first) == [figure.name for figure in few if figure.name != "measures"]
    for name, picture in first.items():
        assert [path.name for path in picture.paths] == [f"{name}.png", f"{name}.pdf"]
        assert picture.uri == second[name].uri and picture.uri.startswith("data:image/svg+xml;base64,")
        for one, two, begins in zip(picture.paths, second[name].paths, (b"\x89PNG", b"%PDF"), strict=True):
            assert one.read_bytes() == two.read_bytes() and one.read_bytes().startswith(begins)


def test_where_there_is_nothing_to_draw_there_is_no_file(tmp_path: Path) -> None:
    assert draw_all(just_begun(), tmp_path / "new") == {}


def test_the_users_own_settings_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "FIGURES", (BY_NAME["distributions"],))
    plain = draw_all(made_up(2))
    monkeypatch.setitem(matplotlib.rcParams, "text.usetex", True)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    assert draw_all(made_up(2)) == plain
    assert matplotlib.rcParams["text.usetex"] is True


def test_more_points_than_files_can_hold_are_drawn_as_pixels() -> None:
    report = made_up(2)
    scores = tuple(np.random.default_rng(1).normal(0.5, 0.1, 5001).tolist())
    many = replace(report.candidates[0], scores=scores)
    figure = drawn(replace(report, candidates=(many, report.candidates[1])), "distributions")
    assert all(line.get_rasterized() for line in figure.axes[0].lines if line.get_marker() == "o")
    figure.savefig(picture := io.StringIO(), format="svg")
    assert picture.getvalue().count("<image") == 1


@pytest.mark.parametrize(("name", "first"), [("distributions", 0), ("differences", 1), ("allocation", 0)])
def test_of_more_than_40_candidates_the_best_30_have_rows(name: str, first: int) -> None:
    report = made_up(45)
    report = replace(report, candidates=report.candidates[::-1])
    shown = [text.get_text() for text in drawn(report, name).axes[-1].get_yticklabels()]
    assert shown == [candidate.name for candidate in report.ranked[first:30]]
    assert BY_NAME[name].caption(report).endswith(" The figure shows the best 30 of 45 candidates.")
    assert "The figure shows" not in BY_NAME[name].caption(made_up(40))


def test_of_more_than_40_candidates_the_best_30_have_lines_or_measures() -> None:
    report, systems = made_up(45), by_documents(45)
    lines = [line for line in drawn(report, "path").axes[0].lines if len(line.get_xdata()) == len(report.path)]
    assert len(lines) == len(drawn(systems, "measures").axes[0].get_yticks()) == 30
    assert BY_NAME["path"].caption(report).count("30 of 45 candidates") == 1
    assert BY_NAME["measures"].caption(systems).endswith(" The figure shows the best 30 of 45 systems.")


def test_the_caption_of_the_path_says_who_leads_since_when() -> None:
    chances = [(0.6, 0.4), (0.3, 0.7), (0.8, 0.2), (0.9, 0.1)]
    path = tuple(PathPoint(number, {"a": a, "b": b}) for number, (a, b) in enumerate(chances, start=2))
    caption = BY_NAME["path"].caption(replace(made_up(2, names=("a", "b")), path=path))
    assert "a has led since run 4." in caption


def test_the_density_is_scipys() -> None:
    scores = np.random.default_rng(3).normal(0.6, 0.02, 9)
    at, density = _density(scores)
    expected = gaussian_kde(scores)(at)
    assert density == pytest.approx(0.36 * expected / expected.max())
