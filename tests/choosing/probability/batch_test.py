from typing import Any, Optional, Tuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from fiesta_allennlp.choosing.probability.batch import (
    Batch,
    Ends,
    Rules,
    choose_in_turn,
    choose_next,
    predictive_power,
)

LIMIT = 90
ALL = np.ones((1, 3), dtype=bool)


def draw(num_selections: int, gaps: Tuple[float, ...], seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num_selections, len(gaps), LIMIT))
    return rng.normal(size=(num_selections, 1, LIMIT)) + noise - np.array(gaps)[:, None]


def select(scores: np.ndarray, num_made: int = 0, is_open: Optional[np.ndarray] = None, **options: Any) -> Ends:
    """The selections after the first `num_made` scores of each candidate of the first one."""
    rules = Rules(**{"confidence": 0.95, "limit": LIMIT, **options})
    start = (np.ones((scores.shape[1], num_made)), scores[0, :, :num_made]) if num_made else None
    units = np.broadcast_to(np.arange(num_made, scores.shape[2]), (*scores.shape[:2], scores.shape[2] - num_made))
    return Batch(scores[:, :, num_made:], units, rules, is_open=is_open, start=start).run()


def test_a_clear_winner_takes_few_runs_and_equal_candidates_end_open() -> None:
    clear, equal = select(draw(200, (0, 5, 6))), select(draw(200, (0, 0)))
    assert clear.is_named.all()
    assert (clear.leader == 0).all()
    assert clear.num_runs.sum(axis=1).mean() < 16
    assert equal.is_named.mean() < 0.55


def test_several_runs_at_once_are_spread_over_the_two_that_matter() -> None:
    ends = select(draw(50, (0, 0.5, 9)), num_slots=8)
    assert (ends.num_runs[:, 2] <= 4).all()
    assert (np.abs(ends.num_runs[:, 0] - ends.num_runs[:, 1]) <= 4).all()
    assert (ends.num_rounds <= ends.num_runs.sum(axis=1) // 8 + 3).all()


def test_the_limit_is_never_exceeded() -> None:
    ends = select(draw(50, (0, 0.01)), limit=25, num_slots=4)
    assert ends.num_runs.sum(axis=1).max() <= 25
    starved = select(draw(5, (0, 1, 2)), limit=7)
    assert_array_equal(starved.num_runs, [[3, 2, 2]] * 5)
    assert_array_equal(starved.leader, -1)


def test_a_margin_in_noise_sds_is_the_margin_in_units_of_the_score() -> None:
    """With noise of sd 1, 0.5 of it is half a unit, and as likely to end a tie."""
    scores = draw(150, (0, 0))
    by_share, by_number = select(scores, margin_share=0.5), select(scores, margin=0.5)
    assert by_share.is_named.mean() > 0.95
    assert by_share.num_runs.sum(axis=1).mean() == pytest.approx(by_number.num_runs.sum(axis=1).mean(), rel=0.25)


def test_a_selection_goes_on_from_the_runs_that_exist() -> None:
    scores = draw(1, (0, 0.4, 0.8), seed=3)
    whole = select(scores)
    later = select(scores, num_made=5)
    assert whole.num_runs.min() > 5
    assert later.leader[0] == whole.leader[0]
    assert_array_equal(later.num_runs + 5, whole.num_runs)


def test_closed_candidates_get_no_runs() -> None:
    ends = select(draw(30, (0, 0.5, 0.6)), num_made=4, is_open=np.array([False, True, True]))
    assert (ends.num_runs[:, 0] == 0).all()
    assert ends.num_runs.sum() > 0


def test_several_runs_on_a_unit_are_one_number() -> None:
    """Six folds with five seeds each have six units, however often they run."""
    rng = np.random.default_rng(6)
    folds = np.tile(np.arange(6), 15)
    scores = np.repeat(rng.normal(size=(20, 2, 6)), 15, axis=0).reshape(20, 15, 2, 6)
    scores = scores.transpose(0, 2, 1, 3).reshape(20, 2, 90) + 0.1 * rng.normal(size=(20, 2, 90))
    ends = Batch(scores, np.broadcast_to(folds, scores.shape), Rules(0.95, LIMIT)).run()
    assert ends.is_named.mean() < 0.5


def test_too_few_scores_are_an_error() -> None:
    scores = draw(2, (0, 0.01))[:, :, :10]
    with pytest.raises(IndexError):
        select(scores)


def test_the_next_run_is_of_the_leader_or_its_challenger() -> None:
    tails, leader = np.array([[0.5, 0.1, 0.08]]), np.array([0])

    def chosen(num_started: "Tuple[int, ...]", is_open: np.ndarray = ALL) -> int:
        return int(choose_next(tails, leader, np.array([num_started]), is_open)[0])

    assert chosen((3, 3, 3)) == 0
    assert chosen((4, 3, 3)) == 1
    assert chosen((9, 8, 3)) == 2  # 0.1 / 8 < 0.08 / 3
    assert chosen((9, 3, 3), np.array([[True, False, True]])) == 2
    assert chosen((3, 8, 8), np.array([[False, True, True]])) == 1
    assert chosen((9, 3, 3), np.array([[True, False, False]])) == 0


def test_a_loop_runs_the_candidate_with_the_fewest() -> None:
    for is_open, chosen in ((ALL, 1), (np.array([[True, False, False]]), 0)):
        assert choose_in_turn(np.zeros((1, 3)), np.array([0]), np.array([[4, 3, 3]]), is_open)[0] == chosen


def test_the_power_to_decide() -> None:
    """No lead, variance 2 from 10 units, 30 more: v' = 1/2, and both sides count."""
    power = predictive_power(np.array([0.0]), np.array([2.0]), np.array([10]), np.array([30]), 0.95)
    assert power[0] == pytest.approx(2 * stats.norm.sf(1.6448536 * np.sqrt(0.5 / 1.5)))
    assert predictive_power(np.array([1.0]), np.array([0.0]), np.array([10]), np.array([30]), 0.95)[0] == 1
