"""Candidates compared by the average of their means on several tasks, in many selections at once.

A task is a data set of a fixed list. All of them have equal weights, and each has its own noise and its own units.
"""

from dataclasses import replace
from typing import Optional, Sequence

import numpy as np
from scipy.special import stdtr

from fiesta_allennlp.choosing.probability.leads import Leads, PooledNoise, TwoWayModel


class TaskModel:
    """The average of the two-way models of tasks. With a single task it is that of all runs.

    `means` are the means of the means on all tasks, shape `(num_selections, num_candidates)`, `num_units` the units on
    each, shape `(num_tasks, num_selections, num_candidates)`, and `noise` that of a run on a typical task: the mean of
    the variances that are not 0.

    Args:
        tasks: the model of each task, of the same candidates.
    """

    def __init__(self, tasks: Sequence[TwoWayModel]) -> None:
        self.tasks = tasks
        self.means = np.asarray(np.mean([task.means for task in tasks], axis=0))
        self.num_units = np.array([task.num_units for task in tasks])
        self.noise = tasks[0].noise if len(tasks) == 1 else _average_noise([task.noise for task in tasks])

    @classmethod
    def from_numbers(cls, numbers: Sequence[np.ndarray]) -> "TaskModel":
        """Return the model of the numbers on each task. Shape of each: `(num_selections, num_candidates, num_units)`,
        where the number of units may differ."""
        return cls([TwoWayModel.from_numbers(each) for each in numbers])

    def find_leader(self) -> np.ndarray:
        """Return the candidate with the greatest mean; among equal ones that with more units, then the first. Shape:
        `(num_selections,)`."""
        tolerance = np.sqrt(self.noise.variance)[:, None] * 1e-9
        is_highest = self.means >= self.means.max(axis=1, keepdims=True) - tolerance
        return np.asarray(np.where(is_highest, self.num_units.sum(axis=0), 0).argmax(axis=1))

    def leads(self, leader: np.ndarray) -> Leads:
        """Return the leads of a candidate of each selection on the average of T tasks.

        With the lead D_t of task t, its variance V_t and degrees of freedom d_t (Satterthwaite, 1946)::

            D = sum D_t / T,   V = sum V_t / T^2,   d = (sum V_t)^2 / sum(V_t^2 / d_t)

        A task where nothing varied has V_t = 0.

        Args:
            leader: index of a candidate. Shape: `(num_selections,)`.
        """
        leads = [task.leads(leader) for task in self.tasks]
        if len(leads) == 1:
            return leads[0]
        variances = np.array([np.where(each.noise.varied[:, None], each.variance, 0.0) for each in leads])
        by_task = tuple(replace(each, variance=own) for each, own in zip(leads, variances, strict=True))
        difference = np.mean([each.difference for each in leads], axis=0)
        df = np.nan_to_num(_satterthwaite(variances, np.array([each.df for each in leads])))
        return Leads(leader, difference, variances.sum(axis=0) / len(leads) ** 2, df, self.noise, by_task)


def _average_noise(noises: Sequence[PooledNoise]) -> PooledNoise:
    varied = np.array([noise.varied for noise in noises])
    total = np.where(varied, [noise.variance for noise in noises], 0.0).sum(axis=0)
    variance = np.where(varied.any(axis=0), total / np.maximum(varied.sum(axis=0), 1), 1.0)
    unit_share, df = (np.mean([getattr(noise, name) for noise in noises], axis=0) for name in ("unit_share", "df"))
    return PooledNoise(variance, unit_share, df, varied.any(axis=0))


def _satterthwaite(variances: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Return (sum V_t)^2 / sum(V_t^2 / d_t), NaN where all V_t are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(variances > 0, variances**2 / df, 0.0).sum(axis=0)
        return np.asarray(variances.sum(axis=0) ** 2 / shares)


def count_independent_units(variances: np.ndarray, num_units: np.ndarray) -> np.ndarray:
    """Return the units that an average over tasks rests on::

        1 + (sum V_t)^2 / sum(V_t^2 / (n_t - 1))

    With one task that is n. With V_t equal, 12 units on one task are 12, and 4 on each of 3 tasks are 10.

    Args:
        variances: V_t of a lead, shape `(num_tasks, ...)`.
        num_units: n_t, infinite where nobody gets further runs. Same shape.
    """
    if len(num_units) == 1:
        return np.asarray(num_units[0])
    number = 1 + _satterthwaite(variances, num_units - 1)
    return np.where(np.isnan(number), num_units.min(axis=0), number)


def choose_task(variances: np.ndarray, own_units: np.ndarray, other_units: np.ndarray) -> np.ndarray:
    """Return the task on which another unit of one of two candidates makes the variance of their lead fall most::

        V_t (1 / n_t - 1 / (n_t + 1)) / (1 / n_t + 1 / m_t)

    with n_t its units and m_t those of the other one, at least 1. Shape: `(num_selections,)`, and of the arguments
    `(num_selections, num_tasks)`.
    """
    falls = variances * (1 / own_units - 1 / (own_units + 1)) / (1 / own_units + 1 / other_units)
    return np.asarray(falls.argmax(axis=1))


def prob_on_new_task(differences: Sequence[float]) -> Optional[float]:
    """Return the probability that a lead is above 0 on a further task of the same kind, from the leads D_t on T tasks
    or their shares, None for fewer than 2::

        P(t_{T - 1} < mean(D) / (s sqrt(1 + 1 / T)))

    with s the standard deviation of the D_t. It is 1/2, 0 or 1 if all are equal.
    """
    if len(differences) < 2:
        return None
    mean, sd, number = float(np.mean(differences)), float(np.std(differences, ddof=1)), len(differences)
    if sd <= 1e-12 * abs(mean) or sd == 0:
        return 0.5 + 0.5 * float(np.sign(mean))
    return float(stdtr(number - 1, mean / (sd * np.sqrt(1 + 1 / number))))
