import math
from dataclasses import replace
from typing import List, Mapping, Sequence

import numpy as np
import pytest

from fiesta_allennlp.probability.confidence_sequence import apart_log_evidence, highest_log_evidence
from fiesta_allennlp.records import Decision, Evaluation, History
from fiesta_allennlp.registry import build
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.strategies import (
    BayesianStop,
    FixedConfidence,
    GeneralizedLikelihoodRatioStop,
    StoppingRule,
    Strategy,
)
from tests.strategies.histories import history
from tests.strategies.simulation import Simulation, built

GLR = GeneralizedLikelihoodRatioStop()
SCORES = {"a": [0.62, 0.64, 0.63, 0.66, 0.61, 0.65], "b": [0.60, 0.61, 0.62, 0.62, 0.60, 0.62]}
DIFFERENCES = np.array(SCORES["a"]) - np.array(SCORES["b"])
FIXED_CONFIDENCE = [name for name in Strategy.available() if issubclass(Strategy.by_name(name), FixedConfidence)]


def evidence_reached(now: History, *, margin: float = 0.0, best: str = "a") -> float:
    """log E that all tests of `glr` reach on common splits: where the confidence is just too high."""
    low, high = 0.0, 60.0
    decision = Decision(best=best, margin=margin)
    for _ in range(60):
        middle = (low + high) / 2
        sure = GLR.is_sure(now, decision, 1 - len(now.candidates) * math.exp(-middle))
        low, high = (middle, high) if sure else (low, middle)
    return low


def apart(scores: Mapping[str, Sequence[float]]) -> History:
    """As `history`, every evaluation on a split of its own."""
    done = [
        Evaluation(make_request(1, name, replicate, shared_splits=False), score, "f1")
        for name, values in scores.items()
        for replicate, score in enumerate(values)
    ]
    return History(tuple(scores), evaluations=tuple(done))


def without(now: History, candidate: str, replicate: int) -> History:
    kept = tuple(e for e in now.evaluations if e.request.key != (candidate, replicate))
    return replace(now, evaluations=kept)


def test_bayesian_is_the_default_everywhere() -> None:
    assert isinstance(build(StoppingRule, {}), BayesianStop)
    for name in FIXED_CONFIDENCE:
        strategy = built(name)
        assert isinstance(strategy, FixedConfidence)
        assert isinstance(strategy.stop, BayesianStop)


@pytest.mark.parametrize("name", FIXED_CONFIDENCE)
def test_every_strategy_takes_a_rule(name: str) -> None:
    for strategy in (built(name, stop="glr"), built(name, stop={"type": "glr"})):
        assert isinstance(strategy, FixedConfidence)
        assert isinstance(strategy.stop, GeneralizedLikelihoodRatioStop)


def test_bayesian_stops_at_the_confidence() -> None:
    decision = Decision(best="a", prob_best={"a": 0.9, "b": 0.1}, prob_within_margin={"a": 0.95, "b": 0.4})
    assert BayesianStop().is_sure(history(SCORES), decision, 0.95)
    assert not BayesianStop().is_sure(history(SCORES), decision, 0.951)
    assert not BayesianStop().is_sure(history(SCORES), Decision(best="a"), 0.1)


@pytest.mark.parametrize("rule", [BayesianStop(), GLR], ids=["bayesian", "glr"])
def test_nobody_is_sure_of_no_winner(rule: StoppingRule) -> None:
    assert not rule.is_sure(history({"a": [], "b": []}), Decision(best=None), 0.5)


