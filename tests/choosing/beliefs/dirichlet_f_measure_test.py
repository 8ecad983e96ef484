from dataclasses import replace
from typing import Dict, List, Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logit
from scipy.stats import beta, kstest
from scipy.stats import beta as beta_distribution

from fiesta_allennlp.choosing.beliefs import DirichletFMeasure
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import (
    EmpiricalDistribution,
    FMeasurePosterior,
    RatePosterior,
    WeightedRateDraws,
    empirical_distribution,
    measure_log_odds,
)
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.records import Evaluation, History
from tests.choosing.histories import evaluation

EVEN = (np.arange(2048) + 0.5) / 2048


def of_beta(a: float, b: float) -> EmpiricalDistribution:
    return empirical_distribution(logit(beta.ppf(EVEN, a, b)), np.full(2048, 1 / 2048))


def test_two_quantities_worked_by_hand() -> None:
    # P(Beta(2, 1) > Beta(1, 1)) is the mean of Beta(2, 1); P(U1 >= U2 - m) of uniform ones is 1 - (1 - m)^2 / 2.
    assert_allclose(FMeasurePosterior([of_beta(2, 1), of_beta(1, 1)]).prob_best(), [2 / 3, 1 / 3], atol=5e-4)
    assert_allclose(FMeasurePosterior([of_beta(1, 1), of_beta(1, 1)]).prob_best(0.2), 1 - 0.8**2 / 2, atol=1e-3)
    assert_allclose(FMeasurePosterior([of_beta(1, 1), of_beta(1, 1)]).prob_best(2.0), 1)
    for number in (2, 20):
        assert_allclose(FMeasurePosterior([of_beta(3, 2)] * number).prob_best(), 1 / number, atol=1e-9)
    with pytest.raises(ConfigError, match="margin"):
        FMeasurePosterior([of_beta(1, 1)] * 2).prob_best(-0.1)


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


BINARY = ("tp", "fp", "fn", "tn")
ALIKE = 1e8


def counted(documents: Dict[str, Sequence[Sequence[int]]], kinds: Sequence[str] = BINARY, first: int = 0) -> History:
    """A history of documents' counts by candidate, each in the order of `kinds`. `first` is the first document."""
    done: List[Evaluation] = []
    for name, rows in documents.items():
        for k, row in enumerate(rows, first):
            metrics = {f"count:{kind}": number for kind, number in zip(kinds, row, strict=True)}
            done.append(replace(evaluation(name, k, 0.5), metrics=metrics))
    return History(tuple(documents), tuple(done))


def test_one_document_of_each_against_integration() -> None:
    """Where documents are alike, tp : fp + fn is beta distributed, and F = x / (x + (1 - x) / 2)."""
    belief = DirichletFMeasure(concentration=ALIKE, num_samples=4096)
    found = belief.posterior(counted({"a": [(6, 1, 2, 11)], "b": [(4, 2, 3, 11)]}))
    x = (np.arange(100000) + 0.5) / 100000
    density = beta_distribution.pdf(x, 6.25, 3.5)
    f = x / (x + (1 - x) / 2)
    mean = (density * f).mean() / density.mean()
    deviation = ((density * (f - mean) ** 2).mean() / density.mean()) ** 0.5
    assert (found.location[0], found.scale[0]) == pytest.approx((mean, deviation), abs=5e-4)
    higher = (density * beta_distribution.cdf(x, 4.25, 5.5)).mean()
    assert_allclose(found.prob_best(), [higher, 1 - higher], atol=1e-3)


def test_kinds_that_one_candidate_lacks_are_0() -> None:
    full = counted({"a": [[6, 1, 2, 0]], "b": [[5, 2, 2, 0]]})
    lacking = History(full.candidates, (counted({"a": [[6, 1, 2]]}, BINARY[:3]).evaluations[0], full.evaluations[1]))
    belief = DirichletFMeasure()
    assert belief.posterior(full).prob_best().tolist() == belief.posterior(lacking).prob_best().tolist()
    with pytest.raises(ScoreError, match="'a' has x>x.*paired_measure"):
        belief.posterior(counted({"a": [[6, 1]]}, ["x>x", "x>y"]))


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.8, 1.0])
def test_log_odds_weigh_precision_against_recall(beta: float) -> None:
    precision, recall = 0.4 / 0.5, 0.4 / 0.7
    f = 1 / (beta / precision + (1 - beta) / recall)
    assert measure_log_odds(np.log([[0.4, 0.1, 0.3, 0.2]]), beta)[0] == pytest.approx(np.log(f / (1 - f)))
    far = np.array([[0.0, -500.0, -500.0, -1.0], [-900.0, 0.0, 0.0, -1.0]])
    assert_allclose(measure_log_odds(far, 0.5), [500, -900])


def test_everything_wrong_or_right_gives_finite_numbers() -> None:
    posterior = DirichletFMeasure().posterior(counted({"w": [[0, 9, 9, 9]] * 50, "r": [[9, 0, 0, 9]] * 50}))
    assert_allclose(posterior.prob_best(), [0, 1], atol=1e-6)
    assert posterior.location[0] < 0.05 < 0.95 < posterior.location[1] <= 1
    assert np.isfinite(posterior.scale).all()


def test_quantiles_are_uniform() -> None:
    """P(F below the true F) after three documents, with rates from the prior: uniform where all is right."""
    rng, belief = np.random.default_rng(23), DirichletFMeasure(num_samples=256)
    ranks = []
    for _ in range(150):
        rates = np.maximum(rng.dirichlet(np.full(4, 0.25)), 1e-12)
        documents = rng.multinomial(20, rng.dirichlet(rates, 3))
        (known,) = belief.posterior(counted({"a": documents.tolist()})).distributions
        log_odds = np.log(rates[0]) - np.log((rates[1] + rates[2]) / 2)
        ranks.append(np.interp(log_odds, known.log_odds, known.cdf))
    assert kstest(ranks, "uniform").pvalue > 0.01
