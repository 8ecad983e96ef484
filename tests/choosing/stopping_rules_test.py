import math
from dataclasses import replace
from typing import Mapping, Optional, Sequence, Tuple

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import t as student_t

from fiesta_allennlp.choosing import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule, Strategy
from fiesta_allennlp.choosing.beliefs import StudentTPosterior
from fiesta_allennlp.choosing.stopping_rules import (
    PRIOR_PRECISION,
    EarlyLooks,
    log_evidence,
    max_log_evidence,
    unpaired_log_evidence,
    unpaired_threshold,
)
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import make_request
from tests.choosing.histories import history

GLR = GeneralizedLikelihoodRatioStop()
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
    for rule in (BayesianStop(), EarlyLooks(), GLR):
        assert not is_sure(rule, history({"a": [], "b": []}), Decision(best=None), 0.5)


def early(num_units: float, probability: float, confidence: float) -> Optional[Tuple[str, ...]]:
    """The runs that `early_looks` misses, where a is the best with this probability."""
    decision = Decision("a", prob_within_margin={"a": probability}, num_units=num_units)
    return EarlyLooks().missing_runs(history(SCORES), decision, confidence)


class TestEarlyLooks:
    @pytest.mark.parametrize(
        ("num_units", "confidence", "least"),
        [
            (3, 0.95, 0.990625),  # 1 - .05 x 3 / 16
            (16, 0.95, 0.95),
            (math.inf, 0.95, 0.95),  # neither gets further runs
            (8, 0.8, 0.9),
        ],
    )
    def test_few_runs_need_a_higher_probability(self, num_units: float, confidence: float, least: float) -> None:
        assert early(num_units, least + 1e-9, confidence) == ()
        assert early(num_units, least - 1e-9, confidence) is None

    def test_the_units_are_those_of_the_winner_or_its_rival_that_still_run(self) -> None:
        strategy = build(Strategy, {"type": "top_two", "belief": "moderated_t"})
        scores = {"a": [0.60, 0.62, 0.61, 0.63], "b": [0.58, 0.59, 0.60], "c": [0.4, 0.5, 0.41, 0.42, 0.3]}
        now = history(scores)
        assert (strategy.recommend(now).rival, strategy.recommend(now).num_units) == ("b", 3)
        strategy.done = frozenset("b")
        assert strategy.recommend(now).num_units == 4
        strategy.done = frozenset("ab")
        assert strategy.recommend(now).num_units == math.inf
        on_one_split = replace(
            now, evaluations=tuple(replace(e, request=replace(e.request, split_seed=1)) for e in now.evaluations)
        )
        strategy.done = frozenset()
        assert strategy.recommend(on_one_split).num_units == 1

    def test_it_gives_up_where_a_winner_costs_too_many_runs(self) -> None:
        # As many runs again halve the variance: z sqrt(v') / sqrt(v - v') = z, so both tails together have 2 (1 - .95).
        posterior = StudentTPosterior(np.zeros(2), np.full(2, 0.01), np.full(2, 1e9), noise_variance=0.002)
        decision = Decision("a", prob_best={"a": 0.5, "b": 0.5}, rival="b", posterior=posterior)
        now = history({"a": [0.5] * 20, "b": [0.5] * 20})
        # 2 (1 - Phi(z sqrt(40 / room))) is .0575 at 30, so a winner costs 521 runs, and .0660 at 32, 485 runs
        assert [EarlyLooks().is_hopeless(now, decision, 0.95, room) for room in (30, 32)] == [True, False]
        # 2 (1 - Phi(z sqrt(80 / room))) is .35 where z sqrt(80 / room) is .9346, the normal quantile of .825
        later = history({"a": [0.5] * 40, "b": [0.5] * 40})
        assert [EarlyLooks().is_hopeless(later, decision, 0.95, room) for room in (246, 248)] == [True, False]
        assert not BayesianStop().is_hopeless(now, decision, 0.95, 1)


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


g = PRIOR_PRECISION


def statistics(differences: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(float(len(differences))), np.sum(differences), np.sum(differences**2)


def integrated(differences: np.ndarray) -> float:
    """log E_m by integration over effect size and 1 / sigma."""
    count = len(differences)

    def joint(effect: float, inverse: float) -> float:
        prior = 2 * math.sqrt(g / (2 * math.pi)) * math.exp(-g * effect**2 / 2)
        return prior * inverse ** (count - 1) * math.exp(-np.sum((differences * inverse - effect) ** 2) / 2)

    def null(inverse: float) -> float:
        return inverse ** (count - 1) * math.exp(-np.sum((differences * inverse) ** 2) / 2)

    top = 30 / math.sqrt(np.sum(differences**2))
    above, _ = dblquad(joint, 0, top, 0, 15, epsabs=1e-10)
    below, _ = quad(null, 0, top)
    return math.log(above / below)


@pytest.mark.parametrize("differences", [[0.7], [-0.7], [1.0, -0.4, 0.9, 0.6], [-0.3, -1.0, 0.2]])
def test_agrees_with_integration(differences: "list[float]") -> None:
    values = np.array(differences)
    assert float(log_evidence(*statistics(values))) == pytest.approx(integrated(values), abs=1e-5)


def test_equal_differences_are_evidence_that_grows_and_stays_finite() -> None:
    # S = m and T = m: A = m g / (m + g).
    m = 6
    expected = 0.5 * (m - 1) * math.log((m + g) / g) + math.log(2 * student_t.cdf(m / math.sqrt(g), m))
    assert float(log_evidence(*statistics(np.full(m, 0.25)))) == pytest.approx(expected)
    assert max_log_evidence(np.zeros(m)) == 0.0
    assert max_log_evidence(np.array([])) == 0.0


def test_equal_means_are_seldom_told_apart_at_any_time() -> None:
    values = np.random.default_rng(11).standard_normal((2000, 200))
    evidence = log_evidence(np.arange(1.0, 201), np.cumsum(values, axis=1), np.cumsum(values**2, axis=1))
    for error in (0.05, 0.2):
        share = np.mean(evidence.max(axis=1) >= -math.log(error))
        assert 0 < share <= error + 3 * math.sqrt(error * (1 - error) / 2000)


class TestApart:
    def test_equal_means_are_seldom_told_apart_at_any_time(self) -> None:
        assert (1 + unpaired_threshold(0.01)) * math.exp(-unpaired_threshold(0.01)) == pytest.approx(0.01)
        assert unpaired_log_evidence(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0.0, "nothing tells the lower above"
        samples = np.random.default_rng(14).standard_normal((150, 2, 120))
        sizes = np.unique(np.geomspace(3, 120, 15).astype(int))
        highest = [max(unpaired_log_evidence(a[:size], b[:size]) for size in sizes) for a, b in samples]
        assert np.mean(np.array(highest) >= unpaired_threshold(0.2)) <= 0.2
