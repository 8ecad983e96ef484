import math

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.probability.expected_loss import expected_loss, expected_loss_of_draws
from fiesta_allennlp.probability.weighted_draws import empirical_distribution, sample


def loss(location, scale, df, taken=0):
    shape = 1, len(location)
    scale, df = (np.broadcast_to(np.asarray(part, dtype=float), shape) for part in (scale, df))
    return expected_loss(np.array(location, dtype=float), scale=scale, df=df, weight=np.ones(shape), chosen=taken)


def test_two_normal_means_by_hand():
    # E[max(d, 0)] of d ~ N(m, s^2) is s phi(m / s) + m Phi(m / s); df 1e7 is as good as normal
    for ahead in (-0.01, 0.0, 0.004, 0.05):
        s = math.hypot(0.01, 0.02)
        expected = s * stats.norm.pdf(-ahead / s) - ahead * stats.norm.cdf(-ahead / s)
        assert loss([0.8 + ahead, 0.8], [0.01, 0.02], 1e7) == pytest.approx(expected, rel=1e-5)


def test_against_a_known_mean_by_hand():
    # E[(x - 0.8)+] of x = 0.79 + 0.02 t(df) is 0.02 E[(t - 0.5)+]
    for df in (1.2, 2.0, 3.0, 30.0):
        density = stats.t.pdf(0.5, df)
        above = (df + 0.25) / (df - 1) * density - 0.5 * stats.t.sf(0.5, df)
        assert loss([0.8, 0.79], [0.0, 0.02], df) == pytest.approx(0.02 * above, rel=1e-6)
        assert loss([0.8, 0.79], [0.0, 0.02], df, taken=1) == pytest.approx(0.02 * above + 0.01, rel=1e-6)


def test_known_means_and_no_mean():
    assert loss([0.8, 0.7, 0.9], 0.0, 5) == pytest.approx(0.1)
    assert loss([0.8, 0.8], 0.0, 5) == 0.0
    assert loss([0.8, 0.7], 0.01, [1.0, 5.0]) is None


def test_differences_between_candidates_are_those_of_their_means():
    location = np.array([0.80, 0.79, 0.81, 0.6])
    scale, weight = np.array([[0.01, 0.02, 0.005, 1e-6], [0.1, 0.1, 0.2, 0.3]]), np.array([[0.9] * 4, [0.1] * 4])
    df = np.array([[3.0, 4.0, 50.0, 2.0], [1.5, 2.0, 3.0, 4.0]])
    every = [expected_loss(location, scale=scale, df=df, weight=weight, chosen=place) for place in range(4)]
    assert np.array(every) + location == pytest.approx((every[0] + location[0]) * np.ones(4), abs=1e-6)


def test_against_sampling():
    rng = np.random.default_rng(0)
    location, scale, df = np.array([0.80, 0.79, 0.81]), np.array([0.01, 0.03, 0.02]), np.array([5.0, 8.0, 12.0])
    draws = location + scale * rng.standard_t(df, (400_000, 3))
    for taken in range(3):
        lost = draws.max(axis=1) - draws[:, taken]
        assert loss(location, scale, df, taken) == pytest.approx(lost.mean(), abs=5 * lost.std() / 632)


def test_draws_against_sampling():
    rng = np.random.default_rng(1)
    each = [empirical_distribution(rng.normal(m, 0.2, 1024), np.full(1024, 1 / 1024)) for m in (1.0, 1.1, 0.9)]
    draws = sample(each, 200_000, rng)
    for taken in range(3):
        lost = draws.max(axis=1) - draws[:, taken]
        assert expected_loss_of_draws(each, taken) == pytest.approx(lost.mean(), abs=5 * lost.std() / 447)
