"""Many selections at once, on scores that are drawn beforehand: the rules of a live one, by arrays."""

from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np

from fiesta_allennlp.probability.leads import Leads, compute_leads, prob_best
from fiesta_allennlp.probability.rules import (
    allowed_error,
    choose_evenly,
    choose_next,
    gives_up,
    nearest_rival,
    num_units_of_pair,
)

NUM_STARTS = 3
"""Units that every candidate begins with. Of two, a candidate with five times the noise of the others looks like them
one time in four, and may never run again."""

FIRST_WIDTH = 16


@dataclass(frozen=True)
class Rules:
    """What all selections of a batch have in common.

    Attributes:
        confidence: target confidence.
        limit: most runs of all candidates together, those before the batch included.
        margin: difference in units of the score within which candidates count as equally good.
        margin_share: a further margin, as a share of s0.
        num_starts: units that every candidate begins with.
        num_slots: runs that are made at once.
        choose: sampling rule, with the arguments of `choose_next`.
    """

    confidence: float
    limit: int
    margin: float = 0.0
    margin_share: float = 0.0
    num_starts: int = NUM_STARTS
    num_slots: int = 1
    choose: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray] = choose_next


@dataclass(frozen=True, eq=False)
class Look:
    """What selections conclude from their runs. Shape of each: `(num_selections,)`, except `tails`.

    `leader` is the candidate with the greatest mean, and `prob` its P(best within the margin). `is_sure` says that it
    is named, `is_over` that the selection makes no further run. `tails` are `Leads.tails`, shape `(num_selections,
    num_candidates)`.
    """

    leader: np.ndarray
    prob: np.ndarray
    is_sure: np.ndarray
    is_over: np.ndarray
    tails: np.ndarray


@dataclass(frozen=True, eq=False)
class Ends:
    """How selections ended. Shape of each: `(num_selections,)`, except `num_runs`, `(num_selections, num_candidates)`,
    the runs of each candidate in the batch. `leader` is -1, and `prob` 0, where candidates lack starting runs."""

    leader: np.ndarray
    prob: np.ndarray
    is_named: np.ndarray
    num_runs: np.ndarray
    num_rounds: np.ndarray


def margin_of(leads: Leads, rules: Rules) -> np.ndarray:
    """Return the margin in units of the score. Shape: `(num_selections,)`."""
    noise_sd = np.sqrt(np.where(leads.noise.varied, leads.noise.variance, 0.0))
    return np.asarray(rules.margin + rules.margin_share * noise_sd)


def look(numbers: np.ndarray, is_open: np.ndarray, room: np.ndarray, rules: Rules) -> Look:
    """Apply the stopping rule to selections whose candidates have their starting units.

    Args:
        numbers: shape `(num_selections, num_candidates, num_units)`.
        is_open: candidates that get further runs. Shape: `(num_selections, num_candidates)`.
        room: runs that the limit leaves, pending ones included. Shape: `(num_selections,)`.
    """
    leads = compute_leads(numbers)
    margin = margin_of(leads, rules)
    tails = leads.tails(margin)
    prob = prob_best(tails)[np.arange(len(tails)), leads.leader]
    rival = nearest_rival(leads, tails)
    is_sure = 1 - prob <= allowed_error(num_units_of_pair(leads, rival, is_open), rules.confidence)
    is_over = is_sure | (room < 1) | gives_up(leads, rival, margin, room, rules.confidence)
    return Look(leads.leader, prob, is_sure, is_over, tails)


