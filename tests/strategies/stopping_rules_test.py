import math
from dataclasses import replace
from typing import Mapping, Sequence

import numpy as np
import pytest

from fiesta_allennlp.beliefs import StudentTPosterior
from fiesta_allennlp.probability.confidence_sequence import apart_log_evidence, highest_log_evidence
from fiesta_allennlp.records import Decision, Evaluation, History
from fiesta_allennlp.registry import build
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.strategies import (
    BayesianStop,
    GeneralizedLikelihoodRatioStop,
    StoppingRule,
    Strategy,
)
from fiesta_allennlp.strategies.base import Look
from fiesta_allennlp.strategies.stopping_rules import RuleOfThree
from tests.strategies.histories import history

GLR = GeneralizedLikelihoodRatioStop()
SCORES = {"a": [0.62, 0.64, 0.63, 0.66, 0.61, 0.65], "b": [0.60, 0.61, 0.62, 0.62, 0.60, 0.62]}
DIFFERENCES = np.array(SCORES["a"]) - np.array(SCORES["b"])


def is_sure(rule: StoppingRule, now: History, decision: Decision, confidence: float) -> bool:
    return rule.missing_runs(now, Look(decision), confidence) == ()


def evidence_reached(now: History, *, margin: float = 0.0, best: str = "a") -> float:
    """log E that all tests of `glr` reach on common splits: where the confidence is just too high."""
    low, high = 0.0, 60.0
    decision = Decision(best=best, margin=margin)
    for _ in range(60):
        middle = (low + high) / 2
        sure = is_sure(GLR, now, decision, 1 - len(now.candidates) * math.exp(-middle))
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


def test_bayesian_stops_at_the_confidence_and_the_rule_of_three_is_the_default() -> None:
    strategy = build(Strategy, {"type": "top_two", "belief": "student_t"})
    for rule in (build(StoppingRule, {}), getattr(strategy, "stop", None)):
        assert isinstance(rule, RuleOfThree)
    decision = Decision(best="a", prob_best={"a": 0.9, "b": 0.1}, prob_within_margin={"a": 0.95, "b": 0.4})
    assert is_sure(BayesianStop(), history(SCORES), decision, 0.95)
    assert not is_sure(BayesianStop(), history(SCORES), decision, 0.951)
    for rule in (BayesianStop(), RuleOfThree(), GLR):
        assert not is_sure(rule, history({"a": [], "b": []}), Decision(best=None), 0.5)


def missing(
    *counts: int, noise_sd: "float | np.ndarray", confidence: float = 0.95, margin: float = 0.0, best: str = "a"
) -> "str | None":
    """The names of the missing runs, joined, of a winner that is sure."""
    now = history({name: [0.5] * count for name, count in zip("abc", counts, strict=True)})
    decision = Decision(best, margin=margin, prob_best={best: 1.0}, prob_within_margin={best: 1.0})
    location = np.array([0.70, 0.69, 0.50])  # a leads b by .01 and c by .2
    posterior = StudentTPosterior.simple(location, np.zeros(3), np.ones(3), noise_sd=noise_sd)
    names = RuleOfThree().missing_runs(now, Look(decision, posterior), confidence)
    return None if names is None else "".join(names)


