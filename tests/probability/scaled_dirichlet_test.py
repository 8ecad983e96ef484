import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import dirichlet

from fiesta_allennlp.probability.rates import ScaledDirichlet, log_sum_exp, rounded

EVERY = np.arange(2)


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
        log_density = proposal.log_density(log_rates, np.zeros(1, dtype=int), EVERY)
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


def test_rounding_is_within_one_percent() -> None:
    values = np.geomspace(1e-3, 1e6, 50)
    assert_allclose(rounded(values), values, rtol=0.0101)
    assert_allclose(rounded(rounded(values)), rounded(values))


def test_log_sum_exp() -> None:
    assert_allclose(log_sum_exp(np.log([[1.0, 3.0], [2.0, 2.0]])), np.log([4, 4]))
    assert_allclose(log_sum_exp(np.array([-2000.0, -2000.0])), -2000 + np.log(2))
    assert_allclose(log_sum_exp(np.array([-np.inf, 3.0])), 3)
