import math
from importlib import import_module
from itertools import combinations
from xml.etree import ElementTree

import pytest


def test_marks_that_overlap_are_pushed_apart_within_the_panel() -> None:
    figure = import_module("real_figure")
    places = [(200.0, 40.0), (200.0, 40.0), (205.0, 42.0), (figure.RIGHT, figure.PANEL_HEIGHT)]
    marks = [figure.Mark(figure.KINDS[0], x, y, x, y, 9.0) for x, y in places]
    pushed = figure.push_apart(marks)
    for first, second in combinations(pushed, 2):
        assert math.hypot(first.mark_x - second.mark_x, first.mark_y - second.mark_y) >= 2 * figure.RADIUS - 0.01
    assert [(mark.x, mark.y) for mark in pushed] == places
    assert pushed[-1].mark_y <= figure.PANEL_HEIGHT


def test_a_share_has_its_place_on_a_scale_of_square_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = import_module("real_figure")
    assert figure.x_of(0) == figure.LEFT
    assert figure.x_of(0.05) - figure.LEFT == pytest.approx((figure.x_of(0.2) - figure.LEFT) / 2)
    assert figure.y_of(1) == 0 and figure.y_of(figure.LEAST_NAMED) == figure.PANEL_HEIGHT
    results = import_module("real_results")
    line = results.ResultRow("r", "default", "s", "s: p", "p", "above 0.8", "", 1, 4, 3, 1, 0, 0, 0.1, "6:2 10:2")
    monkeypatch.setattr(figure, "read_results", lambda name: [line])
    monkeypatch.setattr(figure, "final_rule", lambda: "r")
    (mark,) = figure.find_marks("opened")
    assert (mark.num_runs, mark.y) == (8.0, figure.y_of(0.75)) and mark.x == figure.x_of(1 / 3)
    root = ElementTree.fromstring(figure.svg_text())
    assert [results.SETS[name].title in "".join(root.itertext()) for name in ("opened", "tuned")] == [True, True]
