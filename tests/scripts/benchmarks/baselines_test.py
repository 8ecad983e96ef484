from importlib import import_module
from typing import Any, Callable, Dict

import numpy as np
import pytest
from scipy import stats


def draws(scores: np.ndarray, paired: bool = True) -> Any:
    order = np.tile(np.arange(len(scores))[:, None], scores.shape[1])
    return import_module("baselines").Draws(scores, paired, np.random.default_rng(1).permuted(order, axis=0))


def normal_scores(means: np.ndarray, num_selections: int = 300) -> np.ndarray:
    """Draw scores with a run-to-run sd of 1. Shape: `(num_candidates, num_selections, 50)`."""
    noise = np.random.default_rng(3).normal(0, 1, (len(means), num_selections, 50))
    return noise + np.asarray(means)[:, None, None]


def test_equal_runs_choose_by_the_mean_and_ties_by_chance() -> None:
    module = import_module("baselines")
    scores = np.zeros((3, 4000, 10))
    scores[2] = -1
    choices = module.run_equally(draws(scores), 2)
    assert np.bincount(choices.leaders, minlength=3) / 4000 == pytest.approx([0.5, 0.5, 0], abs=0.03)
    assert choices.are_named.all() and set(choices.num_runs) == {6}


@pytest.mark.parametrize(("paired", "alternative"), [(True, stats.ttest_rel), (False, stats.ttest_ind)])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_tests_name_a_leader_that_passes_against_every_rival(
    paired: bool, alternative: Callable[..., Any], level: float
) -> None:
    scores = normal_scores(np.array([0.9, 0, 0.2])) * np.array([1, 1.5, 0.5])[:, None, None]
    choices = import_module("baselines").pass_tests(draws(scores, paired), level)
    options: Dict[str, Any] = {} if paired else {"equal_var": False}
    for number, (leader, is_named) in enumerate(zip(choices.leaders, choices.are_named, strict=True)):
        first = scores[:, number, :12]
        rivals = [row for place, row in enumerate(first) if place != leader]
        p_values = [alternative(first[leader], rival, alternative="greater", **options).pvalue for rival in rivals]
        assert leader == first.mean(axis=1).argmax() and is_named == (max(p_values) < level)


def test_halving_tests_the_last_two_and_counts_the_runs_of_each_round() -> None:
    module = import_module("baselines")
    # 8 x 3, then 4 x 3, then 2 x 14: the last two have 20 runs each
    clear = module.halve(draws(normal_scores(np.arange(8) * 3.0)), 0.05)
    assert set(clear.num_runs) == {64} and clear.are_named.all() and set(clear.leaders) == {7}
    assert set(module.halve(draws(normal_scores(np.zeros(5))), 0.05).num_runs) == {3 * 5 + 2 * 17}
    assert set(module.halve(draws(normal_scores(np.zeros(2))), 0.05).num_runs) == {40}
    tied = module.halve(draws(normal_scores(np.zeros(2), 4000)), 0.05)
    assert tied.are_named.mean() == pytest.approx(0.1, abs=0.015), "the leader of two, on either side"


def test_a_race_drops_losers_at_its_looks() -> None:
    module = import_module("baselines")
    scores = np.zeros((3, 1, 50)) + np.array([0, 1, 1])[:, None, None]
    scores[2, 0, 9::2] += 0.5  # equal to the second candidate up to nine runs
    choices = module.race(draws(scores), 0.02)
    # the first loses after 3 runs; of the others, the lead has p = .04 after 10, 13 and .006 after 16 runs
    differences = {look: scores[2, 0, :look] - scores[1, 0, :look] for look in module.LOOKS if look > 9}
    end = min(
        look for look, row in differences.items() if stats.ttest_1samp(row, 0, alternative="greater").pvalue < 0.02
    )
    assert choices.are_named.all() and choices.leaders.tolist() == [2] and choices.num_runs.tolist() == [3 + 2 * end]
    equal = module.race(draws(np.zeros((2, 1, 50))), 0.02)
    assert not equal.are_named.any() and equal.num_runs.tolist() == [100]


def test_baselines_use_the_scores_that_a_selection_draws() -> None:
    problem = import_module("published_scores").Problem("s", "p", True, {"a": np.arange(9.0), "b": np.arange(9.0) ** 2})
    drawn = problem.draw_selections(50, 7, 2)
    simulator = import_module("published_scores").prepare_simulator(
        import_module("published_scores").ReplaySettings(scores="", seed=7), problem
    )
    assert drawn.scores[1, 1] * problem.sd == pytest.approx(simulator.draw(1).scores["b"][:50])
