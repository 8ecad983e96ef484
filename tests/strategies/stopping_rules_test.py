import math
from dataclasses import replace
from typing import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.beliefs import StudentTPosterior
from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.probability.confidence_sequence import max_log_evidence, unpaired_log_evidence
from fiesta_allennlp.strategies import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule, Strategy
from fiesta_allennlp.strategies.decision import Decision
from fiesta_allennlp.strategies.stopping_rules import (
    EarlyLooks,
    RuleOfThree,
    is_lead_confident,
    predictive_power,
    skewness_of_mean_difference,
)
from tests.strategies.histories import history

GLR = GeneralizedLikelihoodRatioStop()
RNG = np.random.default_rng(5)
SCORES = {"a": [0.62, 0.64, 0.63, 0.66, 0.61, 0.65], "b": [0.60, 0.61, 0.62, 0.62, 0.60, 0.62]}
DIFFERENCES = np.array(SCORES["a"]) - np.array(SCORES["b"])


def is_sure(rule: StoppingRule, now: History, decision: Decision, confidence: float) -> bool:
    return rule.missing_runs(now, decision, confidence) == ()


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


def test_bayesian_stops_at_the_confidence_and_early_looks_is_the_default() -> None:
    strategy = build(Strategy, {"type": "top_two", "belief": "student_t"})
    for rule in (build(StoppingRule, {}), getattr(strategy, "stop", None)):
        assert isinstance(rule, EarlyLooks)
    decision = Decision(best="a", prob_best={"a": 0.9, "b": 0.1}, prob_within_margin={"a": 0.95, "b": 0.4})
    assert is_sure(BayesianStop(), history(SCORES), decision, 0.95)
    assert not is_sure(BayesianStop(), history(SCORES), decision, 0.951)
    for rule in (BayesianStop(), EarlyLooks(), RuleOfThree(), GLR):
        assert not is_sure(rule, history({"a": [], "b": []}), Decision(best=None), 0.5)


def missing(
    scores: Mapping[str, Sequence[float]], *, scale: float = 0.0, confidence: float = 0.95, margin: float = 0.0
) -> "str | None":
    """The names of the missing runs, joined, where a is sure to be the best: it leads b by .01 and c by .2."""
    location = np.array([0.70, 0.69, 0.50])
    posterior = StudentTPosterior.simple(location, np.full(3, scale / np.sqrt(2)), np.ones(3))
    decision = Decision("a", margin=margin, prob_best={"a": 1.0}, prob_within_margin={"a": 1.0})
    names = RuleOfThree().missing_runs(history(scores), replace(decision, posterior=posterior), confidence)
    return None if names is None else "".join(names)


def equal(*counts: int) -> Mapping[str, Sequence[float]]:
    return {name: [0.5] * count for name, count in zip("abc", counts, strict=True)}


