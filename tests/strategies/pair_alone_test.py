"""The leader against its runner-up alone, and against all candidates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtr

from fiesta_allennlp.core.records import PairAlone
from fiesta_allennlp.selection.texts import pair_text
from fiesta_allennlp.strategies.base import Minimising
from tests.strategies.histories import THREE_EACH, correlated_pair, history
from tests.strategies.simulation import built

SPLIT_PAIRED = {"type": "split_paired"}


def test_the_pair_alone_has_the_probability_of_a_paired_t_test() -> None:
    scores = correlated_pair()
    rule = built("top_two", belief=SPLIT_PAIRED, stop="early_looks")
    pair = rule.pair_alone(history(scores))
    differences = np.subtract(scores["first"], scores["second"])
    t = differences.mean() / (differences.std(ddof=1) / 12**0.5)
    assert t == pytest.approx(5.4487, abs=1e-4)
    assert pair is not None and pair.runner_up == "second" and pair.required == 0.95
    assert pair.alone == pytest.approx(stdtr(11, t), abs=5e-5)
    assert pair.together == rule.recommend(history(scores)).prob_best["first"] > 0.999
    assert rule.describe(history(scores)).pair_alone == pair
    assert Minimising(rule).pair_alone(history(scores).negated) == pair


def test_there_is_no_pair_without_a_posterior_or_without_others() -> None:
    rule = built("top_two", belief=SPLIT_PAIRED)
    assert rule.pair_alone(history({**THREE_EACH, "c": []})) is None
    assert rule.pair_alone(history({name: THREE_EACH[name] for name in "ab"})) is None
    assert built("ttts", stop="glr").pair_alone(history(THREE_EACH)) is None, "no probability ends it"
    assert built("sequential_halving", budget=12).pair_alone(history(THREE_EACH)) is None


def test_the_sentence_is_there_where_only_one_probability_is_high_enough() -> None:
    pair = PairAlone("b", alone=0.98, together=0.6, required=0.95)
    said = "against b alone, P(best) of a is 0.980, with all candidates 0.600 (required: 0.950)"
    assert pair_text("a", pair) == said
    assert pair_text("a", replace(pair, alone=0.9, together=0.97)).startswith("against b alone, P(best) of a is 0.900")
    for agreeing in (replace(pair, together=0.95), replace(pair, alone=0.94), None):
        assert pair_text("a", agreeing) == ""