class TestRuleOfThree:
    def test_failures_not_seen_yet_must_not_overturn_the_winner(self) -> None:
        # At .95, 3.4 ln(20) = 10.1855: ten runs of a winner allow a noise sd of .01 x 10 / 10.1855 = .009818.
        assert missing(10, 10, 10, noise_sd=0.0098) == ""
        assert missing(10, 10, 10, noise_sd=0.0099) == "ab"
        assert missing(11, 9, 10, noise_sd=0.0099) == "bb"
        assert missing(10, 10, 10, noise_sd=0.0099, margin=0.0001) == ""
        assert missing(10, 10, 10, noise_sd=0.0099, confidence=0.8) == "", "3.4 ln(5) = 5.47"
        # Told in turn: 10.1855 x .0128 / .01 = 13.04 runs of both, or of the noisy rival alone.
        assert missing(10, 10, 10, noise_sd=0.0128) == "abababab"
        assert missing(10, 10, 10, noise_sd=np.array([0.0098, 0.0128, 0.05])) == "bbbb"
        # 30.6 would be more than twice the present ones; without a lead no number is enough.
        assert missing(10, 10, 10, noise_sd=0.03).count("a") == 10
        assert missing(10, 10, 10, noise_sd=0.03, best="b", margin=0.001).count("b") == 10

    def test_a_winner_and_its_nearest_rival_run_often_enough_to_show_frequent_failures(self) -> None:
        assert missing(10, 10, 2, noise_sd=0.0) == ""
        assert missing(8, 8, 2, noise_sd=0.0) == "abab"
        assert missing(12, 8, 2, noise_sd=0.0) == "bb"
        assert missing(9, 10, 2, noise_sd=0.0) == "a"
        needed = [RuleOfThree().least_runs(confidence) for confidence in (0.5, 0.8, 0.875, 0.9, 0.95, 0.99)]
        assert needed == [3, 6, 7, 8, 10, 16]


class TestGLR:
    def test_is_the_paired_test_at_level_delta_over_n(self) -> None:
        assert evidence_reached(history(SCORES)) == pytest.approx(highest_log_evidence(DIFFERENCES))
        wider = evidence_reached(history({**SCORES, "c": [score - 0.1 for score in SCORES["a"]]}))
        assert wider == pytest.approx(highest_log_evidence(DIFFERENCES))
        assert evidence_reached(history(SCORES), margin=0.02) == pytest.approx(highest_log_evidence(DIFFERENCES + 0.02))
        near = {**SCORES, "c": [score - 0.001 * (-1) ** k for k, score in enumerate(SCORES["a"])]}
        assert evidence_reached(history(near)) < 1, "every rival must be rejected"
        assert evidence_reached(history(near, withdrawn=["c"])) == pytest.approx(evidence_reached(history(SCORES)))

    def test_what_counts_is_the_first_score_of_both_on_a_split_up_to_a_pending_one(self) -> None:
        now = history(SCORES)
        again = Evaluation(replace(now.evaluations[0].request, replicate=9), 0.99, "f1")
        for same in (
            replace(now, evaluations=now.evaluations[::-1]),
            replace(now, evaluations=(again, *now.evaluations)),
            history({**SCORES, "a": [*SCORES["a"], 0.9, 0.1]}),
        ):
            assert evidence_reached(same) == evidence_reached(now)
        failed = without(now, "b", 2)
        assert evidence_reached(failed) == pytest.approx(highest_log_evidence(np.delete(DIFFERENCES, 2)))
        waiting = next(e.request for e in now.evaluations if e.request.key == ("b", 4))
        pending = replace(without(now, "b", 4), pending=(waiting,))
        assert evidence_reached(pending) == pytest.approx(highest_log_evidence(DIFFERENCES[:4]))

    def test_equal_scores_are_no_proof_and_equal_differences_are_in_time(self) -> None:
        assert evidence_reached(history({"a": [0.5] * 30, "b": [0.5] * 30})) == pytest.approx(0, abs=1e-9)
        apart_by = [history({"a": [0.5] * 30, "b": [0.4] * count}) for count in (0, 1, 3, 30)]
        assert [is_sure(GLR, now, Decision(best="a"), 0.95) for now in apart_by] == [False, False, False, True]

    def test_independent_splits_take_the_samples_apart(self) -> None:
        now = apart({"a": SCORES["a"], "b": SCORES["b"][:5]})
        statistic = apart_log_evidence(np.array(SCORES["a"]) + 0.01, np.array(SCORES["b"][:5]))
        error = (1 + statistic) * math.exp(-statistic)
        decision = Decision(best="a", margin=0.01)
        assert is_sure(GLR, now, decision, 1 - 2.001 * error)
        assert not is_sure(GLR, now, decision, 1 - 1.999 * error)
        assert not is_sure(GLR, apart({"a": SCORES["a"], "b": []}), decision, 0.01)
