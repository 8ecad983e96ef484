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
    fewer = belief_path(HISTORY, belief, most_points=5)
    assert len(fewer) <= 5 and fewer[-1] == path[-1]


def test_one_that_joined_late_is_there_from_then_on_and_a_withdrawn_one_has_no_part() -> None:
    late = sorted(HISTORY.evaluations, key=lambda evaluation: evaluation.request.candidate == "c")
    path = belief_path(replace(HISTORY, evaluations=tuple(late)), SplitPaired())
    numbers = {point.num_evaluations: len(point.prob_best) for point in path if point.num_evaluations > 10}
    assert numbers == {11: 2, 12: 2, 14: 3, 15: 3, 16: 3, 17: 3, 18: 3}
    without = belief_path(replace(HISTORY, withdrawn=frozenset("b")), SplitPaired())
    assert set(without[-1].prob_best) == {"a", "c"}
    assert belief_path(History(("a", "b")), SplitPaired()) == ()
