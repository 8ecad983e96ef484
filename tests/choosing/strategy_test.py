"""Margins in units of the run-to-run sd, what is minimised, and what a class of a user's own returns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fiesta_allennlp import next_runs, plan, replay
from fiesta_allennlp.choosing import StoppingRule, Strategy
from fiesta_allennlp.choosing.beliefs import Belief, StudentT
from fiesta_allennlp.choosing.sampling_rules import PosteriorSampling
from fiesta_allennlp.choosing.strategy import Margin
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.selecting.results.facts import expected_loss
from tests.choosing.histories import THREE_EACH, history
from tests.choosing.simulation import Simulation, built
from tests.score_tables import TDSA_8, split_rows

# squares .0008, .0026 and .0014 of 2 degrees of freedom each: the pooled sd is sqrt(.0048 / 6)
POOLED = 0.0008**0.5


def test_texts() -> None:
    assert Margin.parse(0.01) == Margin.parse("0.01") == Margin(0.01)
    assert Margin.parse(".25sd") == Margin.parse(" 0.25 sd ") == Margin(0.25, is_in_sds=True)
    assert Margin.parse("0.25sd").to_score(0.016) == 0.004 and Margin(0.01).to_score(7.0) == 0.01
    assert [Margin.parse(typed).text for typed in (0.01, ".25sd")] == ["0.01", "0.25sd"]
    for wrong in ("sd", "a sd", "-1sd", "0.25sd=0.0037", "nan", "infsd", [1]):
        with pytest.raises(ConfigError, match="margin must be"):
            Margin.parse(wrong)  # type: ignore[arg-type]


def test_a_share_follows_the_noise_of_all_runs() -> None:
    strategy = built("top_two", margin="0.5sd")
    waiting = history({**THREE_EACH, "c": THREE_EACH["c"][:2]}, pending=["c"])
    assert strategy.recommend(waiting).margin == 0.0
    expected = pytest.approx(POOLED / 2)
    assert strategy.recommend(history(THREE_EACH)).margin == expected
    assert strategy.recommend(replace(history(THREE_EACH), sign=-1)).margin == expected
    # 0.62 adds nothing to the squares of a: .0048 of 7 degrees of freedom
    assert strategy.recommend(history({**THREE_EACH, "a": [*THREE_EACH["a"], 0.62]})).margin == pytest.approx(
        (0.0048 / 7) ** 0.5 / 2
    )
    noisier = {**THREE_EACH, "d": [0.1, 0.5, 0.9]}
    assert strategy.recommend(history(noisier)).margin > 0.05
    assert strategy.recommend(history(noisier, withdrawn=["d"])).margin == expected


def test_refused_where_there_is_no_such_sd() -> None:
    with pytest.raises(ConfigError, match="models logits"):
        built("top_two", belief={"type": "logit_student_t"}, margin="0.25sd").check(["a", "b"])
    with pytest.raises(ConfigError, match="has no run-to-run sd"):
        built("top_two", belief={"type": "dirichlet_f_measure"}, margin="0.25sd").check(["a", "b"])


def test_tables_and_simulations_take_a_share() -> None:
    found = next_runs(split_rows(THREE_EACH), margin="0.5sd", belief="student_t")
    assert found.decision.margin == pytest.approx(POOLED / 2)
    planned = plan(gap=0.03, sd=0.03, candidates=2, margin="0.25sd", repetitions=2, seed=1)
    assert all(margin > 0.25 * 0.03 for margin in planned.margins)
    assert "margin 0.25sd" in str(planned)
    # a margin of five sds is as large as the lead of the best: any of the first two is right
    tie = replay(TDSA_8, margin="5sd", repetitions=3, seed=1)
    assert tie.default.correct == 1


def test_what_choosing_now_costs_is_unknown_before_the_starting_runs_and_for_logits() -> None:
    now, rule = history(THREE_EACH), built("top_two", belief={"type": "moderated_t"})
    decision = rule.recommend(now)
    assert expected_loss(now, decision) == decision.posterior.expected_loss(decision.posterior.leader)
    unfinished = history({**THREE_EACH, "c": []})
    assert expected_loss(unfinished, rule.recommend(unfinished)) is None
    assert expected_loss(now, built("top_two", belief={"type": "logit_student_t"}).recommend(now)) is None


ERRORS = {"weak": 3.45, "best": 3.35, "fair": 3.40}
LIMITS = {"budget": 24, "max_evaluations": 40, "confidence": 0.9}


@dataclass
class Signed(Simulation):
    """Errors, or their negatives: `-sign` times an error comes out."""

    def score(self, done: Request) -> float:
        return -self.sign * super().score(done)


@pytest.mark.parametrize("name", Strategy.available())
@pytest.mark.parametrize("stop", ["bayesian", "glr", "early_looks"])
def test_every_strategy_chooses_as_by_negated_scores(name: str, stop: str) -> None:
    ends = []
    for sign in (-1, 1):
        strategy = built(name, belief="moderated_t", stop=stop, **LIMITS)
        decision, end = Signed(strategy, ERRORS, num_workers=2, shuffled=True, seed=3, sign=sign).run()
        ends.append((decision, [(e.request, -sign * e.score) for e in end.evaluations]))
        assert decision.best == "best"
    assert ends[0] == ends[1]


def test_the_logit_of_an_error_rate_is_minus_that_of_what_is_right() -> None:
    errors = {key: [1 - score for score in scores] for key, scores in THREE_EACH.items()}
    belief = Belief.by_name("logit_student_t")()
    right = belief.posterior(history(THREE_EACH)).prob_best()
    assert belief.posterior(replace(history(errors), sign=-1)).prob_best() == pytest.approx(right, abs=1e-9)
    with pytest.raises(ScoreError, match="'a' has 35.5"):
        belief.posterior(replace(history({**errors, "a": [35.5, 34.0, 36.0]}), sign=-1))


def proposal(*, missing: Any = None, chosen: Any = (), posterior: Any = None) -> Any:
    class Rule(StoppingRule):
        def missing_runs(self, *_: Any) -> Any:
            return missing

    class Sampling(PosteriorSampling):
        def choose(self, *_: Any) -> Any:
            return chosen

    class Known(StudentT):
        def posterior(self, now: Any) -> Any:
            return posterior or super().posterior(now)

    return Sampling(belief=Known(), stop=Rule()).propose(history(THREE_EACH), 2, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"missing": ["a", "x"]}, "Rule.missing_runs must .*a, b, c, .*'x'"),
        ({"chosen": "a"}, 'Sampling.choose must .*list.*"a"'),
        ({"posterior": [0.5]}, r"Known.posterior must .*Posterior.*\[0.5\]"),
    ],
)
def test_a_wrong_value_is_named(returned: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        proposal(**returned)
