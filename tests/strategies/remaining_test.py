from typing import Optional

import numpy as np
import pytest

from fiesta_allennlp.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.listeners.progress import remaining_text
from fiesta_allennlp.records import Remaining
from fiesta_allennlp.strategies.remaining import remaining

SURE = np.full(2, 1e9)


def estimate(gap: float, scale: float, count: int, *, room: int = 10**6, margin: float = 0.0) -> Remaining:
    posterior = StudentTPosterior(np.array([gap, 0.0]), np.full(2, scale), SURE)
    rng = np.random.default_rng(0)
    found = remaining(posterior, [count, count], confidence=0.95, margin=margin, room=room, rng=rng)
    assert found is not None
    return found


class Known(StudentTPosterior):
    """Draws are the locations themselves: the gap is taken as known."""

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.tile(self.location, (size, 1))


def test_a_known_gap_takes_twice_the_squared_quantile_over_the_effect() -> None:
    """Noise 1 and a gap of 0.1: N = 2 (1.6449 / 0.1)^2 = 541.1 of both are needed, 542 less the 100 of each."""
    posterior = Known(np.array([0.1, 0.0]), np.full(2, 0.1), SURE)
    rng = np.random.default_rng(0)
    found = remaining(posterior, [100, 100], confidence=0.95, margin=0.0, room=10**6, rng=rng)
    assert found == Remaining(884, 884, is_limited=False)
    # with a margin of the same size the gap counts double: 136 of each
    found = remaining(posterior, [100, 100], confidence=0.95, margin=0.1, room=10**6, rng=rng)
    assert found == Remaining(72, 72, is_limited=False)


def test_the_errors_of_all_pairs_add_up() -> None:
    """Two rivals at the gap above may have .025 each: N = 2 (1.9600 / 0.1)^2 = 768.3. The third costs nothing."""
    posterior = Known(np.array([0.1, 0.0, 0.0, -9.9]), np.full(4, 0.1), np.full(4, 1e9))
    found = remaining(
        posterior, [100, 100, 100, 2], confidence=0.95, margin=0.0, room=10**6, rng=np.random.default_rng(0)
    )
    assert found == Remaining(3 * 669, 3 * 669, is_limited=False)
    # Errors of .04 and .03 are too much together, though each alone is below .05.
    close = Known(np.array([0.0, -1.7507, -1.8808]), np.full(3, np.sqrt(0.5)), np.full(3, 1e9))
    more = remaining(close, [10, 10, 10], confidence=0.95, margin=0.0, room=99, rng=np.random.default_rng(0))
    assert more is not None and more.low > 3


def test_an_open_gap_gives_an_interval_that_the_limit_cuts() -> None:
    wide = estimate(0.05, 0.1, 20)
    assert wide.low < wide.high and not wide.is_limited
    cut = estimate(0.05, 0.1, 20, room=30)
    assert (cut.high, cut.is_limited) == (30, True)
    assert estimate(0.05, 0.1, 20, margin=0.2).high < wide.high


def test_nothing_is_said_where_nothing_can_be() -> None:
    posterior = StudentTPosterior(np.array([0.1, 0.0]), np.array([0.1, 0.0]), SURE)
    rng = np.random.default_rng(0)
    assert remaining(posterior, [3, 3], confidence=0.95, margin=0.0, room=9, rng=rng) is None
    assert remaining_text(None) == ""


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Remaining(20, 60, False), "; about 20 to 60 more runs"),
        (Remaining(20, 60, True), "; about 20 to 60 more runs (the limit)"),
        (Remaining(1, 1, False), "; about 1 more run"),
        (Remaining(1, 1, False, again="lstm"), "; lstm runs again before a winner is named"),
    ],
)
def test_the_display_says_it_shortly(found: Remaining, text: str) -> None:
    assert remaining_text(found) == text


@pytest.mark.parametrize(
    ("seconds_per_run", "seconds_left", "text"),
    [
        (30.0, None, "; about 20 to 60 more runs, 10 to 30 min"),
        (0.5, None, "; about 20 to 60 more runs, 10 to 30 s"),
        (120.0, 5400.0, "; about 20 to 60 more runs, 0.7 to 2.0 h (1.5 h left of --max-hours)"),
        (120.0, -3.0, "; about 20 to 60 more runs, 0.7 to 2.0 h (0 s left of --max-hours)"),
        (0.0, 5400.0, "; about 20 to 60 more runs"),
    ],
)
def test_the_estimate_is_in_time_too_beside_what_is_left(
    seconds_per_run: float, seconds_left: Optional[float], text: str
) -> None:
    found = Remaining(20, 60, is_limited=False)
    assert remaining_text(found, seconds_per_run=seconds_per_run, seconds_left=seconds_left) == text