class TestRuleOfThree:
    def test_a_winner_and_its_nearest_rival_run_often_enough_to_show_frequent_failures(self) -> None:
        assert missing(equal(12, 12, 2)) == ""
        assert missing(equal(10, 10, 2)) == "abab"
        assert missing(equal(14, 10, 2)) == "bb"
        assert missing(equal(11, 12, 2)) == "a"
        needed = [RuleOfThree().least_runs(confidence) for confidence in (0.5, 0.8, 0.9, 0.95, 0.99)]
        assert needed == [3, 7, 10, 12, 19]

    @pytest.mark.parametrize(("failing", "sure"), [("a", False), ("b", True)])
    def test_both_run_again_where_failures_that_were_seen_make_the_lead_unsure(self, failing: str, sure: bool) -> None:
        scores = {name: [0.5, 0.51] * 7 for name in "abc"}
        assert missing(scores, scale=0.005) == "", "nothing is skewed"
        scores[failing] = [*scores[failing][:-1], 0.1]
        assert missing(scores, scale=0.005) == ("" if sure else "ab")
        assert missing({**scores, "b": [*scores["b"], 0.5]}, scale=0.005) == ("" if sure else "ab")
        assert missing({**scores, "a": [*scores["a"], 0.5]}, scale=0.005) == ("" if sure else "ba")
        assert missing(scores, scale=0.005, margin=0.03) == ""
        assert missing(scores, scale=0.005, confidence=0.75) == ""

    def test_halls_transformation_at_worked_numbers(self) -> None:
        # t = 2, g = -.3: 2 - .4 + .0267 - .05 = 1.5767, and Phi(1.5767) = .94256
        assert is_lead_confident(2.0, sd=1.0, skewness=-0.3, confidence=0.942)
        assert not is_lead_confident(2.0, sd=1.0, skewness=-0.3, confidence=0.943)
        assert is_lead_confident(0.1, sd=1.0, skewness=0.3, confidence=0.95), "the probability alone decides"
        assert is_lead_confident(2.0, sd=1.0, skewness=-1e-17, confidence=0.95)
        assert is_lead_confident(2.0, sd=1e-300, skewness=-1.0, confidence=0.95)
        skewed = [is_lead_confident(t, sd=1.0, skewness=-2.0, confidence=0.95) for t in (1.0, 2.0, 4.0)]
        assert skewed == [False, False, True]

    def test_the_skewness_is_that_of_the_mean_difference(self) -> None:
        failing, steady, split = RNG.exponential(size=400), RNG.normal(size=400), RNG.normal(0, 9, size=400)
        one, other = (dict(enumerate(values)) for values in (split - failing, split + steady))
        found = skewness_of_mean_difference(one, other)  # that of a sum falls as 1 / sqrt(n)
        assert found == pytest.approx(stats.skew(-failing - steady) / 20, rel=0.01)
        assert skewness_of_mean_difference(other, one) == pytest.approx(-found)
        apart = skewness_of_mean_difference(
            dict(enumerate(-failing)), {-1 - k: score for k, score in enumerate(steady)}
        )
        cumulants = stats.moment(-failing, 3) - stats.moment(steady, 3), np.var(failing) + np.var(steady)
        assert apart == pytest.approx(cumulants[0] / cumulants[1] ** 1.5 / 20, rel=0.01)
        assert (
            skewness_of_mean_difference({1: 0.5}, {2: 0.4})
            == skewness_of_mean_difference({1: 0.5, 2: 0.5}, {1: 0.4, 2: 0.4})
            == 0
        )


def early(
    counts: Sequence[int], probability: float, *, confidence: float = 0.95, **scores: Sequence[float]
) -> "str | None":
    """The names of the runs that `early_looks` misses, joined, where a is the best with this probability."""
    posterior = StudentTPosterior.simple(np.array([0.70, 0.69, 0.50]), np.full(3, 0.001), np.ones(3))
    decision = Decision("a", prob_best={"a": probability}, prob_within_margin={"a": probability})
    now = history({**equal(*counts), **scores})
    names = EarlyLooks().missing_runs(now, replace(decision, posterior=posterior), confidence)
    return None if names is None else "".join(names)


