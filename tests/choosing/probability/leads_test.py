from typing import Tuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from fiesta_allennlp.choosing.probability import leads
from fiesta_allennlp.choosing.probability.leads import (
    Leads,
    PooledNoise,
    Table,
    TwoWayModel,
    pool_noise,
    prob_best_from_tails,
)
from fiesta_allennlp.choosing.probability.task_leads import TaskModel

NONE = np.nan
WORKED = np.array([[[10, 13, 11, 14], [8, 10, 10, NONE], [6, NONE, 8, NONE]]])
"""The example of docs/method.md: three candidates, four units."""


def worked_model(numbers: np.ndarray = WORKED) -> TwoWayModel:
    noise = PooledNoise(*(np.array([value]) for value in (1.0, 0.5, 4.0)), varied=np.array([True]))
    return TwoWayModel(Table(numbers), noise)


def compute_leads(numbers: np.ndarray) -> Leads:
    """The leads of the candidate with the greatest mean of each selection."""
    model = TaskModel.from_numbers([numbers])
    return model.leads(model.find_leader())


def two_samples(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The numbers of two candidates that share no unit."""
    numbers = np.full((1, 2, len(first) + len(second)), NONE)
    numbers[0, 0, : len(first)], numbers[0, 1, len(first) :] = first, second
    return numbers


def tables(rng: np.random.Generator, shape: Tuple[int, ...], unit_sd: float = 1.0) -> np.ndarray:
    return unit_sd * rng.normal(size=(shape[0], 1, shape[2])) + rng.normal(size=shape)


@pytest.fixture
def without_pooling(monkeypatch: pytest.MonkeyPatch) -> None:
    """d0 = 0: only the two candidates of a lead tell its error."""
    monkeypatch.setattr(leads, "PRIOR_DF", 0.0)


def test_the_worked_example() -> None:
    model = TaskModel([worked_model()])
    result = model.leads(model.find_leader())
    assert_allclose(model.means, [[12, 29 / 3, 139 / 18]], rtol=1e-12)
    assert_allclose(result.difference, [[0, 7 / 3, 77 / 18]], rtol=1e-12)
    assert_allclose(result.variance[0, 1:], [0.5359, 0.7760], atol=5e-5)
    assert_allclose(result.df[0, 1:], [6.25, 5.32], atol=5e-3)
    assert_allclose((result.difference / np.sqrt(result.variance.clip(1e-9)))[0, 1:], [3.187, 4.856], atol=5e-4)
    assert_allclose(result.tails()[0], [0.5, 0.0089, 0.0020], atol=5e-5)
    assert_allclose(prob_best_from_tails(result.tails())[0], [0.9891, 0.0089, 0.0019], atol=5e-5)


@pytest.mark.parametrize("number", [10, -3.5, 1e6])
def test_adding_a_number_to_all_scores_changes_nothing(number: float) -> None:
    expected, shifted = (worked_model(numbers).leads(np.array([0])) for numbers in (WORKED, WORKED + number))
    for name in ("difference", "variance", "df"):
        assert_allclose(getattr(shifted, name), getattr(expected, name), rtol=1e-9)
    assert_allclose(pool_noise(Table(WORKED + number)).variance, pool_noise(Table(WORKED)).variance, rtol=1e-9)


@pytest.mark.parametrize("num_candidates", [2, 3, 8])
@pytest.mark.parametrize("num_units", [2, 3, 10, 60])
@pytest.mark.usefixtures("without_pooling")
def test_complete_tables_have_the_paired_t_test(num_candidates: int, num_units: int) -> None:
    numbers = tables(np.random.default_rng(num_units), (20, num_candidates, num_units))
    result = compute_leads(numbers)
    for table, leader, tails, df in zip(numbers, result.leader, result.tails(), result.df, strict=True):
        for rival in set(range(num_candidates)) - {leader}:
            test = stats.ttest_rel(table[leader], table[rival], alternative="greater")
            assert tails[rival] == pytest.approx(test.pvalue, abs=1e-12)
            assert df[rival] == pytest.approx(num_units - 1)


@pytest.mark.usefixtures("without_pooling")
def test_without_shared_units_and_with_equally_many_it_is_students_t_test() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(1, 1, 7), rng.normal(0, 1, 7)
    result = compute_leads(two_samples(first, second))
    test = stats.ttest_ind(first, second, alternative="greater")
    assert result.tails()[0, 1] == pytest.approx(test.pvalue, abs=1e-12)
    assert result.df[0, 1] == pytest.approx(12)


def test_pooled_variances_of_two_samples_are_weighted_by_their_degrees_of_freedom() -> None:
    """Two samples of equal variance: the pooled one is v exp(log(d / 2) - psi(d / 2)), unbiased on the log scale."""
    sample = np.array([1.0, 2.0, 4.0, 7.0])
    noise = pool_noise(Table(two_samples(sample, sample + 9)))
    euler = 0.5772156649015329
    digamma_of_1_5 = 2 - euler - 2 * np.log(2)
    assert noise.variance[0] == pytest.approx(np.var(sample, ddof=1) * 1.5 / np.exp(digamma_of_1_5))
    assert noise.unit_share[0] == 0
    assert noise.df[0] == pytest.approx(leads.PRIOR_DF / 2)


def test_a_variance_learns_nothing_from_itself() -> None:
    assert pool_noise(Table(tables(np.random.default_rng(0), (1, 2, 5)))).df[0] == 0
    assert pool_noise(Table(tables(np.random.default_rng(0), (1, 4, 5)))).df[0] == pytest.approx(leads.PRIOR_DF * 5 / 6)


def test_units_explain_the_share_of_the_variance_that_they_have() -> None:
    noise = pool_noise(Table(tables(np.random.default_rng(5), (1, 6, 4000), unit_sd=2.0)))
    assert noise.variance[0] == pytest.approx(1, rel=0.03)
    assert noise.unit_share[0] == pytest.approx(0.8, abs=0.02)


def test_nothing_varied_gives_no_estimate() -> None:
    numbers = np.repeat([[[0.8], [0.7], [0.7]]], 5, axis=2) + np.array([0.01, 0.02, 0.0, 0.07, 0.03])
    result = compute_leads(numbers)
    assert not result.noise.varied[0]
    assert_allclose(prob_best_from_tails(result.tails()), 1 / 3)
    assert_allclose(result.expected_losses(), 0)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_constant_candidate_leaves_everything_finite(scale: float) -> None:
    numbers = scale * np.array([[[3, 3, 3, 3], [2, 4, 1, 2], [1, 1, 1, 1]]])
    result = compute_leads(numbers)
    assert result.leader[0] == 0
    assert (result.variance[0, 1:] > 0).all()
    assert np.isfinite(result.df).all()
    assert 0.5 < prob_best_from_tails(result.tails())[0, 0] < 1


def test_candidates_with_a_single_unit_have_a_lead() -> None:
    result = compute_leads(np.array([[[5.0, 6.0, 5.5], [4.0, NONE, NONE]]]))
    assert result.leader[0] == 0
    assert 0 < result.tails()[0, 1] < 0.5


def test_among_equal_means_more_units_lead_and_then_the_first() -> None:
    numbers = np.array([[[1, 3, NONE, NONE], [1, 3, 1, 3], [1, 3, 1, 3]]])
    assert compute_leads(numbers).leader[0] == 1


def test_equal_candidates_are_the_best_equally_often() -> None:
    assert_allclose(prob_best_from_tails(np.full((1, 5), 0.5)), 0.2)
    assert_allclose(prob_best_from_tails(np.array([[0.5, 0.03]]))[0], [0.97, 0.03])
    assert_allclose(prob_best_from_tails(np.array([[1.0, 0.5]])), [[1, 0]], atol=1e-11)


def test_a_margin_moves_the_lead() -> None:
    result = compute_leads(tables(np.random.default_rng(8), (3, 4, 6)))
    moved = Leads(result.leader, result.difference + 0.3, result.variance, result.df, result.noise)
    assert_allclose(result.tails(0.3), moved.tails(), rtol=1e-12)
    assert_allclose(result.tails(np.array([0.0, 0.3, 0.0]))[1], moved.tails()[1], rtol=1e-12)


def test_the_expected_loss_is_an_integral() -> None:
    result = compute_leads(tables(np.random.default_rng(2), (1, 3, 6)))
    for rival in {0, 1, 2} - {int(result.leader[0])}:
        difference, scale, df = result.difference[0, rival], result.variance[0, rival] ** 0.5, result.df[0, rival]
        loss, _ = integrate.quad(lambda x, df=df, d=difference, s=scale: x * stats.t.pdf(x, df, -d, s), 0, np.inf)
        assert result.expected_losses()[0, rival] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_equal_candidates_differ_as_rarely_as_the_level_says(gaps: float) -> None:
    """With gaps at random, the t-test of a fixed pair of equal candidates keeps its level."""
    rng = np.random.default_rng(9)
    numbers = np.where(rng.random((4000, 3, 10)) < gaps, NONE, tables(rng, (4000, 3, 10)))
    numbers = numbers[((~np.isnan(numbers)).sum(axis=2) >= 3).all(axis=1)]
    first = np.zeros(len(numbers), dtype=int)
    tails = TwoWayModel(Table(numbers), pool_noise(Table(numbers))).leads(first).tails()[:, 1]
    assert np.mean(tails < 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(tails > 0.95) == pytest.approx(0.05, abs=0.02)
