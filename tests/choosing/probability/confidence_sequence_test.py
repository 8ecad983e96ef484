import math
from typing import Tuple

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize_scalar
from scipy.stats import t as student_t

from fiesta_allennlp.choosing.probability.confidence_sequence import (
    PRIOR_PRECISION,
    log_evidence,
    max_log_evidence,
    unpaired_log_evidence,
    unpaired_threshold,
)

g = PRIOR_PRECISION


def statistics(differences: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(float(len(differences))), np.sum(differences), np.sum(differences**2)


def integrated(differences: np.ndarray) -> float:
    """log E_m by integration over effect size and 1 / sigma."""
    count = len(differences)

    def joint(effect: float, inverse: float) -> float:
        prior = 2 * math.sqrt(g / (2 * math.pi)) * math.exp(-g * effect**2 / 2)
        return prior * inverse ** (count - 1) * math.exp(-np.sum((differences * inverse - effect) ** 2) / 2)

    def null(inverse: float) -> float:
        return inverse ** (count - 1) * math.exp(-np.sum((differences * inverse) ** 2) / 2)

    top = 30 / math.sqrt(np.sum(differences**2))
    above, _ = dblquad(joint, 0, top, 0, 15, epsabs=1e-10)
    below, _ = quad(null, 0, top)
    return math.log(above / below)


@pytest.mark.parametrize("differences", [[0.7], [-0.7], [1.0, -0.4, 0.9, 0.6], [-0.3, -1.0, 0.2]])
def test_agrees_with_integration(differences: "list[float]") -> None:
    values = np.array(differences)
    assert float(log_evidence(*statistics(values))) == pytest.approx(integrated(values), abs=1e-5)


def test_equal_differences_are_evidence_that_grows_and_stays_finite() -> None:
    # S = m and T = m: A = m g / (m + g).
    m = 6
    expected = 0.5 * (m - 1) * math.log((m + g) / g) + math.log(2 * student_t.cdf(m / math.sqrt(g), m))
    assert float(log_evidence(*statistics(np.full(m, 0.25)))) == pytest.approx(expected)
    assert max_log_evidence(np.zeros(m)) == 0.0
    assert max_log_evidence(np.array([])) == 0.0


def test_equal_means_are_seldom_told_apart_at_any_time() -> None:
    values = np.random.default_rng(11).standard_normal((2000, 200))
    evidence = log_evidence(np.arange(1.0, 201), np.cumsum(values, axis=1), np.cumsum(values**2, axis=1))
    for error in (0.05, 0.2):
        share = np.mean(evidence.max(axis=1) >= -math.log(error))
        assert 0 < share <= error + 3 * math.sqrt(error * (1 - error) / 2000)


class TestApart:
    @pytest.mark.parametrize(("num_higher", "num_lower"), [(12, 12), (3, 30)])
    def test_is_a_close_lower_bound_of_the_least_sum(self, num_higher: int, num_lower: int) -> None:
        rng = np.random.default_rng(16)  # its own: a shared one draws by the order of the tests
        higher = rng.normal(2.0, 1.0, num_higher)
        lower = rng.normal(-1.0, 0.5, num_lower)

        def sum_at(u: float) -> float:
            return sum(
                max(0.0, float(log_evidence(*statistics(values)))) for values in (np.array(higher - u), u - lower)
            )

        grid = np.linspace(lower.mean() - 1, higher.mean() + 1, 4001)
        start = grid[np.argmin([sum_at(u) for u in grid])]
        least = minimize_scalar(sum_at, bounds=(start - 0.01, start + 0.01), method="bounded").fun
        bound = unpaired_log_evidence(higher, lower)
        assert least > 1
        assert 0.98 * least <= bound <= least + 1e-9

    def test_equal_means_are_seldom_told_apart_at_any_time(self) -> None:
        assert (1 + unpaired_threshold(0.01)) * math.exp(-unpaired_threshold(0.01)) == pytest.approx(0.01)
        assert unpaired_log_evidence(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0.0, "nothing tells the lower above"
        samples = np.random.default_rng(14).standard_normal((150, 2, 120))
        sizes = np.unique(np.geomspace(3, 120, 15).astype(int))
        highest = [max(unpaired_log_evidence(a[:size], b[:size]) for size in sizes) for a, b in samples]
        assert np.mean(np.array(highest) >= unpaired_threshold(0.2)) <= 0.2
