"""The procedures that `real_problems.py` compares."""

from typing import Any, List, Mapping

import numpy as np
from baselines import BASELINES

from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.strategy import Strategy, fill_evenly
from fiesta_allennlp.choosing.thompson import PosteriorSampling
from fiesta_allennlp.core.records import History

REST_BELOW = 0.005
"""P(best) below which a candidate of `RestingLoop` gets no runs."""


@Strategy.register("resting_loop")
class RestingLoop(PosteriorSampling):
    """Runs candidates in turn, except for those with a P(best) below 0.005, as long as it is that low.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        awake = [name for name, prob in decision.prob_best.items() if prob >= REST_BELOW]
        num_started = history.started_by(awake)
        return fill_evenly(num_started, target_runs=min(num_started.values()) + slots, slots=slots)


DEFAULT, PLAIN_LOOP, RESTING_LOOP, PAPER_PROCEDURE = "default", "plain loop", "resting loop", "the paper's procedure"
GLR, AT_LEAST_12 = "glr", "at least 12 runs"
SELECTIONS: Mapping[str, Mapping[str, Any]] = {
    PLAIN_LOOP: {"strategy": "non_adaptive_fc"},
    RESTING_LOOP: {"strategy": "resting_loop"},
    PAPER_PROCEDURE: {"strategy": "ttts", "belief": "student_t", "splits": "independent", "stop": "bayesian"},
    DEFAULT: {},
    AT_LEAST_12: {"min_runs": 12},
    GLR: {"stop": "glr"},
    "margin of 0.25 sd": {"margin": "0.25sd"},
}
"""Settings of the procedures that select. Both loops have the default's posterior and stopping rule."""

PROCEDURES = (*BASELINES, *SELECTIONS)
