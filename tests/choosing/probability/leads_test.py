from types import SimpleNamespace
from typing import Any, List, Tuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from fiesta_allennlp.choosing.probability import leads
from fiesta_allennlp.choosing.probability.batch import Batch, Ends, Rules, allowed_error
from fiesta_allennlp.choosing.probability.leads import (
    Leads,
    PooledNoise,
    Table,
    TaskModel,
    TwoWayModel,
    choose_task,
    count_independent_units,
    pool_noise,
    prob_on_new_task,
)
from fiesta_allennlp.choosing.probability.prob_best import prob_best_from_tails

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


LIMIT = 150


def leads_of(difference: float, variance: float, df: float, *, varied: bool = True) -> Leads:
    noise = PooledNoise(np.array([variance]), np.zeros(1), np.zeros(1), np.array([varied]))
    return Leads(np.array([0]), np.array([[0, difference]]), np.array([[0, variance]]), np.array([[df, df]]), noise)


def average(leads: List[Leads]) -> Leads:
    """The leads over the tasks that have these."""
    facts = [{"means": -each.difference, "num_units": np.ones((1, 2)), "noise": each.noise} for each in leads]
    models: Any = [
        SimpleNamespace(leads=lambda leader, own=own: own, **fact) for own, fact in zip(leads, facts, strict=True)
    ]
    return TaskModel(models).leads(np.zeros(1, dtype=int))


def test_the_lead_is_the_mean_of_the_leads_with_the_degrees_of_freedom_of_satterthwaite() -> None:
    """D = (3 + 1) / 2; V = (4 + 2) / 4; d = (4 + 2)^2 / (16 / 8 + 4 / 4)."""
    result = average([leads_of(3, 4, 8), leads_of(1, 2, 4)])
    assert (result.difference[0, 1], result.variance[0, 1], result.df[0, 1]) == (2, 1.5, 12)
    assert result.noise.variance[0] == 3, "the mean of both"
    assert result.tails()[0, 1] == pytest.approx(stats.t.sf(2 / 1.5**0.5, 12))
    constant = average([leads_of(3, 4, 8), leads_of(1, 2, 4, varied=False)])
    assert (constant.variance[0, 1], constant.df[0, 1], constant.noise.variance[0]) == (1, 8, 4)
    assert constant.task_variances[:, 0, 1].tolist() == [4, 0], "no run helps where nothing varies"


def test_units_of_several_tasks_count_by_their_share_of_the_variance() -> None:
    def count(variances: List[float], units: List[float]) -> float:
        return float(count_independent_units(np.array(variances), np.array(units)))

    assert count([5], [12]) == 12
    assert count([1, 1, 1], [4, 4, 4]) == 10
    assert count([1, 1e-9], [3, 50]) == pytest.approx(3)
    assert count([1, 1], [1, 9]) == 1, "a task with one unit tells nothing about its noise"
    assert count([0, 1], [1, 9]) == 9
    assert count([1, 1], [np.inf, np.inf]) == np.inf


def test_a_run_goes_where_the_variance_falls_most() -> None:
    """4 (1/2 - 1/3) / (1/2 + 1/2) = 2/3; 9 (1/5 - 1/6) / (1/5 + 1/3) = 9/16."""
    variances, own, other = np.array([[4.0, 9.0], [4.0, 12.0]]), np.array([[2, 5]] * 2), np.array([[2, 3]] * 2)
    assert choose_task(variances, own, other).tolist() == [0, 1]


def test_a_new_task_is_predicted_by_a_t_of_the_leads() -> None:
    differences = [0.02, -0.01, 0.03, 0.01]
    spread = np.std(differences, ddof=1) * (1 + 1 / 4) ** 0.5
    assert prob_on_new_task(differences) == pytest.approx(stats.t.cdf(0.0125 / spread, 3))
    assert (prob_on_new_task([0.1, 0.1]), prob_on_new_task([0, 0]), prob_on_new_task([-1, -1])) == (1, 0.5, 0)


def draw(size: int, means: np.ndarray, sds: Tuple[float, ...], seed: int = 1) -> np.ndarray:
    """Shape: `(size, num_candidates * num_tasks, LIMIT)`; `means` has the shape `(num_candidates, num_tasks)`."""
    noise = np.random.default_rng(seed).normal(size=(size, *means.shape, LIMIT)) * np.array(sds)[:, None]
    return (means[:, :, None] + noise).reshape(size, -1, LIMIT)


def select(scores: np.ndarray, num_tasks: int, **options: Any) -> Ends:
    rules = Rules(**{"confidence": 0.95, "limit": LIMIT, "num_tasks": num_tasks, **options})
    num_rows = scores.shape[1]
    units = np.arange(LIMIT) * num_rows + np.arange(num_rows)[:, None]
    return Batch(scores, np.broadcast_to(units, scores.shape), rules).run()


def test_a_selection_over_tasks_is_that_of_the_formulas() -> None:
    """Two candidates on two tasks: the ends of a loop that computes each lead for itself."""
    scores = draw(8, np.array([[0.5, 0.6], [0.0, 0.3]]), (1.0, 0.5))
    ends = select(scores, 2, gives_up=False)
    for place, table in enumerate(scores):
        units = np.full((2, 2), 3)
        while True:
            parts = [compute_leads(two_samples(*(table[2 * k + t, : units[k, t]] for k in (0, 1)))) for t in (0, 1)]
            difference = np.array([part.difference[0, 1 - part.leader[0]] * (1 - 2 * part.leader[0]) for part in parts])
            variances = np.array([part.variance[0, 1 - part.leader[0]] for part in parts])
            dfs = np.array([part.df[0, 1 - part.leader[0]] for part in parts])
            t, df = abs(difference.sum()) / variances.sum() ** 0.5, variances.sum() ** 2 / (variances**2 / dfs).sum()
            number = 1 + variances.sum() ** 2 / (variances**2 / (units.min(axis=0) - 1)).sum()
            if stats.t.sf(t, df) <= allowed_error(number, 0.95) or units.sum() >= LIMIT:
                break
            leader = int(difference.sum() < 0)
            chosen = leader if units[leader].sum() <= units[1 - leader].sum() else 1 - leader
            own, other = units[chosen], units[1 - chosen]
            units[chosen, np.argmax(variances * (1 / own - 1 / (own + 1)) / (1 / own + 1 / other))] += 1
        assert ends.num_runs[place].tolist() == units.sum(axis=1).tolist()
        assert (ends.leader[place], ends.is_named[place]) == (int(difference.sum() < 0), units.sum() < LIMIT)


def test_candidates_whose_averages_are_equal_are_told_apart_as_rarely_as_on_one_task() -> None:
    """One is better on the first task, and as much worse on the second."""
    apart, same = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, 1))
    assert select(draw(200, apart, (1.0, 1.0)), 2).is_named.mean() <= select(draw(200, same, (1.0,)), 1).is_named.mean()
    wrong = select(draw(400, np.array([[0.6, 0.0, 0.3], [0.0, 0.0, 0.0]]), (1.0, 1.0, 1.0)), 3)
    assert (wrong.leader[wrong.is_named] == 1).mean() < 0.05