class TestEarlyLooks:
    @pytest.mark.parametrize(
        ("counts", "confidence", "least"),
        [
            ((3, 3, 3), 0.95, 0.9875),  # 1 - .05 x 3 / 12
            ((6, 8, 3), 0.95, 0.975),
            ((9, 6, 3), 0.95, 0.975),  # the one with fewer runs counts
            ((12, 12, 3), 0.95, 0.95),
            ((30, 30, 3), 0.95, 0.95),
            ((7, 7, 3), 0.8, 0.8),
        ],
    )
    def test_few_runs_need_a_higher_probability(self, counts: Sequence[int], confidence: float, least: float) -> None:
        assert early(counts, least + 1e-9, confidence=confidence) == ""
        assert early(counts, least - 1e-9, confidence=confidence) is None

    def test_a_collapsed_run_of_any_candidate_asks_for_the_rule_of_three(self) -> None:
        steady = [0.5, 0.51, 0.49, 0.5, 0.52]
        assert early((5, 5, 5), 0.999, c=steady) == ""
        assert early((5, 5, 5), 0.999, c=[*steady, 0.0]) == "ababababababab"
        assert early((12, 12, 5), 0.999, c=[*steady, 0.0]) == ""

    def test_the_starting_runs_are_all_that_a_clear_case_needs(self) -> None:
        strategy = build(Strategy, {"type": "top_two", "belief": "split_paired"})
        assert strategy.bounds(4) == (12, 200)

    def test_power_is_worked_by_hand_and_decides_when_to_give_up(self) -> None:
        # As many runs again halve the variance: z sqrt(v') / sqrt(v - v') = z, so both tails together have 2 (1 - .95).
        posterior = StudentTPosterior.simple(np.zeros(2), np.full(2, 0.01), np.full(2, 1e9))
        decision = Decision("a", prob_best={"a": 0.5}, prob_within_margin={"a": 0.5}, posterior=posterior)
        now = history({"a": [0.5] * 20, "b": [0.5] * 20})
        variances, num_runs = np.full(2, 0.01**2), np.array([20, 20])
        assert predictive_power(np.array(0.0), variances, num_runs, 0.95, 40) == pytest.approx(0.1, rel=1e-6)
        # 2 (1 - Phi(z sqrt(40 / room))) is .0575 at 30, so a winner costs 521 runs, and .0660 at 32, 485 runs
        assert [EarlyLooks().is_hopeless(now, decision, 0.95, room) for room in (30, 32)] == [True, False]
        # 2 (1 - Phi(z sqrt(80 / room))) is .3 where z sqrt(80 / room) is 1.0364, the normal quantile of .85
        later = history({"a": [0.5] * 40, "b": [0.5] * 40})
        assert [EarlyLooks().is_hopeless(later, decision, 0.95, room) for room in (200, 202)] == [True, False]
        assert not RuleOfThree().is_hopeless(now, decision, 0.95, 1)
        one_sd = np.array(0.01 * math.sqrt(2))
        # sqrt(v') = sqrt(v - v') = sd / sqrt(2): Phi(sqrt(2) - z) + Phi(-sqrt(2) - z)
        power = stats.norm.cdf(math.sqrt(2) - 1.6448536) + stats.norm.cdf(-math.sqrt(2) - 1.6448536)
        assert predictive_power(one_sd, variances, num_runs, 0.95, 40) == pytest.approx(power, rel=1e-6)

    def test_two_tied_candidates_end_before_their_limit_and_a_higher_one_continues(self) -> None:
        rng = np.random.default_rng(3)
        scores = rng.normal(0.5, 0.01, 60)
        now = history(
            {"a": scores[:30].tolist(), "b": (scores[30:] - scores[30:].mean() + scores[:30].mean()).tolist()}
        )
        ends = [
            build(Strategy, {"type": "top_two", "belief": "split_paired", "max_evaluations": limit})
            .recommend(now)
            .stopped_by
            for limit in (100, 400)
        ]
        assert ends == ["max_evaluations", None]


class TestGLR:
    def test_is_the_paired_test_at_level_delta_over_n(self) -> None:
        assert evidence_reached(history(SCORES)) == pytest.approx(max_log_evidence(DIFFERENCES))
        wider = evidence_reached(history({**SCORES, "c": [score - 0.1 for score in SCORES["a"]]}))
        assert wider == pytest.approx(max_log_evidence(DIFFERENCES))
        assert evidence_reached(history(SCORES), margin=0.02) == pytest.approx(max_log_evidence(DIFFERENCES + 0.02))
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
        assert evidence_reached(failed) == pytest.approx(max_log_evidence(np.delete(DIFFERENCES, 2)))
        waiting = next(e.request for e in now.evaluations if e.request.key == ("b", 4))
        pending = replace(without(now, "b", 4), pending=(waiting,))
        assert evidence_reached(pending) == pytest.approx(max_log_evidence(DIFFERENCES[:4]))

    def test_equal_scores_are_no_proof_and_equal_differences_are_in_time(self) -> None:
        assert evidence_reached(history({"a": [0.5] * 30, "b": [0.5] * 30})) == pytest.approx(0, abs=1e-9)
        apart_by = [history({"a": [0.5] * 30, "b": [0.4] * count}) for count in (0, 1, 3, 30)]
        assert [is_sure(GLR, now, Decision(best="a"), 0.95) for now in apart_by] == [False, False, False, True]

    def test_independent_splits_take_the_samples_apart(self) -> None:
        now = apart({"a": SCORES["a"], "b": SCORES["b"][:5]})
        statistic = unpaired_log_evidence(np.array(SCORES["a"]) + 0.01, np.array(SCORES["b"][:5]))
        error = (1 + statistic) * math.exp(-statistic)
        decision = Decision(best="a", margin=0.01)
        assert is_sure(GLR, now, decision, 1 - 2.001 * error)
        assert not is_sure(GLR, now, decision, 1 - 1.999 * error)
        assert not is_sure(GLR, apart({"a": SCORES["a"], "b": []}), decision, 0.01)
