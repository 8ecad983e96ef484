from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fiesta_allennlp.choosing.beliefs import Belief, MeanPosterior
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.core.errors import ConfigError, ScoreError
from fiesta_allennlp.core.registry import build
from tests.choosing.histories import THREE_EACH, history


@pytest.fixture(params=Belief.available())
def belief(request: pytest.FixtureRequest) -> Belief:
    return build(Belief, {"type": request.param})


@pytest.mark.parametrize(
    ("belief", "name", "value"),
    [
        ("dirichlet_f_measure", "beta", 1.5),
        ("dirichlet_f_measure", "concentration", 0),
        ("dirichlet_f_measure", "prior_concentration", -1),
        ("dirichlet_f_measure", "num_samples", 1000),
        ("paired_measure", "beta", 1.5),
        ("paired_measure", "average", "micro"),
        ("student_t", "prior", "flat"),
    ],
)
def test_parameters_out_of_range_are_refused(belief: str, name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be .* '?{value}"):
        build(Belief, {"type": belief, name: value})


class TestEveryBelief:
    """What holds of every registered belief."""

    def test_probabilities_sum_to_1_and_equal_candidates_share_equally(self, belief: Belief) -> None:
        result = belief.posterior(history(THREE_EACH)).prob_best()
        assert (result >= 0).all() and result.argmin() == 2
        assert result.sum() == pytest.approx(1, abs=1e-12)
        same = history({"a": [0.5, 0.6, 0.7, 0.5], "b": [0.5, 0.6, 0.7, 0.5]})
        assert_allclose(belief.posterior(same).prob_best(), [0.5, 0.5], atol=1e-6)

    def test_draws_agree_with_the_probabilities(self, belief: Belief) -> None:
        posterior = belief.posterior(history(THREE_EACH))
        assert isinstance(posterior, MeanPosterior) == belief.has_draws
        if not isinstance(posterior, MeanPosterior):
            return
        rng, shape = np.random.default_rng(7), (20000, 3)
        if isinstance(posterior, FMeasurePosterior):
            columns = zip(posterior.distributions, rng.random(shape).T, strict=True)
            draws = np.column_stack([distribution.quantiles(column) for distribution, column in columns])
        else:
            draws = posterior.location + posterior.scale * rng.standard_t(posterior.df, shape)
        wins = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
        assert_allclose(wins, posterior.prob_best(), atol=0.015)

    def test_a_margin_only_adds_or_is_refused(self, belief: Belief) -> None:
        posterior = belief.posterior(history(THREE_EACH))
        if not belief.has_margin:
            with pytest.raises(ConfigError, match="margin must be 0"):
                posterior.prob_best(0.01)
            return
        assert (posterior.prob_best(0.01) >= posterior.prob_best() - 1e-9).all()
        assert_allclose(posterior.prob_best(1e6), 1, atol=1e-6)

    def test_what_a_choice_costs_is_at_least_its_distance_from_the_leader(self, belief: Belief) -> None:
        posterior = belief.posterior(history({name: [*scores, 0.5] for name, scores in THREE_EACH.items()}))
        costs = [posterior.expected_loss(taken) for taken in range(3)]
        if not belief.has_margin:
            assert costs == [None] * 3
            return
        lead = posterior.lead(2)
        assert lead is not None and costs[2] is not None and costs[posterior.leader] is not None
        assert costs[2] > lead.difference > 0
        assert 0 <= costs[posterior.leader] < costs[2]

    def test_the_lead_is_that_of_the_best_candidate(self, belief: Belief) -> None:
        posterior = belief.posterior(history(THREE_EACH))
        assert posterior.prob_best()[posterior.leader] == pytest.approx(posterior.prob_best().max())
        lead = posterior.lead(2)
        assert lead is not None and posterior.lead(posterior.leader) is None
        assert lead.t == pytest.approx(lead.difference / lead.standard_error)
        assert lead.prob_behind == pytest.approx(stats.t.sf(lead.t, lead.df))

    def test_too_few_evaluations_name_the_candidate(self, belief: Belief) -> None:
        few = {**THREE_EACH, "b": [0.5] * (belief.min_evaluations - 1)}
        with pytest.raises(ScoreError, match="'b'"):
            belief.posterior(history(few))

    def test_the_order_of_finishing_pending_and_withdrawn_runs_play_no_part(self, belief: Belief) -> None:
        now = history({name: THREE_EACH[name] for name in "ab"})
        more = history(THREE_EACH, pending=["a", "b", "c"], withdrawn=["c"])
        for same in (more, replace(now, evaluations=now.evaluations[::-1])):
            assert belief.posterior(same).prob_best().tolist() == belief.posterior(now).prob_best().tolist()
