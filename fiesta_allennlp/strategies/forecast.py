"""Forecasts the further runs of a selection from its posterior: cheap enough for a live display."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Optional, Sequence, Tuple

import numpy as np
from scipy.special import stdtr

from fiesta_allennlp.beliefs.base import Posterior
from fiesta_allennlp.core.records import History
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.decision import Decision
from fiesta_allennlp.strategies.stopping_rules import StoppingRule
from fiesta_allennlp.strategies.thompson import TopTwo, transportation_cost

MAX_RUNS = 10**9
"""More runs than any limit allows."""

NUM_DRAWS, MIN_DRAWS = 200, 20
"""The number of simulated selections: fewer among more than 100 candidates, because a draw takes a time for each."""

QUANTILES = (5, 50, 95)
"""Per cent of the draws below the three numbers of a forecast."""

RUNS_PER_STEP = 40
"""A simulated step makes one run for each RUNS_PER_STEP finished runs, and at least one."""


@dataclass(frozen=True)
class Forecast:
    """How many more runs a selection will make: the 5, 50 and 95% quantiles of simulated selections.

    `is_limited` is true if the upper end is the most runs that a limit allows. `prob_decided` is the share that named a
    winner by then. `seconds_per_run` counts all workers together and is 0 if it is unknown. `seconds_left` is the rest
    of `--max-hours`, if the forecast ends there.
    """

    low: int
    median: int
    high: int
    is_limited: bool
    prob_decided: float
    seconds_per_run: float = 0.0
    seconds_left: Optional[float] = None

    def at_least(self, num_runs: int) -> "Forecast":
        """Return the forecast of a selection that makes no fewer runs than these."""
        low, median, high = (max(number, num_runs) for number in (self.low, self.median, self.high))
        return replace(self, low=low, median=median, high=high)


@dataclass(frozen=True)
class TimeForecast:
    """What can be decided in `max_hours`, in which `num_runs` fit: `low`, `median` and `high` are the hours after which
    the selection ends, as in `Forecast`. They and `prob_decided` are None if there is no forecast.
    """

    max_hours: float
    num_runs: int
    low: Optional[float] = None
    median: Optional[float] = None
    high: Optional[float] = None
    prob_decided: Optional[float] = None


def count_runs(hours: float, seconds: float, *, workers: int) -> int:
    """Return how many runs of these seconds `workers` finish in some hours, at most `MAX_RUNS` each."""
    return workers * int(min(3600 * hours / seconds * (1 + 1e-12), MAX_RUNS))


@dataclass(frozen=True)
class StopAtConfidence:
    """When a selection ends: with a winner, or where the runs that are left are too few to go on for.

    `num_starts` are the runs that every candidate begins with, `least_runs` those that a winner and its nearest rival
    need, and `room` the runs that the limit still allows."""

    stop: StoppingRule
    confidence: float
    margin: float
    num_starts: int
    least_runs: int
    room: int


def forecast_selection(
    strategy: Strategy,
    history: History,
    decision: Decision,
    rng: np.random.Generator,
    *,
    max_runs: Optional[int] = None,
) -> Optional[Forecast]:
    """Forecast how many more runs a selection makes, pending ones included, and whether it is decided then.

    Returns `None` if the selection is over, if it has no posterior yet, or for another rule than a top-two rule that
    stops at a probability. `max_runs` is the most runs that there is time for.
    """
    is_known = isinstance(strategy, TopTwo) and strategy.stop.stops_at_probability
    if not isinstance(strategy, TopTwo) or not is_known or decision.posterior is None or decision.stopped_by:
        return None
    num_left = np.array([strategy.num_left(history, name) for name in history.active])
    num_pending = [history.num_pending(name) for name in history.active]
    room = min(strategy.room(history) + len(history.pending), num_left.sum() + sum(num_pending))
    forecast = make_forecast(
        decision.posterior,
        [history.num_finished(name) for name in history.active],
        rule=StopAtConfidence(
            strategy.stop,
            strategy.confidence,
            decision.margin,
            num_starts=strategy.num_starts,
            least_runs=strategy.stop.least_runs_after(history, strategy.confidence),
            room=int(room),
        ),
        max_runs=max_runs,
        rng=rng,
        is_open=(num_left + num_pending > 0).tolist(),
    )
    return forecast and forecast.at_least(len(decision.lacking))


def make_forecast(
    posterior: Posterior,
    num_finished: Sequence[int],
    *,
    rule: StopAtConfidence,
    max_runs: Optional[int] = None,
    rng: np.random.Generator,
    is_open: Sequence[bool],
) -> Optional[Forecast]:
    """Forecast how many more runs a top-two rule makes until it ends, and whether it has named a winner by then.

    Each draw of the true means and sds from the posterior is one simulated selection, which continues from the present
    runs. The noise variance of candidate i is drawn as s_i^2 d_i / chi^2(d_i), with d_i the degrees of freedom of its
    posterior and s_i^2 its present variance times the present runs. A further run moves the location m_i by its normal
    score, and s_i^2 by one more degree of freedom. As in `TopTwo`, the leader is drawn from P(best), the challenger has
    the least transportation cost, and the one with fewer runs is next. The selection ends as soon as the winner b, the
    candidate with the largest m, has

    - sum_j P(mu_j > mu_b + margin) within `StoppingRule.allowed_error`, with t distributions, and
    - as many runs as the rule asks of it and of its nearest rival,

    or as soon as the rule gives up.

    Args:
        num_finished: finished runs in the order of the posterior. Shape: `(num_candidates,)`.
        max_runs: the most runs that there is time for. The rule does not know of it.
        is_open: which candidates get further runs. Shape: `(num_candidates,)`.
    """
    if rule.room < 1 or not (posterior.scale > 0).all():
        return None
    counts = np.asarray(num_finished, dtype=float)
    simulated = _Simulation(posterior, counts, ~np.asarray(is_open), rule, rng)
    limit = rule.room if max_runs is None else min(rule.room, max_runs)
    num_added = np.full(len(simulated.rows), simulated.add_starting_runs())
    is_decided = np.zeros(len(num_added), dtype=bool)
    while True:
        state = simulated.look(rule.room - num_added)
        is_decided = state.is_decided & (num_added > 0) & (num_added <= limit)
        num_new = np.maximum(1, simulated.num_runs.sum(axis=1) // RUNS_PER_STEP).astype(int)
        num_new = np.where(state.is_over & (num_added > 0), 0, np.minimum(num_new, np.maximum(0, limit - num_added)))
        if not num_new.any():
            break
        simulated.add_runs(state.candidates, num_new)
        num_added += num_new
    low, median, high = np.percentile(num_added, QUANTILES, method="inverted_cdf")
    forecast = Forecast(int(low), int(median), int(high), bool(high >= limit), float(is_decided.mean()))
    return forecast.at_least(1)


class _Look(NamedTuple):
    """Each selection's next candidate, whether it is over, and whether with a winner. Shapes: `(num_draws,)`."""

    candidates: np.ndarray
    is_over: np.ndarray
    is_decided: np.ndarray


