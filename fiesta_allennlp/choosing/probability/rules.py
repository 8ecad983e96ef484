"""Who runs next and when to stop, from the leads of many selections at once. Candidates are the last axis."""

import numpy as np
from scipy.special import ndtr, ndtri

from fiesta_allennlp.choosing.probability.leads import Leads
from fiesta_allennlp.choosing.probability.task_leads import count_independent_units

FLOOR_UNITS = 16
"""Units of the winner and its nearest rival from which on the target confidence is enough."""

MIN_POWER, MAX_RUNS_PER_WINNER = 0.35, 500
"""A selection gives up where the runs that are left decide with a probability below the first number, and each winner
then costs more runs than the second: the runs that are left divided by that probability."""


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


def choose_evenly(num_started: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return the open candidate with the fewest units, then the first. Shape: `(num_selections,)`."""
    return np.asarray(np.where(is_open, num_started, np.inf).argmin(axis=1))


def num_units_of_pair(leads: Leads, rival: np.ndarray, num_units: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """Return the units of the leader or its nearest rival, whichever has fewer, among those that get further runs. If
    neither does, there is nothing to wait for. Over several tasks, see `task_leads.count_independent_units`. Shape:
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
