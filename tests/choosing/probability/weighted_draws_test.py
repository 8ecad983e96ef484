import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from scipy.stats import beta

from fiesta_allennlp.choosing.probability.weighted_draws import (
    EmpiricalDistribution,
    empirical_distribution,
    prob_best,
    sample,
)
from fiesta_allennlp.core.errors import ConfigError

EVEN = (np.arange(2048) + 0.5) / 2048


def of_beta(a: float, b: float) -> EmpiricalDistribution:
    return empirical_distribution(logit(beta.ppf(EVEN, a, b)), np.full(2048, 1 / 2048))


def test_two_quantities_worked_by_hand() -> None:
    # P(Beta(2, 1) > Beta(1, 1)) is the mean of Beta(2, 1); P(U1 >= U2 - m) of uniform ones is 1 - (1 - m)^2 / 2.
    assert_allclose(prob_best([of_beta(2, 1), of_beta(1, 1)]), [2 / 3, 1 / 3], atol=5e-4)
    assert_allclose(prob_best([of_beta(1, 1), of_beta(1, 1)], 0.2), 1 - 0.8**2 / 2, atol=1e-3)
    assert_allclose(prob_best([of_beta(1, 1), of_beta(1, 1)], 2.0), 1)
    for number in (2, 20):
        assert_allclose(prob_best([of_beta(3, 2)] * number), 1 / number, atol=1e-9)
    with pytest.raises(ConfigError, match="margin"):
        prob_best([of_beta(1, 1)] * 2, -0.1)


def test_a_small_probability_is_no_frequency() -> None:
    far = prob_best([of_beta(60, 40), of_beta(30, 70)])[1]
    x = np.linspace(0, 1, 200001)
    expected = float(np.sum(beta.pdf(x, 30, 70) * beta.cdf(x, 60, 40)) * (x[1] - x[0]))
    assert 7e-6 < expected < 8e-6
    assert expected / 4 < far < expected * 4


def test_many_quantities_agree_with_draws() -> None:
    many = [of_beta(20 + i, 20) for i in range(20)]
    draws = sample(many, 100000, np.random.default_rng(3))
    assert draws.shape == (100000, 20)
    wins = np.bincount(draws.argmax(axis=1), minlength=20) / len(draws)
    assert_allclose(prob_best(many), wins, atol=0.005)
    within = (draws >= draws.max(axis=1, keepdims=True) - 0.05).mean(axis=0)
    assert_allclose(prob_best(many, 0.05), within, atol=0.006)


def test_a_marginal_has_the_quantiles_and_weights_of_its_draws() -> None:
    for probability in (0.025, 0.5, 0.975):
        assert of_beta(8, 3).quantiles(probability) == pytest.approx(beta.ppf(probability, 8, 3), abs=1e-3)
    # Uniform draws with weights in proportion to y are Beta(2, 1).
    weighted = empirical_distribution(logit(EVEN[::-1]), EVEN[::-1] / EVEN.sum())
    assert (weighted.location, weighted.scale) == pytest.approx((2 / 3, (1 / 18) ** 0.5), abs=1e-4)
    assert_allclose(np.interp(logit(0.5), weighted.log_odds, weighted.cdf), 0.25, atol=1e-3)


def test_values_that_are_1_to_the_last_digit_are_told_apart() -> None:
    near, nearer = (
        empirical_distribution(np.linspace(low, low + 10, 512), np.full(512, 1 / 512)) for low in (50.0, 65.0)
    )
    assert expit(50.0) == 1
    assert_allclose(prob_best([near, nearer]), [0, 1], atol=1e-12)
