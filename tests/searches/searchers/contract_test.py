"""What holds of every registered searcher."""

from dataclasses import replace
from typing import List

import numpy as np
import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.searches.searchers import Points, Searcher, SearchHistory

POINTS = Points(np.random.default_rng(5).random((40, 2)))
HILL = -((POINTS.inputs - 0.3) ** 2).sum(axis=1)
SCORES = np.column_stack([HILL, -HILL + POINTS.inputs[:, 0]])


@pytest.fixture(params=sorted(Searcher.available()))
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return Searcher.by_name(request.param)()


def history(*seen: int, pending: "tuple[int, ...]" = ()) -> SearchHistory:
    return SearchHistory(POINTS, seen, SCORES[list(seen)], pending)


def test_every_point_is_run_once(searcher: Searcher) -> None:
    rng, now = np.random.default_rng(1), history()
    while rows := searcher.propose(now, 3, rng):
        now = history(*now.seen, *rows)
    assert sorted(now.seen) == list(range(40))


def test_slots_are_filled_one_by_one_and_equal_generators_give_equal_points(searcher: Searcher) -> None:
    rng, now = np.random.default_rng(7), history(3, 8, 20)
    one_by_one: List[int] = []
    for _ in range(3):
        one_by_one += searcher.propose(now, 1, rng)
        now = replace(now, pending=tuple(one_by_one))
    for _ in range(2):
        assert searcher.propose(history(3, 8, 20), 3, np.random.default_rng(7)) == one_by_one


def test_what_is_pending_is_not_proposed_nor_anything_without_slots_or_points(searcher: Searcher) -> None:
    now = history(*range(9), pending=tuple(range(10, 39)))
    assert sorted(searcher.propose(now, 5, np.random.default_rng(1))) == [9, 39]
    assert searcher.propose(history(1, 2, 3), 0, np.random.default_rng(1)) == []
    assert searcher.propose(history(*range(40)), 1, np.random.default_rng(1)) == []


def test_all_searchers_begin_with_the_same_random_points_until_a_run_has_succeeded(searcher: Searcher) -> None:
    failed = SearchHistory(POINTS, tuple(range(6)), np.full((6, 2), np.nan))
    for now in (history(), failed):
        both = (searcher, Searcher.by_name("random")())
        found, random = (each.propose(now, 3, np.random.default_rng(4)) for each in both)
        assert found == random


def test_failures_count_as_the_worst_score_and_units_play_no_part(searcher: Searcher) -> None:
    scores, seen = SCORES[[3, 8, 20, 31]], (3, 8, 20, 31, 5)

    def proposed(rows: np.ndarray) -> List[int]:
        return searcher.propose(SearchHistory(POINTS, seen, rows), 2, np.random.default_rng(1))

    worst = proposed(np.vstack([scores, scores.min(axis=0)]))
    assert proposed(np.vstack([scores, [np.nan, 1.0]])) == worst
    assert proposed(np.vstack([scores, scores.min(axis=0)]) * 37 + 5) == worst, "shifted and stretched"
    assert len(proposed(np.ones((5, 2)))) == 2, "equal scores are no error"


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("gp_ei", "kernel", "linear"),
        ("gp_ei", "noise", 0.0),
        ("gp_ehvi", "length_scale", float("inf")),
        ("graph_ei", "beta", -1.0),
        ("graph_eif", "neighbours", 1.0),
    ],
)
def test_options_that_cannot_work_are_refused(name: str, option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be .*'?{value}"):
        Searcher.by_name(name)(**{option: value})
