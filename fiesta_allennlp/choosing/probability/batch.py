"""Who runs next and when to stop, in many selections at once, and such selections on scores that are drawn beforehand.
Candidates are the last axis, unless a shape says otherwise."""

import math
from dataclasses import dataclass, fields, replace
from typing import Callable, Optional, Tuple

import numpy as np
from scipy.special import ndtr, ndtri

from fiesta_allennlp.choosing.probability.leads import Leads, TaskModel, choose_task, count_independent_units
from fiesta_allennlp.choosing.probability.prob_best import prob_best_from_tails

NUM_STARTS = 3
"""Units that every candidate begins with. Of two, a candidate with five times the noise of the others looks like them
one time in four, and may never run again."""

FLOOR_UNITS = 16
"""Units of the winner and its nearest rival from which on the target confidence is enough."""

MIN_POWER, MAX_RUNS_PER_WINNER = 0.35, 500
"""A selection gives up where the runs that are left decide with a probability below the first number, and each winner
then costs more runs than the second: the runs that are left divided by that probability."""

FIRST_WIDTH = 16

ChooseAtOnce = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""The next candidate of many selections, with the arguments of `choose_next`."""


def nearest_rival(leads: Leads, tails: np.ndarray) -> np.ndarray:
    """Return the rival with the greatest probability of being better. Shape: `(num_selections,)`."""
    return np.asarray(np.where(leads.is_leader, -1.0, tails).argmax(axis=1))


def choose_next(tails: np.ndarray, leader: np.ndarray, num_started: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return the leader or its challenger, whichever has fewer units.

    The challenger is the rival with the greatest p_j / n_j, among those that get further runs. Shape:
    `(num_selections,)`.

    Args:
        tails: p, from `Leads.tails`. Shape: `(num_selections, num_candidates)`.
        leader: shape `(num_selections,)`.
        num_started: n, units with finished and pending runs, at least 1. Shape: that of `tails`.
        is_open: candidates that get further runs, at least one in each selection. Shape: that of `tails`.
    """
    rows = np.arange(len(leader))
    urgency = np.where(is_open, tails / num_started, -1.0)
    urgency[rows, leader] = -1.0
    return choose_of_pair(leader, urgency.argmax(axis=1), num_started, is_open)


def choose_of_pair(
    leader: np.ndarray, challenger: np.ndarray, num_started: np.ndarray, is_open: np.ndarray
) -> np.ndarray:
    """Return the one of two candidates with fewer units, the leader among equals, of those that get further runs.
    Shape: `(num_selections,)`."""
    rows = np.arange(len(leader))
    takes_leader = (num_started[rows, leader] <= num_started[rows, challenger]) & is_open[rows, leader]
    return np.where(takes_leader | ~is_open[rows, challenger], leader, challenger)


