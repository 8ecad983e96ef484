from importlib import import_module
from typing import Any, Callable, Dict

import numpy as np
import pytest
from scipy import stats


def draws(scores: np.ndarray, paired: bool = True) -> Any:
    order = np.tile(np.arange(len(scores))[:, None], scores.shape[1])
    return import_module("procedures").Draws(scores, paired, np.random.default_rng(1).permuted(order, axis=0))


def normal_scores(means: np.ndarray, num_selections: int = 300) -> np.ndarray:
    """Draw scores with a run-to-run sd of 1. Shape: `(num_candidates, num_selections, 50)`."""
    noise = np.random.default_rng(3).normal(0, 1, (len(means), num_selections, 50))
    return noise + np.asarray(means)[:, None, None]


def test_equal_runs_choose_by_the_mean_and_ties_by_chance() -> None:
    module = import_module("procedures")
    scores = np.zeros((3, 4000, 10))
    scores[2] = -1
    choices = module.run_equally(draws(scores), 2)
    assert np.bincount(choices.leaders, minlength=3) / 4000 == pytest.approx([0.5, 0.5, 0], abs=0.03)
    assert choices.are_named.all() and choices.runs_each == 2


@pytest.mark.parametrize(("paired", "alternative"), [(True, stats.ttest_rel), (False, stats.ttest_ind)])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_tests_name_a_leader_that_passes_against_every_rival(
    paired: bool, alternative: Callable[..., Any], level: float
) -> None:
    scores = normal_scores(np.array([0.9, 0, 0.2])) * np.array([1, 1.5, 0.5])[:, None, None]
    choices = import_module("procedures").pass_tests(draws(scores, paired), level)
    options: Dict[str, Any] = {} if paired else {"equal_var": False}
    for number, (leader, is_named) in enumerate(zip(choices.leaders, choices.are_named, strict=True)):
        first = scores[:, number, :12]
        rivals = [row for place, row in enumerate(first) if place != leader]
        p_values = [alternative(first[leader], rival, alternative="greater", **options).pvalue for rival in rivals]
        assert leader == first.mean(axis=1).argmax() and is_named == (max(p_values) < level)


def test_baselines_use_the_scores_that_a_selection_draws() -> None:
    problem = import_module("published_scores").Problem("s", "p", True, {"a": np.arange(9.0), "b": np.arange(9.0) ** 2})
    drawn = problem.draw_selections(7, 2)
    simulator = import_module("published_scores").prepare_simulator(
        import_module("published_scores").ReplaySettings(scores="", seed=7), problem
    )
    assert drawn.scores[1, 1] * problem.sd == pytest.approx(simulator.draw(1).scores["b"][:12])