class TestGLR:
    def test_is_the_paired_test_at_level_delta_over_n(self) -> None:
        assert evidence_reached(history(SCORES)) == pytest.approx(highest_log_evidence(DIFFERENCES))
        wider = evidence_reached(history({**SCORES, "c": [score - 0.1 for score in SCORES["a"]]}))
        assert wider == pytest.approx(highest_log_evidence(DIFFERENCES))

    def test_every_rival_must_be_rejected(self) -> None:
        near = [score - 0.001 * (-1) ** k for k, score in enumerate(SCORES["a"])]
        assert evidence_reached(history({**SCORES, "c": near})) < 1
        assert evidence_reached(history({**SCORES, "c": near}, withdrawn=["c"])) == pytest.approx(
            highest_log_evidence(DIFFERENCES)
        )

    def test_a_margin_is_added_to_the_differences(self) -> None:
        assert evidence_reached(history(SCORES), margin=0.02) == pytest.approx(highest_log_evidence(DIFFERENCES + 0.02))

    def test_the_order_of_finishing_plays_no_part(self) -> None:
        now = history(SCORES)
        turned = replace(now, evaluations=now.evaluations[::-1])
        assert evidence_reached(turned) == evidence_reached(now)

    def test_splits_of_one_of_the_two_do_not_count(self) -> None:
        more = history({**SCORES, "a": [*SCORES["a"], 0.9, 0.1]})
        assert evidence_reached(more) == pytest.approx(highest_log_evidence(DIFFERENCES))

    def test_a_failed_replicate_is_left_out(self) -> None:
        now = without(history(SCORES), "b", 2)
        assert evidence_reached(now) == pytest.approx(highest_log_evidence(np.delete(DIFFERENCES, 2)))

    def test_nothing_after_a_pending_replicate_counts(self) -> None:
        whole = history(SCORES)
        waiting = next(e.request for e in whole.evaluations if e.request.key == ("b", 4))
        now = replace(without(whole, "b", 4), pending=(waiting,))
        assert evidence_reached(now) == pytest.approx(highest_log_evidence(DIFFERENCES[:4]))

    def test_the_first_of_several_on_a_split_counts(self) -> None:
        now = history(SCORES)
        first = now.evaluations[0].request
        again = Evaluation(replace(first, replicate=9), 0.99, "f1")
        twice = replace(now, evaluations=(again, *now.evaluations))
        assert evidence_reached(twice) == evidence_reached(now)

    @pytest.mark.parametrize("count", [0, 1])
    def test_fewer_than_two_common_splits_are_no_proof(self, count: int) -> None:
        few = history({"a": SCORES["a"], "b": [0.0] * count})
        assert not GLR.is_sure(few, Decision(best="a"), 0.3)

    def test_equal_scores_are_no_proof_and_equal_differences_are_in_time(self) -> None:
        assert evidence_reached(history({"a": [0.5] * 30, "b": [0.5] * 30})) == pytest.approx(0, abs=1e-9)
        apart_by = [history({"a": [0.5] * count, "b": [0.4] * count}) for count in (3, 30)]
        assert [GLR.is_sure(now, Decision(best="a"), 0.95) for now in apart_by] == [False, True]

    def test_independent_splits_take_the_samples_apart(self) -> None:
        now = apart({"a": SCORES["a"], "b": SCORES["b"][:5]})
        statistic = apart_log_evidence(np.array(SCORES["a"]) + 0.01, np.array(SCORES["b"][:5]))
        error = (1 + statistic) * math.exp(-statistic)
        decision = Decision(best="a", margin=0.01)
        assert GLR.is_sure(now, decision, 1 - 2.001 * error)
        assert not GLR.is_sure(now, decision, 1 - 1.999 * error)
        assert not GLR.is_sure(apart({"a": SCORES["a"], "b": []}), decision, 0.01)


@pytest.mark.parametrize("name", ["top_two", "non_adaptive_fc"])
@pytest.mark.parametrize("num_workers", [1, 4])
def test_glr_ends_a_selection_later_than_bayesian(name: str, num_workers: int) -> None:
    means = {"weak": 0.55, "best": 0.65, "fair": 0.62}
    ends: List[History] = []
    for rule in ("bayesian", "glr"):
        strategy = built(name, max_evaluations=300, confidence=0.9, stop=rule)
        decision, end = Simulation(strategy, means, num_workers, True, 0.05, seed=6).run()
        assert (decision.best, decision.stopped_by) == ("best", "confidence")
        ends.append(end)
    assert ends[0].total_started < ends[1].total_started