def choose_in_turn(tails: np.ndarray, leader: np.ndarray, num_started: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return the open candidate with the fewest units, then the first, with the arguments of `choose_next`."""
    return np.asarray(np.where(is_open, num_started, np.inf).argmin(axis=1))


def num_units_of_pair(leads: Leads, rival: np.ndarray, num_units: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return the units of the leader or its nearest rival, whichever has fewer, among those that get further runs. If
    neither does, there is nothing to wait for. Over several tasks, see `leads.count_independent_units`. Shape:
    `(num_selections,)`.

    Args:
        num_units: units of each candidate on each task. Shape: `(num_tasks, num_selections, num_candidates)`.
        is_open: shape `(num_selections, num_candidates)`.
    """
    rows, pair = np.arange(len(rival)), np.stack([leads.leader, rival])
    units = np.where(is_open, num_units, np.inf)[:, rows, pair].min(axis=1)
    return count_independent_units(leads.task_variances[:, rows, rival], units)


def allowed_error(num_units: np.ndarray, confidence: float) -> np.ndarray:
    """Return the greatest 1 - P(winner) at which a selection stops, after so many units of the winner or its rival::

    (1 - confidence) min(1, n / 16)
    """
    return (1 - confidence) * np.minimum(1, num_units / FLOOR_UNITS)


def predictive_power(
    lead: np.ndarray, variance: np.ndarray, num_units: np.ndarray, room: np.ndarray, confidence: float
) -> np.ndarray:
    """Return the probability that `room` more runs put a winner and its nearest rival apart with this confidence.

    The lead d has variance v. With n units of both together, and z the normal quantile of the confidence, `room` more
    leave v' = v n / (n + room). By then the lead has moved by a normal variable of variance v - v', so that it is::

        Phi((d - z sqrt(v')) / sqrt(v - v')) + Phi((-d - z sqrt(v')) / sqrt(v - v'))

    Other candidates only make it smaller. It is 1 where the noise is not known. Shape of all: `(num_selections,)`.
    """
    later_variance = variance * num_units / (num_units + room)
    moved_variance = variance - later_variance
    is_known = moved_variance > 0
    scale, required = np.sqrt(np.where(is_known, moved_variance, 1.0)), ndtri(confidence) * np.sqrt(later_variance)
    power = ndtr((lead - required) / scale) + ndtr((-lead - required) / scale)
    return np.where(is_known, power, room > 0)


def gives_up(
    leads: Leads, rival: np.ndarray, num_units: np.ndarray, *, margin: np.ndarray, room: np.ndarray, confidence: float
) -> np.ndarray:
    """Return whether the runs that are left are too few to go on for: where nothing has varied in so many units that
    the target would be enough, no number of runs is. Shape of all others: `(num_selections,)`.

    Args:
        leads: leads of the winners.
        rival: the nearest rival of each.
        num_units: units of each candidate. Shape: `(num_selections, num_candidates)`.
        margin: in units of the numbers.
        room: runs that are left.
    """
    rows = np.arange(len(rival))
    is_constant = ~leads.noise.varied & (num_units.min(axis=1) >= FLOOR_UNITS)
    units_of_both = num_units[rows, leads.leader] + num_units[rows, rival]
    lead, variance = leads.difference[rows, rival] + margin, leads.variance[rows, rival]
    power = predictive_power(lead, variance, units_of_both, room, confidence)
    return np.asarray((power < np.minimum(MIN_POWER, room / MAX_RUNS_PER_WINNER)) | is_constant)


@dataclass(frozen=True)
class Rules:
    """What all selections of a batch have in common.

    Attributes:
        confidence: target confidence.
        limit: most runs of all candidates together, those before the batch included.
        margin: difference in units of the score within which candidates count as equally good, for all selections or
            for each.
        margin_share: a further margin, as a share of s0. Shape: that of `margin`.
        num_starts: units that every candidate begins with.
        min_runs: units that the winner and its nearest rival need.
        num_slots: runs that are made at once.
        max_runs: most further runs; the rules do not know of it.
        choose: sampling rule, with the arguments of `choose_next`.
        runs_missing: whether only the winner and its rival run while `min_runs` are missing.
        allowed_error: stopping rule, with the arguments of `allowed_error`.
        gives_up: whether a selection ends where the runs that are left are too few to go on for.
        num_tasks: tasks by whose average candidates are compared. Each of them begins with `num_starts` units.
        choose_task: the task of a run, with the arguments of `leads.choose_task`.
    """

    confidence: float
    limit: int
    margin: "np.ndarray | float" = 0.0
    margin_share: "np.ndarray | float" = 0.0
    num_starts: int = NUM_STARTS
    min_runs: int = 0
    num_slots: int = 1
    max_runs: float = math.inf
    choose: ChooseAtOnce = choose_next
    runs_missing: bool = True
    allowed_error: Callable[[np.ndarray, float], np.ndarray] = allowed_error
    gives_up: bool = True
    num_tasks: int = 1
    choose_task: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = choose_task


@dataclass(frozen=True, eq=False)
class Look:
    """What selections conclude from their runs. Shape of each: `(num_selections,)`, except `tails` and `variances`.

    `leader` is the candidate with the greatest mean, `rival` its nearest one, and `prob` its P(best within the
    `margin`). `is_sure` says that it is named, `is_over` that the selection makes no further run, and `is_lacking` that
    only runs of the two are missing. `tails` are `Leads.tails`, shape `(num_selections, num_candidates)`, and
    `variances` those of the leads on each task, shape `(num_selections, num_tasks, num_candidates)`.
    """

    leader: np.ndarray
    rival: np.ndarray
    prob: np.ndarray
    margin: np.ndarray
    is_sure: np.ndarray
    is_over: np.ndarray
    is_lacking: np.ndarray
    tails: np.ndarray
    variances: np.ndarray

    def take(self, chosen: np.ndarray) -> "Look":
        return Look(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Ends:
    """How selections ended. Shape of each: `(num_selections,)`, except `num_runs`, `(num_selections, num_candidates)`,
    the runs of each candidate in the batch. `leader` is -1, and `prob` 0, where candidates lack starting runs."""

    leader: np.ndarray
    prob: np.ndarray
    margin: np.ndarray
    is_named: np.ndarray
    num_runs: np.ndarray
    num_rounds: np.ndarray


def look(numbers: np.ndarray, is_open: np.ndarray, room: np.ndarray, rules: Rules) -> Look:
    """Apply the stopping rule to selections whose candidates have their starting units.

    Args:
        numbers: shape `(num_selections, num_candidates * num_tasks, num_units)`; the tasks of a candidate follow one
            another.
        is_open: candidates that get further runs. Shape: `(num_selections, num_candidates)`.
        room: runs that the limit leaves, pending ones included. Shape: `(num_selections,)`.
    """
    model = TaskModel.from_numbers([numbers[:, task :: rules.num_tasks] for task in range(rules.num_tasks)])
    leads, num_units = model.leads(model.find_leader()), model.num_units.sum(axis=0)
    margin = rules.margin + rules.margin_share * np.sqrt(np.where(leads.noise.varied, leads.noise.variance, 0.0))
    tails = leads.tails(margin)
    rows = np.arange(len(tails))
    prob = prob_best_from_tails(tails)[rows, leads.leader]
    rival = nearest_rival(leads, tails)
    units_of_pair = num_units_of_pair(leads, rival, model.num_units, is_open)
    is_met = 1 - prob <= rules.allowed_error(units_of_pair, rules.confidence)
    is_short = np.where(is_open, num_units, np.inf)[rows, [leads.leader, rival]].min(axis=0) < rules.min_runs
    is_sure, is_lacking = is_met & ~is_short, is_met & is_short & rules.runs_missing
    is_over = is_sure | (room < 1)
    for row in np.flatnonzero(~leads.noise.varied):
        is_over[row] |= (np.nanmax(numbers[row], axis=1) == np.nanmin(numbers[row], axis=1)).all()
    if rules.gives_up:
        is_over |= ~is_met & gives_up(leads, rival, num_units, margin=margin, room=room, confidence=rules.confidence)
    variances = leads.task_variances.swapaxes(0, 1)
    return Look(leads.leader, rival, prob, margin, is_sure, is_over, is_lacking, tails, variances)


class OutOfScores(IndexError):
    """A selection needs more scores of a candidate, given by its index, than there are."""

    def __init__(self, candidate: int) -> None:
        super().__init__(f"no score of candidate {candidate} is left")
        self.candidate = candidate


class Batch:
    """Selections among equally many candidates, whose further runs have the given scores in this order.

    Args:
        scores: shape `(num_draws, num_candidates * num_tasks, num_scores)`, NaN after the last of a candidate on a
            task. The tasks of a candidate follow one another. There is one selection for each draw, or for each margin
            of the rules: these then take the draws in turn.
        units: the unit of each, a number from 0 on each task. Same shape.
        rules: rules that all of them follow.
        is_open: candidates that get further runs; all by default. Shape: `(num_candidates,)`.
        start: number of runs that every candidate has on each unit before, and their mean; none by default. Shape of
            both: `(num_candidates * num_tasks, num_units)`.

    Raises:
        OutOfScores: by `run`, if a selection needs more scores of a candidate than there are.
    """

    def __init__(
        self,
        scores: np.ndarray,
        units: np.ndarray,
        rules: Rules,
        *,
        is_open: Optional[np.ndarray] = None,
        start: Optional[Tuple[np.ndarray, np.ndarray]] = None,
    ) -> None:
        self._scores, self._units, self._rules = scores, units, rules
        shape = max(len(scores), np.size(rules.margin)), scores.shape[1]
        self._margins = [np.broadcast_to(margin, shape[:1]) for margin in (rules.margin, rules.margin_share)]
        num_candidates = shape[1] // rules.num_tasks
        self._is_open = np.broadcast_to(True if is_open is None else is_open, (shape[0], num_candidates))
        num_runs_on, numbers = (np.zeros((shape[1], FIRST_WIDTH)),) * 2 if start is None else start
        self._num_runs_on = np.tile(num_runs_on.astype(int), (shape[0], 1, 1))
        self._numbers = np.where(self._num_runs_on > 0, numbers, np.nan)
        self._width = 0 if start is None else numbers.shape[1]
        self._num_runs_before = int(num_runs_on.sum())
        self._num_runs = np.zeros(shape, dtype=int)
        self._num_units = np.asarray((self._num_runs_on > 0).sum(axis=2))

    def run(self) -> Ends:
        """Make all selections to their ends."""
        number = len(self._num_runs)
        self._num_rounds = np.zeros(number, dtype=int)
        self._make_starting_runs()
        leader, is_named = np.full(number, -1), np.zeros(number, dtype=bool)
        prob, margin = np.zeros((2, number))
        active = np.flatnonzero(~self._lacks_starts(np.arange(number), self._num_units).any(axis=1))
        while len(active):
            state = self._look(active)
            leader[active], prob[active], is_named[active] = state.leader, state.prob, state.is_sure
            margin[active] = state.margin
            goes_on = ~state.is_over & (self._num_runs[active].sum(axis=1) < self._rules.max_runs)
            active = active[goes_on]
            self._make_round(active, state.take(goes_on))
        return Ends(leader, prob, margin, is_named, self._by_task(self._num_runs).sum(axis=2), self._num_rounds)

    def _look(self, active: np.ndarray) -> Look:
        margin, share = (margins[active] for margins in self._margins)
        rules = replace(self._rules, margin=margin, margin_share=share)
        return look(self._numbers[active, :, : self._width], self._is_open[active], self._room(active), rules)

    def _make_starting_runs(self) -> None:
        while True:
            active = np.arange(len(self._num_runs))
            active = active[self._lacks_starts(active, self._num_units[active]).any(axis=1) & (self._room(active) > 0)]
            if not len(active):
                return
            num_started = self._num_units[active]
            for _ in range(self._rules.num_slots):
                is_lacking = self._lacks_starts(active, num_started)
                goes_on = is_lacking.any(axis=1) & (self._room(active) > 0)
                chosen = np.where(is_lacking, num_started, np.inf).argmin(axis=1)
                num_started[np.flatnonzero(goes_on), chosen[goes_on]] += 1
                self._add_runs(active[goes_on], chosen[goes_on])
            self._num_rounds[active] += 1

    def _make_round(self, active: np.ndarray, state: Look) -> None:
        on_tasks, rows = self._by_task(self._num_units[active]), np.arange(len(active))
        num_started = on_tasks.sum(axis=2)
        is_of_pair = np.zeros(num_started.shape, dtype=bool)
        is_of_pair[rows, state.leader] = is_of_pair[rows, state.rival] = True
        for _ in range(self._rules.num_slots):
            is_short = is_of_pair & self._is_open[active] & (num_started < self._rules.min_runs)
            chosen = self._rules.choose(state.tails, state.leader, num_started, self._is_open[active])
            of_pair = choose_of_pair(state.leader, state.rival, num_started, is_short)
            chosen = np.where(state.is_lacking, of_pair, chosen)
            goes_on = (self._room(active) > 0) & (~state.is_lacking | is_short.any(axis=1))
            tasks = self._choose_tasks(state, chosen, on_tasks)
            num_started[rows[goes_on], chosen[goes_on]] += 1
            on_tasks[rows[goes_on], chosen[goes_on], tasks[goes_on]] += 1
            self._add_runs(active[goes_on], (chosen * self._rules.num_tasks + tasks)[goes_on])
        self._num_rounds[active] += 1

    def _choose_tasks(self, state: Look, chosen: np.ndarray, on_tasks: np.ndarray) -> np.ndarray:
        """Return the task on which each chosen candidate runs, against the leader or the leader's rival. Shape:
        `(num_selections,)`, and of `on_tasks`, which are units, `(num_selections, num_candidates, num_tasks)`."""
        rows, is_leader = np.arange(len(chosen)), chosen == state.leader
        variances = state.variances[rows, :, np.where(is_leader, state.rival, chosen)]
        other = np.where(is_leader, state.rival, state.leader)
        return self._rules.choose_task(variances, on_tasks[rows, chosen], on_tasks[rows, other])

    def _by_task(self, numbers: np.ndarray) -> np.ndarray:
        """Shape: `(num_selections, num_candidates, num_tasks)`."""
        return numbers.reshape(len(numbers), self._is_open.shape[1], self._rules.num_tasks)

    def _lacks_starts(self, active: np.ndarray, num_started: np.ndarray) -> np.ndarray:
        is_open = np.repeat(self._is_open[active], self._rules.num_tasks, axis=1)
        return is_open & (num_started < self._rules.num_starts)

    def _room(self, active: np.ndarray) -> np.ndarray:
        return np.asarray(self._rules.limit - self._num_runs_before - self._num_runs[active].sum(axis=1))

    def _add_runs(self, active: np.ndarray, places: np.ndarray) -> None:
        """Run a candidate of each active selection once on a task: `places` count the tasks of all candidates."""
        runs = active % len(self._scores), places, np.minimum(self._num_runs[active, places], self._scores.shape[2] - 1)
        scores, units = self._scores[runs], self._units[runs]
        is_missing = np.isnan(scores) | (self._num_runs[active, places] >= self._scores.shape[2])
        if is_missing.any():
            raise OutOfScores(int(places[is_missing][0]) // self._rules.num_tasks)
        self._num_runs[active, places] += 1
        self._widen(int(units.max(initial=-1)) + 1)
        cells = active, places, units
        earlier = self._num_runs_on[cells]
        self._num_units[active, places] += earlier == 0
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
