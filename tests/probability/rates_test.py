import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import dirichlet, gamma

from fiesta_allennlp.probability.rates import (
    RatesModel,
    ScaledDirichlet,
    WeightedRates,
    even_ranks,
    log_gamma_quantiles,
    log_sum_exp,
)

PRIOR = np.full(4, 0.25)
COUNTS = np.array([[7, 2, 1, 15], [0, 3, 0, 22], [12, 0, 1, 12]], dtype=float)


def model(
    concentration: float = 1.0, *, prior: np.ndarray = PRIOR, learned: bool = False, num: int = 1024
) -> RatesModel:
    return RatesModel(prior, concentration, learned, num)


def moments(drawn: WeightedRates) -> "tuple[np.ndarray, np.ndarray]":
    rates = np.exp(drawn.log_rates)
    mean = drawn.weights @ rates
    return mean, np.sqrt(drawn.weights @ (rates - mean) ** 2)


def gibbs(prior: np.ndarray, counts: np.ndarray, concentration: float) -> np.ndarray:
    """4,000 chains of the paper's sampler, with numbers of tables as auxiliary variables; after 60 sweeps each.

    Given the rates, each count c of kind k is a sum of Bernoulli variables with probabilities x / (x + j) for
    j = 0 ... c - 1 and x = A theta_k; given their sums, the rates are Dirichlet. Shape: `(4000, num_kinds)`.
    """
    rng = np.random.default_rng(11)
    steps = np.arange(int(counts.max()))
    # Shape: (num_steps, num_kinds): in how many documents is the count above j?
    above = (counts[:, None, :] > steps[:, None]).sum(axis=0)
    rates = np.full((4000, len(prior)), 1 / len(prior))
    for _ in range(60):
        x = np.maximum(concentration * rates[:, None, :], 1e-300)
        tables = rng.binomial(above, x / (x + steps[:, None])).sum(axis=1)
        rates = rng.standard_gamma(prior + tables)
        rates /= rates.sum(axis=1, keepdims=True)
    return rates


def on_a_grid(prior: np.ndarray, counts: np.ndarray, concentration: float) -> "tuple[np.ndarray, np.ndarray]":
    """Mean and standard deviation of three rates by a sum over the simplex."""
    line = (np.arange(1200) + 0.5) / 1200
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


def test_without_counts_it_is_the_prior() -> None:
    mean, deviation = moments(model(prior=np.array([0.5, 1.5, 2.0])).posterior(np.zeros((2, 3))))
    assert_allclose(mean, [1 / 8, 3 / 8, 1 / 2], atol=2e-3)
    assert_allclose(deviation, dirichlet.var([0.5, 1.5, 2.0]) ** 0.5, rtol=0.01)


def test_documents_that_are_all_alike_give_the_conjugate_posterior() -> None:
    mean, deviation = moments(model(1e8).posterior(COUNTS))
    conjugate = PRIOR + COUNTS.sum(axis=0)
    assert_allclose(mean, dirichlet.mean(conjugate), atol=2e-4)
    assert_allclose(deviation, dirichlet.var(conjugate) ** 0.5, rtol=0.01)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 20.0])
def test_agrees_with_a_sum_over_the_simplex(concentration: float) -> None:
    prior, counts = np.array([1.0, 1.0, 1.5]), COUNTS[:, [0, 1, 3]]
    drawn = model(concentration, prior=prior).posterior(counts)
    for found, expected in zip(moments(drawn), on_a_grid(prior, counts, concentration), strict=True):
        assert_allclose(found, expected, rtol=0.01, atol=5e-4)


@pytest.mark.parametrize(("concentration", "num_documents"), [(0.3, 12), (1.0, 3), (20.0, 1)])
def test_agrees_with_gibbs_sampling(concentration: float, num_documents: int) -> None:
    counts = np.tile(COUNTS, (4, 1))[:num_documents]
    drawn = model(concentration).posterior(counts)
    chains = gibbs(PRIOR, counts, concentration)
    mean, deviation = moments(drawn)
    # Standard errors of 4,000 independent chains.
    assert_allclose((mean - chains.mean(axis=0)) / (deviation / 4000**0.5), 0, atol=4)
    assert_allclose(chains.std(axis=0) / deviation, 1, atol=0.08)


@pytest.mark.parametrize("num_kinds", [4, 36])
@pytest.mark.parametrize("concentration", [0.05, 1.0, 20.0, 1e6])
@pytest.mark.parametrize("learned", [False, True])
def test_enough_draws_count(num_kinds: int, concentration: float, learned: bool) -> None:
    rng = np.random.default_rng(num_kinds)
    prior = np.full(num_kinds, 1 / num_kinds)
    for num_documents in (1, 4, 40):
        of_documents = rng.dirichlet(concentration * rng.dirichlet(np.ones(num_kinds)), num_documents)
        counts = rng.multinomial(60, of_documents).astype(float)
        drawn = model(concentration, prior=prior, learned=learned).posterior(counts)
        assert drawn.effective > 0.2
        assert drawn.weights.sum() == pytest.approx(1)


