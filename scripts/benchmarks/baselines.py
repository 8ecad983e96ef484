"""What people do without a posterior: runs of a number that is fixed beforehand, halving, and races of t-tests.

Every procedure chooses from the same scores, of shape `(num_candidates, num_selections, num_runs)`, and uses as many of
the first runs of a candidate as it needs. Higher scores are better.
"""

from dataclasses import dataclass
from functools import partial
from typing import Callable, Mapping

import numpy as np
from scipy.special import stdtrit

MAX_RUNS = 50
"""Runs of each candidate that a procedure can use: the default limit of a selection."""

TEST_RUNS = 12
STARTS = 3
FINAL_RUNS = 20
LOOKS = (3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50)
"""Runs of each remaining candidate at which a race looks, each about a quarter more than the last."""

ROUNDED_DIGITS = 9
"""Means in run-to-run sds that agree in these digits are equal."""


@dataclass(frozen=True)
class Draws:
    """The scores of selections of one problem. `scores` has shape `(num_candidates, num_selections, num_runs)`, in
    run-to-run sds. If they are `paired`, score k of every candidate is of the same split. `order` ranks the candidates
    of each selection among equal means, with shape `(num_candidates, num_selections)`."""

    scores: np.ndarray
    paired: bool
    order: np.ndarray

    @property
    def selections(self) -> np.ndarray:
        return np.arange(self.scores.shape[1])

    def leaders(self, num_runs: int, remaining: np.ndarray) -> np.ndarray:
        """Return the remaining candidate with the highest mean. Shape: `(num_selections,)`."""
        means = np.round(self.scores[:, :, :num_runs].mean(axis=2), ROUNDED_DIGITS)
        highest = np.where(remaining, means, -np.inf).max(axis=0)
        is_highest = remaining & (means == highest)
        return np.where(is_highest, self.order, len(means)).argmin(axis=0)

    def beaten(self, num_runs: int, leaders: np.ndarray, level: float) -> np.ndarray:
        """Return whether a one-sided t-test at this level puts the leader above each candidate: paired, or Welch's
        without pairs. Nothing corrects for the number of rivals. Shape: `(num_candidates, num_selections)`."""
        scores = self.scores[:, :, :num_runs]
        best = scores[leaders, self.selections]
        lead = best.mean(axis=1) - scores.mean(axis=2)
        if self.paired:
            variance, df = (best - scores).var(axis=2, ddof=1) / num_runs, np.array(num_runs - 1.0)
        else:
            best_var, rival_var = best.var(axis=1, ddof=1) / num_runs, scores.var(axis=2, ddof=1) / num_runs
            variance = best_var + rival_var
            df = (num_runs - 1) * np.maximum(variance, 1e-300) ** 2 / np.maximum(best_var**2 + rival_var**2, 1e-300)
        is_beaten = lead > stdtrit(np.maximum(df, 1), 1 - level) * np.sqrt(variance) + 10.0**-ROUNDED_DIGITS
        is_beaten[leaders, self.selections] = False
        return np.asarray(is_beaten)


@dataclass(frozen=True)
class Choices:
    """The candidate that each selection chose, whether it named it as the winner, and its number of runs.
    Shape: `(num_selections,)` each."""

    leaders: np.ndarray
    are_named: np.ndarray
    num_runs: np.ndarray


def run_equally(draws: Draws, num_runs: int) -> Choices:
    """Name the candidate with the highest mean of equally many runs."""
    num_candidates, num_selections, _ = draws.scores.shape
    leaders = draws.leaders(num_runs, np.ones((num_candidates, num_selections), dtype=bool))
    are_named = np.ones(num_selections, dtype=bool)
    return Choices(leaders, are_named, np.full(num_selections, num_runs * num_candidates))


def pass_tests(draws: Draws, level: float) -> Choices:
    """Name the candidate with the highest mean if it passes a test against every rival."""
    choices = run_equally(draws, TEST_RUNS)
    num_beaten = draws.beaten(TEST_RUNS, choices.leaders, level).sum(axis=0)
    return Choices(choices.leaders, num_beaten == len(draws.scores) - 1, choices.num_runs)


def halve(draws: Draws, level: float) -> Choices:
    """Drop the lower half after each three runs until two candidates are left, and name the better one if it passes a
    test after 20 runs."""
    num_runs = STARTS
    remaining = np.ones(draws.scores.shape[:2], dtype=bool)
    total_runs = np.zeros(len(draws.selections), dtype=int)
    while (size := int(remaining[:, 0].sum())) > 2:
        total_runs += STARTS * size
        kept = np.zeros_like(remaining)
        for _ in range(max(2, size // 2)):
            kept[draws.leaders(num_runs, remaining & ~kept), draws.selections] = True
        remaining = kept
        num_runs += STARTS
    total_runs += 2 * (FINAL_RUNS - num_runs + STARTS)
    leaders = draws.leaders(FINAL_RUNS, remaining)
    return Choices(leaders, (draws.beaten(FINAL_RUNS, leaders, level) & remaining).any(axis=0), total_runs)


def race(draws: Draws, level: float) -> Choices:
    """Run all remaining candidates equally often, and drop at each look those that lose a test against the leader. Name
    the last one."""
    remaining = np.ones(draws.scores.shape[:2], dtype=bool)
    total_runs, num_runs_before = np.zeros(len(draws.selections), dtype=int), 0
    leaders = np.zeros(len(draws.selections), dtype=int)
    for num_runs in LOOKS:
        is_open = remaining.sum(axis=0) > 1
        total_runs += np.where(is_open, remaining.sum(axis=0) * (num_runs - num_runs_before), 0)
        leaders = np.where(is_open, draws.leaders(num_runs, remaining), leaders)
        remaining &= ~(draws.beaten(num_runs, leaders, level) & is_open)
        num_runs_before = num_runs
    return Choices(leaders, remaining.sum(axis=0) == 1, total_runs)


BASELINES: Mapping[str, Callable[[Draws], Choices]] = {
    **{f"{num_runs} runs each": partial(run_equally, num_runs=num_runs) for num_runs in (5, 10, 20)},
    **{f"t-tests of 12 runs each at {level:.2f}": partial(pass_tests, level=level) for level in (0.05, 0.1, 0.2)},
    "halving": partial(halve, level=0.05),
    "race at 0.02 a look": partial(race, level=0.02),
    "race at 0.05 in all": partial(race, level=0.05 / len(LOOKS)),
}
