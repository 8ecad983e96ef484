from types import SimpleNamespace
from typing import Any, List, Tuple

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.choosing.probability.batch import Batch, Ends, Rules, allowed_error
from fiesta_allennlp.choosing.probability.leads import Leads, PooledNoise
from fiesta_allennlp.choosing.probability.task_leads import (
    TaskModel,
    choose_task,
    count_independent_units,
    prob_on_new_task,
)
from tests.choosing.probability.leads_test import compute_leads, two_samples

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
    scores = draw(20, np.array([[0.5, 0.6], [0.0, 0.3]]), (1.0, 0.5))
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