@dataclass(eq=False)
class _Simulation:
    """One simulated selection for each draw of the true means and sds.

    The arrays have the shape `(num_draws, num_candidates)`: `num_runs`, `location`, `df` and `squares`, whose ratio is
    the estimated variance of a run, and the truth, `means` and `noise_variance`. `counts` and `is_closed`, true for
    those that get no further runs, have the shape `(num_candidates,)`.
    """

    posterior: Posterior
    counts: np.ndarray
    is_closed: np.ndarray
    rule: StopAtConfidence
    rng: np.random.Generator

    def __post_init__(self) -> None:
        num_draws = max(MIN_DRAWS, min(NUM_DRAWS, 100 * NUM_DRAWS // len(self.counts)))
        self.rows = np.arange(num_draws)
        self.num_runs, self.location, self.df, run_variance = (
            np.tile(values, (num_draws, 1))
            for values in (
                self.counts,
                self.posterior.location,
                self.posterior.noise_df,
                self.posterior.scale**2 * self.counts,
            )
        )
        self.squares = run_variance * self.df
        self.noise_variance = self.squares / self.rng.chisquare(self.df)
        noise = self.rng.normal(size=self.location.shape)
        self.means = self.location + noise * np.sqrt(self.noise_variance / self.num_runs)

    def add_starting_runs(self) -> int:
        """Make the starting runs that open candidates lack, and return their number."""
        num_missing = np.where(self.is_closed, 0, np.maximum(0, self.rule.num_starts - self.counts)).astype(int)
        for candidate in np.flatnonzero(num_missing):
            self.add_runs(np.full(len(self.rows), candidate), np.full(len(self.rows), num_missing[candidate]))
        return int(num_missing.sum())

    def look(self, room: np.ndarray) -> _Look:
        """Ask the rule, with these runs left to each selection. Shape: `(num_draws,)`."""
        rule, winner = self.rule, self.location.argmax(axis=1)
        lead, variance = self._lead_and_variance(winner)
        lead = lead + rule.margin
        lead[self.rows, winner] = np.inf
        rival = lead.argmin(axis=1)
        pairs = self.rows[:, None], np.stack([winner, rival], axis=1)
        num_runs = self.num_runs[pairs]
        error = stdtr(self._degrees_of_freedom(winner), -lead / np.sqrt(variance)).sum(axis=1)
        is_sure = error <= rule.stop.allowed_error(num_runs.min(axis=1), rule.confidence)
        has_least_runs = (num_runs >= rule.least_runs) | self.is_closed[pairs[1]]
        is_decided = is_sure & has_least_runs.all(axis=1)
        gives_up = rule.stop.gives_up(
            lead[self.rows, rival], self.variance[pairs], num_runs, rule.confidence, np.maximum(room, 0)
        )
        sampled_leader, challenger = self._top_two()
        first, second = np.where(is_sure, winner, sampled_leader), np.where(is_sure, rival, challenger)
        takes_first = (self.num_runs[self.rows, first] <= self.num_runs[self.rows, second]) | self.is_closed[second]
        candidates = np.where(takes_first & ~self.is_closed[first], first, second)
        return _Look(candidates, is_decided | (gives_up & ~is_sure), is_decided)

    def add_runs(self, candidates: np.ndarray, num_new: np.ndarray) -> None:
        """Run each selection's candidate as often as `num_new` says. Shapes: `(num_draws,)` both."""
        cells = self.rows, candidates
        noise = self.rng.normal(size=len(num_new)) * np.sqrt(num_new * self.noise_variance[cells])
        score_sums = num_new * self.means[cells] + noise
        sums = self.num_runs[cells] * self.location[cells] + score_sums
        self.num_runs[cells] += num_new
        self.location[cells] = sums / self.num_runs[cells]
        self.squares[cells] += self.noise_variance[cells] * 2 * self.rng.standard_gamma(num_new / 2)
        self.df[cells] += num_new

    @property
    def variance(self) -> np.ndarray:
        """The estimated variance of each mean."""
        return self.squares / self.df / self.num_runs

    def _degrees_of_freedom(self, winner: np.ndarray) -> np.ndarray:
        """The degrees of freedom of each difference from the winner: the mean of both, weighted by their variances."""
        weights, products = self.variance, self.variance * self.df
        own_weight, own_product = (values[self.rows, winner][:, None] for values in (weights, products))
        return (products + own_product) / (weights + own_weight)

    def _top_two(self) -> Tuple[np.ndarray, np.ndarray]:
        """Leader and challenger as in `TopTwo`. Shapes: `(num_draws,)` both."""
        samples = self.location + self.rng.standard_t(self.df) * np.sqrt(self.variance)
        leader = samples.argmax(axis=1)
        lead, variance = self._lead_and_variance(leader)
        cost = transportation_cost(lead, variance, self.num_runs)
        cost[self.rows, leader] = np.inf
        return leader, cost.argmin(axis=1)

    def _lead_and_variance(self, leader: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        variance = self.variance
        lead = self.location[self.rows, leader][:, None] - self.location
        return lead, variance[self.rows, leader][:, None] + variance