class Batch:
    """Selections among equally many candidates, whose further runs have the given scores in this order.

    Args:
        scores: shape `(num_selections, num_candidates, num_scores)`, NaN after the last of a candidate.
        units: the unit of each, a number from 0. Same shape.
        rules: rules that all of them follow.
        is_open: candidates that get further runs; all by default. Shape: `(num_candidates,)`.
        start: number of runs that every candidate has on each unit before, and their mean; none by default. Shape of
            both: `(num_candidates, num_units)`.

    Raises:
        IndexError: by `run`, if a selection needs more scores of a candidate than there are.
    """

    def __init__(
        self,
        scores: np.ndarray,
        units: np.ndarray,
        rules: Rules,
        *,
        is_open: Optional[np.ndarray] = None,
        start: "Optional[tuple[np.ndarray, np.ndarray]]" = None,
    ) -> None:
        self._scores, self._units, self._rules = scores, units, rules
        shape = scores.shape[:2]
        self._is_open = np.broadcast_to(True if is_open is None else is_open, shape)
        num_runs_on, numbers = (np.zeros((shape[1], FIRST_WIDTH)),) * 2 if start is None else start
        self._num_runs_on = np.tile(num_runs_on.astype(int), (shape[0], 1, 1))
        self._numbers = np.where(self._num_runs_on > 0, numbers, np.nan)
        self._width = 0 if start is None else numbers.shape[1]
        self._num_runs_before = int(num_runs_on.sum())
        self._num_runs = np.zeros(shape, dtype=int)

    def run(self) -> Ends:
        """Make all selections to their ends."""
        number = len(self._scores)
        self._num_rounds = np.zeros(number, dtype=int)
        self._make_starting_runs()
        leader, prob, is_named = np.full(number, -1), np.zeros(number), np.zeros(number, dtype=bool)
        active = np.flatnonzero(~self._lacks_starts(np.arange(number)).any(axis=1))
        while len(active):
            state = look(self._numbers_of(active), self._is_open[active], self._room(active), self._rules)
            leader[active], prob[active], is_named[active] = state.leader, state.prob, state.is_sure
            active, goes_on = active[~state.is_over], ~state.is_over
            self._make_round(active, state.leader[goes_on], state.tails[goes_on])
        return Ends(leader, prob, is_named, self._num_runs, self._num_rounds)

    def _make_starting_runs(self) -> None:
        while True:
            active = np.arange(len(self._scores))
            active = active[self._lacks_starts(active).any(axis=1) & (self._room(active) > 0)]
            if not len(active):
                return
            num_started = self._num_units(active)
            for _ in range(self._rules.num_slots):
                is_lacking = self._is_open[active] & (num_started < self._rules.num_starts)
                goes_on = is_lacking.any(axis=1) & (self._room(active) > 0)
                chosen = choose_evenly(num_started, is_lacking)
                num_started[np.flatnonzero(goes_on), chosen[goes_on]] += 1
                self._add_runs(active[goes_on], chosen[goes_on])
            self._num_rounds[active] += 1

    def _make_round(self, active: np.ndarray, leader: np.ndarray, tails: np.ndarray) -> None:
        num_started = self._num_units(active)
        for _ in range(self._rules.num_slots):
            goes_on = self._room(active) > 0
            chosen = self._rules.choose(tails, leader, num_started, self._is_open[active])
            num_started[np.arange(len(active)), chosen] += 1
            self._add_runs(active[goes_on], chosen[goes_on])
        self._num_rounds[active] += 1

    def _numbers_of(self, active: np.ndarray) -> np.ndarray:
        return self._numbers[active, :, : self._width]

    def _num_units(self, active: np.ndarray) -> np.ndarray:
        return np.asarray((~np.isnan(self._numbers_of(active))).sum(axis=2))

    def _lacks_starts(self, active: np.ndarray) -> np.ndarray:
        return self._is_open[active] & (self._num_units(active) < self._rules.num_starts)

    def _room(self, active: np.ndarray) -> np.ndarray:
        return np.asarray(self._rules.limit - self._num_runs_before - self._num_runs[active].sum(axis=1))

    def _add_runs(self, active: np.ndarray, candidates: np.ndarray) -> None:
        """Run a candidate of each active selection once."""
        runs = active, candidates, self._num_runs[active, candidates]
        scores, units = self._scores[runs], self._units[runs]
        self._num_runs[active, candidates] += 1
        self._widen(int(units.max(initial=-1)) + 1)
        cells = active, candidates, units
        earlier = self._num_runs_on[cells]
        sums = np.where(earlier > 0, self._numbers[cells], 0.0) * earlier + scores
        self._numbers[cells] = sums / (earlier + 1)
        self._num_runs_on[cells] += 1

    def _widen(self, width: int) -> None:
        self._width = max(self._width, width)
        num_more = self._width - self._numbers.shape[2]
        if num_more > 0:
            padding = ((0, 0), (0, 0), (0, num_more + self._width))
            self._numbers = np.pad(self._numbers, padding, constant_values=np.nan)
            self._num_runs_on = np.pad(self._num_runs_on, padding)
