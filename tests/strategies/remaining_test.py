from typing import Optional

import numpy as np
import pytest

from fiesta_allennlp.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.listeners.progress import remaining_text
from fiesta_allennlp.records import History, Remaining
from fiesta_allennlp.strategies.remaining import remaining
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, RuleOfThree, StoppingRule
from tests.strategies.histories import evaluation
from tests.strategies.simulation import built

SURE = np.full(2, 1e9)


def estimate(gap: float, scale: float, count: int, *, room: int = 10**6, margin: float = 0.0) -> Remaining:
    posterior = StudentTPosterior.simple(np.array([gap, 0.0]), np.full(2, scale), SURE)
    return found(posterior, count, room=room, margin=margin)


def found(
    posterior: StudentTPosterior, count: int, *, room: int, margin: float = 0.0, stop: Optional[StoppingRule] = None
) -> Remaining:
    counts, rng = [count] * len(posterior.location), np.random.default_rng(0)
    rule = stop or RuleOfThree()
    result = remaining(posterior, counts, confidence=0.95, margin=margin, stop=rule, room=room, rng=rng)
    return result


def test_a_winner_that_is_sure_lacks_only_its_own_runs_and_a_rivals() -> None:
    assert estimate(1.0, 1e-9, 2) == Remaining(16, 16, is_limited=False), "ten of both"
    far = StudentTPosterior.simple(np.array([1.0, 0.0, -5.0]), np.full(3, 1e-9), np.full(3, 1e9))
    assert found(far, 2, room=99) == Remaining(16, 16, is_limited=False), "none of the third"
    assert found(far, 2, room=99, stop=BayesianStop()) == Remaining(1, 1, is_limited=False)


@pytest.mark.parametrize(
    ("lead", "margin", "missing"), [(0.10, 0.0, 2), (0.06, 0.0, 28), (0.05, 0.05, 2), (0.02, 0.2, 0)]
)
def test_the_runs_for_unseen_failures_are_part_of_it(lead: float, margin: float, missing: int) -> None:
    """The winner and its rival need 3.4 ln(20) 0.2 = 2.037 over the lead in runs: 21 or 34."""
    posterior = StudentTPosterior.simple(np.array([lead, 0.0]), np.full(2, 1e-9), SURE, noise_sd=0.2)
    more = found(posterior, 20, room=999, margin=margin)
    assert more.low == more.high == max(1, missing)


def test_an_open_gap_gives_an_interval_that_the_limit_cuts() -> None:
    wide = estimate(0.05, 0.1, 20)
    assert wide.low < wide.high and not wide.is_limited
    assert estimate(5.0, 10.0, 20) == wide, "it does not depend on the unit of the score"
    cut = estimate(0.05, 0.1, 20, room=30)
    assert (cut.high, cut.is_limited) == (30, True)
    assert estimate(0.05, 0.1, 20, margin=0.2).high < wide.high
    known = StudentTPosterior.simple(np.array([0.1, 0.0]), np.array([0.1, 0.0]), SURE)
    rng = np.random.default_rng(0)
    assert remaining(known, [3, 3], confidence=0.95, margin=0.0, stop=RuleOfThree(), room=9, rng=rng) is None


def test_as_many_as_selections_then_make() -> None:
    """About half of the selections end in the middle half, and the others on both sides of it."""
    strategy = built("top_two", margin=0.005, max_evaluations=100, belief="split_paired", stop="rule_of_three")
    sides = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        means = {"a": 0.6, "b": 0.6 + rng.normal(scale=0.02)}
        now, more = History(tuple(means)), None
        while names := strategy.propose(now, 1, rng):
            if len(now.evaluations) == 8:
                more = strategy.remaining(now, rng)
            now = now.after(evaluation(name, now.num_started(name), rng.normal(means[name], 0.02)) for name in names)
        if more is not None:
            left = len(now.evaluations) - 8
            sides.append((left > more.high) - (left < more.low))
    assert len(sides) > 20
    assert 0.3 < np.mean(np.equal(sides, 0)) < 0.7
    assert min(sides.count(-1), sides.count(1)) > 1


@pytest.mark.parametrize(
    ("found", "seconds_per_run", "seconds_left", "text"),
    [
        (None, 0.0, None, ""),
        (Remaining(1, 1, False), 0.0, None, "; about 1 more run"),
        (Remaining(20, 60, True), 0.0, 5400.0, "; about 20 to 60 more runs (the limit)"),
        (Remaining(20, 60, False), 30.0, None, "; about 20 to 60 more runs, 10 to 30 min"),
        (Remaining(20, 60, False), 0.5, None, "; about 20 to 60 more runs, 10 to 30 s"),
        (
            Remaining(20, 60, False),
            120.0,
            5400.0,
            "; about 20 to 60 more runs, 0.7 to 2.0 h (1.5 h left of --max-hours)",
        ),
        (Remaining(20, 60, False), 120.0, -3.0, "; about 20 to 60 more runs, 0.7 to 2.0 h (0 s left of --max-hours)"),
    ],
)
def test_the_display_says_it_shortly_in_runs_and_in_time(
    found: Optional[Remaining], seconds_per_run: float, seconds_left: Optional[float], text: str
) -> None:
    assert remaining_text(found, seconds_per_run=seconds_per_run, seconds_left=seconds_left) == text
