"""The procedures that `real_problems.py` compares: a number of runs that is fixed beforehand, and selections."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, List, Mapping

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.choosing.sampling_rules import PosteriorSampling
from fiesta_allennlp.choosing.strategy import Decision, Strategy, fill_evenly
from fiesta_allennlp.core.records import History

TEST_RUNS = 12
ROUNDED_DIGITS = 9
"""Means in run-to-run sds that agree in these digits are equal."""

REST_BELOW = 0.005
"""P(best) below which a candidate of `RestingLoop` gets no runs."""


@dataclass(frozen=True)
class Draws:
    """The scores of selections of one problem. `scores` has shape `(num_candidates, num_selections, num_runs)`, in
    run-to-run sds. Higher ones are better. If they are `paired`, score k of every candidate is of the same split.
    `order` ranks the candidates of each selection among equal means, with shape `(num_candidates, num_selections)`."""

    scores: np.ndarray
    paired: bool
    order: np.ndarray

    def leaders(self, num_runs: int) -> np.ndarray:
        """Return the candidate with the highest mean of the first runs. Shape: `(num_selections,)`."""
        means = np.round(self.scores[:, :, :num_runs].mean(axis=2), ROUNDED_DIGITS)
        return np.where(means == means.max(axis=0), self.order, len(means)).argmin(axis=0)

    def beaten(self, num_runs: int, leaders: np.ndarray, level: float) -> np.ndarray:
        """Return whether a one-sided t-test at this level puts the leader above each candidate: paired, or Welch's
        without pairs. Nothing corrects for the number of rivals. Shape: `(num_candidates, num_selections)`."""
        scores = self.scores[:, :, :num_runs]
        best = scores[leaders, np.arange(len(leaders))]
        lead = best.mean(axis=1) - scores.mean(axis=2)
        if self.paired:
            variance, df = (best - scores).var(axis=2, ddof=1) / num_runs, np.array(num_runs - 1.0)
        else:
            best_var, rival_var = best.var(axis=1, ddof=1) / num_runs, scores.var(axis=2, ddof=1) / num_runs
            variance = best_var + rival_var
            df = (num_runs - 1) * np.maximum(variance, 1e-300) ** 2 / np.maximum(best_var**2 + rival_var**2, 1e-300)
        return np.asarray(lead > stdtrit(np.maximum(df, 1), 1 - level) * np.sqrt(variance) + 10.0**-ROUNDED_DIGITS)


@dataclass(frozen=True)
class Choices:
    """The candidate that each selection chose, and whether it named it as the winner, after as many runs of each.
    Shape: `(num_selections,)` of both."""

    leaders: np.ndarray
    are_named: np.ndarray
    runs_each: int


def run_equally(draws: Draws, num_runs: int) -> Choices:
    """Name the candidate with the highest mean of equally many runs."""
    leaders = draws.leaders(num_runs)
    return Choices(leaders, np.ones(len(leaders), dtype=bool), num_runs)


def pass_tests(draws: Draws, level: float) -> Choices:
    """Name the candidate with the highest mean if it passes a test against every rival."""
    leaders = draws.leaders(TEST_RUNS)
    num_beaten = draws.beaten(TEST_RUNS, leaders, level).sum(axis=0)
    return Choices(leaders, num_beaten == len(draws.scores) - 1, TEST_RUNS)


BASELINES: Mapping[str, Callable[[Draws], Choices]] = {
    "10 runs each": partial(run_equally, num_runs=10),
    "t-tests of 12 runs each at 0.05": partial(pass_tests, level=0.05),
}
"""Without a posterior."""


@Strategy.register("resting_loop")
class RestingLoop(PosteriorSampling):
    """Runs candidates in turn, except for those with a P(best) below 0.005, as long as it is that low.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        awake = [name for name, prob in decision.prob_best.items() if prob >= REST_BELOW]
        num_started = history.started_by(awake)
        return fill_evenly(num_started, target_runs=min(num_started.values()) + slots, slots=slots)


DEFAULT, RESTING_LOOP, PAPER_PROCEDURE = "default", "resting loop", "the paper's procedure"
GLR, AT_LEAST_12 = "glr", "at least 12 runs"
SELECTIONS: Mapping[str, Mapping[str, Any]] = {
    RESTING_LOOP: {"strategy": "resting_loop"},
    PAPER_PROCEDURE: {"strategy": "ttts", "belief": "student_t", "splits": "independent", "stop": "bayesian"},
    DEFAULT: {},
    AT_LEAST_12: {"min_runs": 12},
    GLR: {"stop": "glr"},
}
"""Settings of the procedures that select. The loop has the default's posterior and stopping rule."""

PROCEDURES = (*BASELINES, *SELECTIONS)
