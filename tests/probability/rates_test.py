import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import dirichlet

from fiesta_allennlp.probability.rates import RatesModel, ScaledDirichlet, WeightedRates
from fiesta_allennlp.probability.rising_factorials import rising_factorials

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


def test_documents_that_are_all_alike_give_the_conjugate_posterior() -> None:
    mean, deviation = moments(model(1e8).posterior(COUNTS))
    conjugate = PRIOR + COUNTS.sum(axis=0)
    assert_allclose(mean, dirichlet.mean(conjugate), atol=2e-4)
    assert_allclose(deviation, dirichlet.var(conjugate) ** 0.5, rtol=0.01)


@pytest.mark.parametrize("concentration", [0.3, 20.0])
def test_agrees_with_a_sum_over_the_simplex(concentration: float) -> None:
    prior, counts = np.array([1.0, 1.0, 1.5]), COUNTS[:, [0, 1, 3]]
    drawn = model(concentration, prior=prior).posterior(counts)
    for found, expected in zip(moments(drawn), on_a_grid(prior, counts, concentration), strict=True):
        assert_allclose(found, expected, rtol=0.01, atol=5e-4)


@pytest.mark.parametrize("num_kinds", [4, 36])
@pytest.mark.parametrize("concentration", [0.05, 1.0, 1e6])
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


def test_a_learned_concentration_agrees_with_a_grid() -> None:
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
    assert float(drawn.weights @ np.exp(drawn.log_rates[:, 0])) == pytest.approx(float((weight * p).sum()), abs=2e-3)


def test_sums_of_rising_factorials_and_their_derivatives() -> None:
    """Kinds are summed apart, those never counted are left out, and equal counts are one term."""
    found = rising_factorials(np.tile(COUNTS[:, :3] * 50, (500, 1)))
    assert len(found.counts) == 5 and found.kept.tolist() == [0, 1, 2] and found.num_positive.tolist() == [1000] * 3
    u, step = np.log(np.geomspace(1e-8, 1e3, 40))[:, None] + np.zeros(3), 1e-4
    x = np.exp(u)[:, None]
    expected = 500 * (gammaln(x + COUNTS[:, :3] * 50) - gammaln(x)).sum(axis=1)
    assert_allclose(found.value(u), expected, rtol=1e-9)
    first, second = found.derivatives(u)
    assert_allclose(first, (found.value(u + step) - found.value(u - step)) / (2 * step), rtol=1e-6)
    around = found.derivatives(u + step)[0] - found.derivatives(u - step)[0]
    assert_allclose(second, around / (2 * step), rtol=1e-5, atol=1e-3)
    assert rising_factorials(np.zeros((4, 3))).value(np.zeros((7, 0))).shape == (7, 0)


def test_cells_are_drawn_by_their_mass() -> None:
    edges, mass = np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, 6.0, 1])
    drawn = ScaledDirichlet(np.ones((3, 2)), np.zeros((3, 2)), edges, mass).draw(1024)
    assert_allclose(np.bincount(drawn.cell) / 1024, mass / 8)
    assert_allclose([drawn.log_concentration[drawn.cell == cell].mean() for cell in range(3)], [0.5, 2, 3.5], atol=0.01)
