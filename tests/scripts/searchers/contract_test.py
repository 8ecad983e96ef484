"""What holds of every searcher."""

from typing import Any, List, Sequence

import numpy as np
import pytest
from gaussian_processes import Points, graph_covariance
from searchers import GaussianProcess, GraphEif, Random, Searcher, SearchHistory

POINTS = Points(np.random.default_rng(5).random((40, 2)))
HILL = -((POINTS.inputs - 0.3) ** 2).sum(axis=1)
SCORES = np.column_stack([HILL, -HILL + POINTS.inputs[:, 0]])


@pytest.fixture(params=[Random(), GaussianProcess(), GaussianProcess(graph_covariance), GraphEif()])
def searcher(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[1, 2])
def scores(request: pytest.FixtureRequest) -> np.ndarray:
    """Scores of all points in one objective, or in two."""
    return SCORES[:, : request.param]


def propose(searcher: Searcher, scores: np.ndarray, seen: Sequence[int], rng: np.random.Generator) -> int:
    return searcher.propose(SearchHistory(POINTS, tuple(seen), scores[list(seen)]), rng)


def test_every_point_is_run_once_and_equal_generators_give_equal_points(searcher: Any, scores: np.ndarray) -> None:
    def order() -> List[int]:
        rng, rows = np.random.default_rng(1), []
        for _ in range(40):
            rows.append(propose(searcher, scores, rows, rng))
        return rows

    assert sorted(order()) == list(range(40)) and order() == order()


def test_all_searchers_begin_with_the_same_random_points(searcher: Any, scores: np.ndarray) -> None:
    for rows in ((), (4,), (4, 9)):
        proposed, random = (propose(one, scores, rows, np.random.default_rng(4)) for one in (searcher, Random()))
        assert proposed == random


def test_units_play_no_part(searcher: Any, scores: np.ndarray) -> None:
    seen = (3, 8, 20, 31, 5)
    other_units, equal = (propose(searcher, s, seen, np.random.default_rng(1)) for s in (scores * 37 + 5, scores**0))
    assert other_units == propose(searcher, scores, seen, np.random.default_rng(1))
    assert equal not in seen, "equal scores are no error"
