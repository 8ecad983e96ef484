from typing import Any, List, Optional

import numpy as np
import pytest

from fiesta_allennlp.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.core.records import Remaining
from fiesta_allennlp.selection.progress import remaining_text
from fiesta_allennlp.strategies.base import Minimising
from fiesta_allennlp.strategies.remaining import estimate_plain_loop, estimate_remaining
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, RuleOfThree
from tests.strategies.histories import history
from tests.strategies.simulation import built

SURE = np.full(2, 1e9)


def found(posterior: StudentTPosterior, count: int, **options: Any) -> Optional[Remaining]:
    number = len(posterior.location)
    given = {"confidence": 0.95, "margin": 0.0, "stop": RuleOfThree(), "room": 10**6, "is_open": [True] * number}
    return estimate_remaining(posterior, [count] * number, rng=np.random.default_rng(0), **{**given, **options})


def two(gap: float, scale: float) -> StudentTPosterior:
    return StudentTPosterior.simple(np.array([gap, 0.0]), np.full(2, scale), SURE)


def test_a_winner_that_is_sure_lacks_only_its_own_runs_and_a_rivals() -> None:
    assert found(two(1.0, 1e-9), 2) == Remaining(20, 20, is_limited=False), "twelve of both"
    far = StudentTPosterior.simple(np.array([1.0, 0.0, -5.0]), np.full(3, 1e-9), np.full(3, 1e9))
    assert found(far, 2) == Remaining(20, 20, is_limited=False), "none of the third"
    assert found(far, 2, stop=BayesianStop()) == Remaining(1, 1, is_limited=False)
    assert found(far, 2, is_open=[True, False, True]) == Remaining(10, 10, is_limited=False), "none of one that is done"


def test_an_open_gap_gives_an_interval_that_the_limit_cuts() -> None:
    wide = found(two(0.05, 0.1), 20)
    assert wide == Remaining(52, 495, False), "the numbers of this generator"
    assert found(two(5.0, 10.0), 20) == wide, "it does not depend on the unit of the score"
    cut = found(two(0.05, 0.1), 20, room=30)
    assert cut is not None and (cut.high, cut.is_limited) == (30, True)
    shorter = found(two(0.05, 0.1), 20, margin=0.2)
    assert shorter is not None and shorter.high < wide.high
    known = StudentTPosterior.simple(np.array([0.1, 0.0]), np.array([0.1, 0.0]), SURE)
    assert found(known, 3, room=9) is None


@pytest.mark.parametrize(
    ("found", "seconds_per_run", "seconds_left", "text"),
    [
        (None, 0.0, None, ""),
        (Remaining(1, 1, False), 0.0, None, "about 1 more run"),
        (Remaining(20, 60, True), 0.0, 5400.0, "about 20 to 60 more runs (the limit)"),
        (Remaining(20, 60, False), 30.0, None, "about 20 to 60 more runs, 10 to 30 min"),
        (Remaining(20, 60, False), 120.0, -3.0, "about 20 to 60 more runs, 0.7 to 2.0 h (0 s left of --max-hours)"),
    ],
)
def test_the_display_has_runs_and_time(
    found: Optional[Remaining], seconds_per_run: float, seconds_left: Optional[float], text: str
) -> None:
    assert remaining_text(found, seconds_per_run=seconds_per_run, seconds_left=seconds_left) == text


def test_a_plain_loop_of_clear_candidates_takes_the_least_runs_and_of_a_tie_the_limit() -> None:
    def loop(location: List[float]) -> Optional[Remaining]:
        scale = np.full(2, 0.01 / 12**0.5)
        posterior = StudentTPosterior.simple(np.array(location), scale, np.full(2, 1e3))
        about = {"confidence": 0.95, "margin": 0.0, "stop": RuleOfThree(), "min_rounds": 12, "max_runs": 100}
        return estimate_plain_loop(posterior, [12, 12], rng=np.random.default_rng(0), **about)  # type: ignore[arg-type]

    assert loop([0.9, 0.5]) == Remaining(24, 24, is_limited=False)
    tie = loop([0.5, 0.5])
    assert tie is not None and tie.high == 100 and tie.is_limited
    # 2 (1.645 sd / lead)^2 n of each, at a lead of .5 sds and few draws far from it: about 22 rounds or more
    near = loop([0.505, 0.5])
    assert near is not None and near.low < 44 <= near.high < 100


def test_only_a_decided_selection_is_compared_with_a_plain_loop() -> None:
    rule = built("top_two")
    rng = np.random.default_rng(0)
    assert rule.plain_loop(history({"a": [0.5, 0.51, 0.52], "b": [0.5, 0.52, 0.51]}), rng) is None
    clear = history({"a": [0.9, 0.91, 0.92, 0.9], "b": [0.5, 0.51, 0.52, 0.5]})
    found = rule.plain_loop(clear, rng)
    assert found is not None and found.low == 6
    assert Minimising(rule).plain_loop(clear.negated, rng) is not None
    assert built("non_adaptive_fb", budget=8).plain_loop(clear, rng) is None
