from dataclasses import replace

import numpy as np
import pytest

from fiesta_allennlp.beliefs import SplitPaired, StudentT
from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.reports.record import belief_path
from fiesta_allennlp.seeding import make_request

RNG = np.random.default_rng(2)
ORDER = [(name, k) for k in range(6) for name in "abc"]
HISTORY = History(
    ("a", "b", "c"),
    tuple(
        Evaluation(make_request(1, name, k, shared_splits=True), float(RNG.normal(ord(name) / 50, 0.01)), "f1")
        for name, k in ORDER
    ),
)


@pytest.mark.parametrize(("belief", "begin"), [(SplitPaired(), 6), (StudentT(), 9)])
def test_every_point_is_the_belief_of_that_moment(belief: SplitPaired, begin: int) -> None:
    path = belief_path(HISTORY, belief)
    assert [point.num_evaluations for point in path] == list(range(begin, 19))
    for point in path:
        expected = belief.posterior(HISTORY.first(point.num_evaluations)).prob_best()
        assert list(point.prob_best.values()) == pytest.approx(expected)
    assert path[-1].prob_best["c"] > 0.5


def test_there_are_no_more_points_than_asked_for_and_the_last_is_there() -> None:
    path = belief_path(HISTORY, SplitPaired(), most_points=5)
    assert len(path) <= 5
    assert path[-1].num_evaluations == 18


def test_one_that_joined_late_is_there_from_then_on() -> None:
    first = [e for e in HISTORY.evaluations if e.request.candidate != "c"]
    late = [e for e in HISTORY.evaluations if e.request.candidate == "c"]
    path = belief_path(replace(HISTORY, evaluations=(*first, *late)), SplitPaired())
    assert [(p.num_evaluations, len(p.prob_best)) for p in path if p.num_evaluations > 10] == [
        (11, 2), (12, 2), (14, 3), (15, 3), (16, 3), (17, 3), (18, 3)
    ]  # fmt: skip


def test_a_withdrawn_candidate_has_no_part() -> None:
    path = belief_path(replace(HISTORY, withdrawn=frozenset("b")), SplitPaired())
    assert set(path[-1].prob_best) == {"a", "c"}
    assert belief_path(History(("a", "b")), SplitPaired()) == ()
