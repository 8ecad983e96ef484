import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.probability.student_t import correlated_t

DIFFERENCES = np.array([0.01, 0.03, 0.02, 0.04, 0.0])


def test_a_number_worked_by_hand() -> None:
    """d = .02, s^2 = .00025 and (1/5 + .2/.8) s^2 = .0001125, so t = .02 / .010607 = 1.8856 with 4 df."""
    posterior = correlated_t(DIFFERENCES, 0.2)
    assert (posterior.mean, posterior.scale, posterior.df) == (pytest.approx(0.02), pytest.approx(0.0106066), 4)
    assert posterior.prob_above_0() == pytest.approx(stats.t.cdf(1.885618, 4), abs=1e-6)


def test_the_ends() -> None:
    """Equal candidates, a small test set, which leaves differences independent, and very many splits."""
    assert correlated_t(np.array([-0.1, 0.1]), 0.2).prob_above_0() == pytest.approx(0.5)
    assert correlated_t(np.zeros(3), 0.2).prob_above_0() == 0.5
    assert correlated_t(DIFFERENCES, 1e-12).scale == pytest.approx(stats.sem(DIFFERENCES))
    assert correlated_t(np.tile(DIFFERENCES, 2000), 0.2).scale == pytest.approx(DIFFERENCES.std() / 2, rel=1e-3)
