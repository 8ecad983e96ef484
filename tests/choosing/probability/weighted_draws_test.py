import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logit
from scipy.stats import beta

from fiesta_allennlp.choosing.probability.weighted_draws import (
    EmpiricalDistribution,
    RatePosterior,
    WeightedRateDraws,
    empirical_distribution,
    prob_best,
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


def test_a_marginal_has_the_quantiles_and_weights_of_its_draws() -> None:
    for probability in (0.025, 0.5, 0.975):
        assert of_beta(8, 3).quantiles(probability) == pytest.approx(beta.ppf(probability, 8, 3), abs=1e-3)
    # Uniform draws with weights in proportion to y are Beta(2, 1).
    weighted = empirical_distribution(logit(EVEN[::-1]), EVEN[::-1] / EVEN.sum())
    assert (weighted.location, weighted.scale) == pytest.approx((2 / 3, (1 / 18) ** 0.5), abs=1e-4)
    assert_allclose(np.interp(logit(0.5), weighted.log_odds, weighted.cdf), 0.25, atol=1e-3)


PRIOR = np.full(4, 0.25)
COUNTS = np.array([[7, 2, 1, 15], [0, 3, 0, 22], [12, 0, 1, 12]], dtype=float)


def drawn(
    counts: np.ndarray, concentration: float = 1.0, *, prior: np.ndarray = PRIOR, num: int = 1024
) -> WeightedRateDraws:
    return RatePosterior(prior, concentration, counts).draw(num)


def moments(found: WeightedRateDraws) -> "tuple[np.ndarray, np.ndarray]":
    rates = np.exp(found.log_rates)
    mean = found.weights @ rates
    return mean, np.sqrt(found.weights @ (rates - mean) ** 2)


def on_a_grid(prior: np.ndarray, counts: np.ndarray, concentration: float) -> "tuple[np.ndarray, np.ndarray]":
    """Mean and standard deviation of three rates by a sum over the simplex."""
    line = (np.arange(800) + 0.5) / 800
    first, second = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    inside = first + second < 1 - 1e-9
    rates = np.stack([first, second, 1 - first - second], axis=1)[inside]
    x = concentration * rates
    log_density = ((prior - 1) * np.log(rates)).sum(axis=1)
    for row in counts:
        log_density += (gammaln(x + row) - gammaln(x)).sum(axis=1)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ rates
    return mean, np.sqrt(weight @ (rates - mean) ** 2)


@pytest.mark.parametrize("concentration", [0.3, 20.0])
def test_agrees_with_a_sum_over_the_simplex(concentration: float) -> None:
    prior, counts = np.array([1.0, 1.0, 1.5]), COUNTS[:, [0, 1, 3]]
    for found, expected in zip(
        moments(drawn(counts, concentration, prior=prior)), on_a_grid(prior, counts, concentration), strict=True
    ):
        assert_allclose(found, expected, rtol=0.01, atol=5e-4)


@pytest.mark.parametrize("num_kinds", [4, 36])
@pytest.mark.parametrize("concentration", [0.05, 1.0, 1e6])
def test_enough_draws_count(num_kinds: int, concentration: float) -> None:
    rng = np.random.default_rng(num_kinds)
    prior = np.full(num_kinds, 1 / num_kinds)
    for num_documents in (1, 4, 40):
        of_documents = rng.dirichlet(concentration * rng.dirichlet(np.ones(num_kinds)), num_documents)
        counts = rng.multinomial(60, of_documents).astype(float)
        found = drawn(counts, concentration, prior=prior)
        assert found.effective_share > 0.2
        assert found.weights.sum() == pytest.approx(1)