def test_the_order_of_documents_plays_no_part_and_nothing_is_left_to_chance() -> None:
    first, second = (model().posterior(counts) for counts in (COUNTS, COUNTS[::-1]))
    assert first.log_rates.tolist() == second.log_rates.tolist()
    assert_allclose(first.weights, second.weights, rtol=1e-10)


class TestLearnedConcentration:
    def test_agrees_with_a_grid(self) -> None:
        """P(A | counts) by adding up what each A makes of the counts, for two kinds."""
        counts = np.array([[3, 7], [8, 2], [5, 5], [9, 1], [1, 9]], dtype=float)
        log_a, p = np.linspace(-8, 8, 161)[:, None], ((np.arange(400) + 0.5) / 400)[None, :]
        log_joint = -((log_a / 2) ** 2) / 2 + 0 * p
        for row in counts:
            for x, count in ((np.exp(log_a) * p, row[0]), (np.exp(log_a) * (1 - p), row[1])):
                log_joint = log_joint + gammaln(x + count) - gammaln(x)
            log_joint = log_joint - gammaln(np.exp(log_a) + 10) + gammaln(np.exp(log_a))
        weight = np.exp(log_joint - log_joint.max())
        weight /= weight.sum()
        drawn = model(prior=np.ones(2), learned=True, num=4096).posterior(counts)
        expected = float((weight * log_a).sum())
        assert float(drawn.weights @ drawn.log_concentration) == pytest.approx(expected, abs=0.02)
        spread = float((weight * (log_a - expected) ** 2).sum()) ** 0.5
        around = (drawn.log_concentration - expected) ** 2
        assert float(drawn.weights @ around) ** 0.5 == pytest.approx(spread, rel=0.03)
        assert float(drawn.weights @ np.exp(drawn.log_rates[:, 0])) == pytest.approx(
            float((weight * p).sum()), abs=2e-3
        )


def test_every_coordinate_has_every_rank_once() -> None:
    ranks = even_ranks(256, 5)
    assert (np.sort(ranks, axis=0) == np.arange(256)[:, None]).all()
    assert not ranks.flags.writeable


@pytest.mark.parametrize("shape", [0.25, 1.0, 7.5, 4000.0])
def test_quantiles_agree_with_scipy(shape: float) -> None:
    found = log_gamma_quantiles(shape, 64)
    assert_allclose(found, np.log(gamma.ppf((np.arange(64) + 0.5) / 64, shape)), rtol=1e-6, atol=1e-8)


def one_cell(shapes: "list[float]", scales: "list[float]") -> ScaledDirichlet:
    return ScaledDirichlet(np.array([shapes]), np.log([scales]), np.zeros(2), np.ones(1))


def test_with_equal_scales_it_is_the_dirichlet() -> None:
    shapes = [0.5, 2.0, 7.0]
    drawn = one_cell(shapes, [3.0, 3.0, 3.0])
    rates = np.array([[0.2, 0.3, 0.5], [0.01, 0.04, 0.95]])
    found = drawn.log_density(np.log(rates), np.zeros(2, dtype=int), np.arange(3)) - np.log(rates).sum(axis=1)
    assert_allclose(found, dirichlet.logpdf(rates.T, shapes))
    draws = np.exp(drawn.draw(1024).log_rates)
    assert_allclose(draws.sum(axis=1), 1)
    assert_allclose(draws.mean(axis=0), dirichlet.mean(shapes), atol=1e-3)
    assert_allclose(draws.var(axis=0), dirichlet.var(shapes), rtol=0.02)


def test_the_density_integrates_to_one_and_is_that_of_the_draws() -> None:
    proposal = one_cell([1.7, 4.2], [1.0, 6.0])

    def density(p: float) -> float:
        log_rates = np.log([[p, 1 - p]])
        log_density = proposal.log_density(log_rates, np.zeros(1, dtype=int), np.arange(2))
        return float(np.exp(log_density - log_rates.sum(axis=1))[0])

    assert_allclose(quad(density, 0, 1)[0], 1, rtol=1e-8)
    draws = np.exp(proposal.draw(4096).log_rates[:, 0])
    assert_allclose(draws.mean(), quad(lambda p: p * density(p), 0, 1)[0], atol=1e-4)
    assert_allclose((draws < 0.5).mean(), quad(density, 0, 0.5)[0], atol=3e-3)


def test_cells_are_drawn_by_their_mass() -> None:
    proposal = ScaledDirichlet(
        np.ones((3, 2)), np.zeros((3, 2)), np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, 6.0, 1])
    )
    drawn = proposal.draw(1024)
    assert_allclose(np.bincount(drawn.cell) / 1024, [1 / 8, 6 / 8, 1 / 8])
    edges = proposal.edges
    assert (edges[drawn.cell] <= drawn.log_concentration).all()
    assert (drawn.log_concentration <= edges[drawn.cell + 1]).all()
    assert_allclose(drawn.log_concentration[drawn.cell == 1].mean(), 2, atol=1e-2)


def test_log_sum_exp() -> None:
    assert_allclose(log_sum_exp(np.log([[1.0, 3.0], [2.0, 2.0]])), np.log([4, 4]))
    assert_allclose(log_sum_exp(np.array([-2000.0, -2000.0])), -2000 + np.log(2))
    assert_allclose(log_sum_exp(np.array([-np.inf, 3.0])), 3)
