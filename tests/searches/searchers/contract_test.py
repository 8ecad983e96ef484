"""What holds of every registered searcher."""

from dataclasses import replace
from typing import List

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.searchers import Points, Searcher, SearchHistory

POINTS = Points(np.random.default_rng(5).random((40, 2)))
HILL = -((POINTS.inputs - 0.3) ** 2).sum(axis=1)
SCORES = np.column_stack([HILL, -HILL + POINTS.inputs[:, 0]])


@pytest.fixture(params=sorted(Searcher.available()))
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return Searcher.by_name(request.param)()


def history(*seen: int, pending: "tuple[int, ...]" = ()) -> SearchHistory:
    return SearchHistory(POINTS, seen, SCORES[list(seen)], pending)


def run(searcher: Searcher, *, slots: int, seed: int) -> List[int]:
    rng, now = np.random.default_rng(seed), history()
    while rows := searcher.propose(now, slots, rng):
        now = history(*now.seen, *rows)
    return list(now.seen)


@pytest.mark.parametrize("slots", [1, 3])
def test_every_point_is_run_once(searcher: Searcher, slots: int) -> None:
    assert sorted(run(searcher, slots=slots, seed=1)) == list(range(40))


def test_equal_histories_and_generators_give_equal_points(searcher: Searcher) -> None:
    now = history(3, 8, 20, 31)
    first, again = (searcher.propose(now, 3, np.random.default_rng(7)) for _ in range(2))
    assert first == again


def test_slots_are_filled_one_by_one(searcher: Searcher) -> None:
    rng, now = np.random.default_rng(7), history(3, 8, 20)
    one_by_one = []
    for _ in range(3):
        one_by_one += searcher.propose(now, 1, rng)
        now = replace(now, pending=tuple(one_by_one))
    assert searcher.propose(history(3, 8, 20), 3, np.random.default_rng(7)) == one_by_one


def test_what_is_pending_is_not_proposed(searcher: Searcher) -> None:
    pending = tuple(range(10, 39))
    assert searcher.propose(history(0, 1, 2, 3, 4, 5, 6, 7, 8, pending=pending), 5, np.random.default_rng(1)) in (
        [9, 39],
        [39, 9],
    )


def test_nothing_is_proposed_without_slots_or_points(searcher: Searcher) -> None:
    assert searcher.propose(history(1, 2, 3), 0, np.random.default_rng(1)) == []
    assert searcher.propose(history(*range(40)), 1, np.random.default_rng(1)) == []


def test_all_searchers_begin_with_the_same_random_points(searcher: Searcher) -> None:
    random = Searcher.by_name("random")()
    assert searcher.propose(history(), 3, np.random.default_rng(4)) == random.propose(
        history(), 3, np.random.default_rng(4)
    )


def test_points_are_random_until_a_run_has_succeeded(searcher: Searcher) -> None:
    failed = SearchHistory(POINTS, tuple(range(6)), np.full((6, 2), np.nan))
    assert len(set(searcher.propose(failed, 30, np.random.default_rng(1)))) == 30


def test_failures_count_as_the_worst_score(searcher: Searcher) -> None:
    scores = SCORES[[3, 8, 20, 31]]
    now = SearchHistory(POINTS, (3, 8, 20, 31, 5), np.vstack([scores, [np.nan, 1.0]]))
    told = SearchHistory(POINTS, (3, 8, 20, 31, 5), np.vstack([scores, scores.min(axis=0)]))
    assert searcher.propose(now, 2, np.random.default_rng(1)) == searcher.propose(told, 2, np.random.default_rng(1))


def test_equal_scores_are_no_error(searcher: Searcher) -> None:
    flat = SearchHistory(POINTS, (1, 2, 3, 4), np.ones((4, 2)))
    assert len(searcher.propose(flat, 2, np.random.default_rng(1))) == 2


def test_shifted_and_stretched_scores_give_the_same_points(searcher: Searcher) -> None:
    seen = (3, 8, 20, 31, 12)
    stretched = SearchHistory(POINTS, seen, SCORES[list(seen)] * 37 + 5)
    rngs = (np.random.default_rng(1), np.random.default_rng(1))
    assert searcher.propose(history(*seen), 4, rngs[0]) == searcher.propose(stretched, 4, rngs[1])


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("random", {"num_initial": 0}, "num_initial must be at least 1 but got 0"),
        ("gp_ei", {"kernel": "linear"}, "kernel must be one of matern, rbf but got 'linear'"),
        ("gp_ei", {"scores": "ranks"}, "scores must be one of standardised, raw but got 'ranks'"),
        ("gp_ei", {"noise": 0.0}, "noise must be a number above 0 but got 0.0"),
        ("gp_ehvi", {"length_scale": float("inf")}, "length_scale must be a number above 0 but got inf"),
        ("graph_ei", {"beta": -1.0}, "beta must be a number above 0 but got -1.0"),
        ("graph_ehvi", {"sigma": 0.0}, "sigma must be a number above 0 but got 0.0"),
        ("graph_eif", {"neighbours": 1.0}, "neighbours must be above 0 and below 1"),
    ],
)
def test_options_that_cannot_work_are_refused(name: str, options: "dict[str, object]", said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Searcher.by_name(name)(**options)
