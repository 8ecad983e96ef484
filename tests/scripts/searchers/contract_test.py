"""What holds of every searcher."""

from typing import List, Optional

import numpy as np
import pytest
from searchers import GpEhvi, GpEi, GraphEhvi, GraphEi, GraphEif, Points, Random, Searcher, SearchHistory

POINTS = Points(np.random.default_rng(5).random((40, 2)))
HILL = -((POINTS.inputs - 0.3) ** 2).sum(axis=1)
SCORES = np.column_stack([HILL, -HILL + POINTS.inputs[:, 0]])


@pytest.fixture(params=[Random, GpEi, GpEhvi, GraphEi, GraphEhvi, GraphEif])
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return request.param()


def history(*seen: int, scores: Optional[np.ndarray] = None) -> SearchHistory:
    return SearchHistory(POINTS, seen, SCORES[list(seen)] if scores is None else scores)


def test_every_point_is_run_once_and_equal_generators_give_equal_points(searcher: Searcher) -> None:
    def order() -> List[int]:
        rng, rows = np.random.default_rng(1), []
        for _ in range(40):
            rows.append(searcher.propose(history(*rows), rng))
        return rows

    assert sorted(order()) == list(range(40)) and order() == order()


def test_all_searchers_begin_with_the_same_random_points(searcher: Searcher) -> None:
    for rows in ((), (4,), (4, 9)):
        proposed, random = (each.propose(history(*rows), np.random.default_rng(4)) for each in (searcher, Random()))
        assert proposed == random


def test_units_play_no_part(searcher: Searcher) -> None:
    seen = (3, 8, 20, 31, 5)

    def proposed(scores: np.ndarray) -> int:
        return searcher.propose(history(*seen, scores=scores), np.random.default_rng(1))

    assert proposed(SCORES[list(seen)] * 37 + 5) == proposed(SCORES[list(seen)])
    assert proposed(np.ones((5, 2))) not in seen, "equal scores are no error"
