import numpy as np
import pytest

from fiesta_allennlp.selecting.results.candidate_result import (
    MAX_SDS,
    find_collapsed_runs,
    flag_collapsed,
    robust_sds_below,
)
from tests.choosing.histories import history


def test_limit_by_hand():
    # 4 runs with the median 1.5 and the MAD 0.75; the limit is 6 (1 + 16 / 4) = 30 times 1.4826 of it
    limit = 0.75 * 1.4826 * 30
    assert flag_collapsed(np.array([1.5 - 1.01 * limit, 1.0, 2.0, 2.5])).tolist() == [True, False, False, False]
    assert not flag_collapsed(np.array([1.5 - 0.99 * limit, 1.0, 2.0, 2.5])).any()


@pytest.mark.parametrize("scores", [[0.8] * 12, [0.0] * 5, [0.5, 0.1], [], [1.0] * 29 + [0.9933]])
def test_constant_scores_and_one_wrong_answer_have_none(scores):
    assert not flag_collapsed(np.array(scores)).any()


@pytest.mark.parametrize("equal", [0.0, 5e-324, 1e-310, -1e-308, 1e-200])
@pytest.mark.parametrize("other", [-10.0, -1e100, -1e-3])
def test_one_run_far_below_equal_and_tiny_scores_has_a_finite_distance(equal, other):
    """A distance in units of almost nothing overflows, which is an error in this suite."""
    sds = robust_sds_below(np.array([equal] * 5 + [other]))
    assert sds.tolist() == pytest.approx([0] * 5 + [MAX_SDS])
    assert flag_collapsed(np.array([equal] * 5 + [other])).tolist() == [False] * 5 + [True]
    assert not flag_collapsed(np.array([equal] * 5)).any() and not robust_sds_below(np.array([equal] * 5)).any()


@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 8, 10, 15, 30, 50])
def test_at_most_one_normal_sample_in_a_hundred(number):
    samples = np.random.default_rng(number).normal(0.7, 0.02, (4000, number))
    assert np.mean([flag_collapsed(sample).any() for sample in samples]) <= 0.01


def test_a_hard_split_is_no_collapsed_run():
    good, bad = np.linspace(0.85, 0.87, 11), 0.3
    both = history({"a": [*good, bad], "b": [*(good - 0.01), bad], "c": [*(good + 0.01), 0.87]})
    assert not find_collapsed_runs(both)
    (alone,) = find_collapsed_runs(history({"a": [*good, bad], "b": [*good, 0.86], "c": [0.5]}))
    assert (alone.candidate, alone.num_runs, list(alone.scores.values())) == ("a", 12, [bad])
