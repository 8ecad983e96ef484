import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.functional import util
from tests.functional.calls_test import CLEAR, DATA, scripted, split
from tests.strategies.histories import THREE_EACH, history


def test_belief_calc_is_the_belief() -> None:
    scores = np.array(list(THREE_EACH.values()))
    calculated = util.belief_calc(scores.mean(axis=1), scores.var(axis=1), np.array([3, 3, 3]))
    assert_allclose(calculated, StudentT().posterior(history(THREE_EACH)).prob_best())


def test_belief_calc_of_one_degree_of_freedom_by_hand() -> None:
    # Two Cauchy variables of scale 1: their difference is Cauchy of scale 2, P(> -2) = 3/4.
    assert_allclose(util.belief_calc(np.array([2.0, 0.0]), np.ones(2), np.array([3, 3])), [0.75, 0.25], atol=1e-8)


def test_helpers_refuse_few_evaluations_and_lists_of_other_sizes() -> None:
    with pytest.raises(ValueError, match="at least 3 times"):
        util.belief_calc(np.ones(2), np.ones(2), np.array([3, 2]))
    util.lists_same_size([1], [2])
    with pytest.raises(ValueError, match="2, 1 entries"):
        util.lists_same_size([1, 2], [1])


def test_pull_arm() -> None:
    expected = np.random.default_rng(4).normal(0.6, 0.1)
    assert util.pull_arm(0.6, 0.1, rng=np.random.default_rng(4)) == expected


@pytest.mark.parametrize("name", ["TTTS", "non_adaptive_fc"])
def test_statistics_of_a_fixed_confidence(name: str) -> None:
    arguments = {"data": DATA, "model_functions": scripted(*(3 * x for x in CLEAR)), "split_function": split}
    least, mean, most, percent = util.fc_func_stats(3, 1, name, p_value=0.05, **arguments)
    assert (least, mean, most, percent) == (9, 9, 9, 100)
    again = {**arguments, "model_functions": scripted(*(3 * x for x in CLEAR))}
    assert util.fc_func_stats(3, 0, name, p_value=0.05, **again).percent_correct == 0


def test_statistics_of_a_fixed_budget() -> None:
    # The first is best in the first repetition only.
    models = scripted([0.9, 0.1], [0.5])
    share = util.fb_func_stats(
        4, 0, "non_adaptive_fb", data=DATA, model_functions=models, split_function=split, budget=2
    )
    assert share == 0.25


def test_an_unknown_call_is_refused() -> None:
    with pytest.raises(ValueError, match="fc_func_name must be one of TTTS, BTS, non_adaptive_fc but got 'halving'"):
        util.fc_func_stats(3, 1, "halving")
    with pytest.raises(ValueError, match="N must be at least 1 but got 0"):
        util.fb_func_stats(0, 1, "non_adaptive_fb")
