"""The lead of one candidate over another: a t-test, unit by unit, in many selections at once.

A unit is what candidates share and what is drawn again: a split, a fold, an item, a document. A candidate has one
number on a unit, the mean of its runs there. Where nothing is shared, each run is a unit of its own. Arrays of numbers
have the shape `(num_selections, num_candidates, num_units)`, with NaN where a candidate has none. Higher is better.

The numbers follow a two-way model: the mean of the candidate, plus an effect of the unit, plus noise. A lead is a sum
over units, and the spread of their shares gives its standard error. On a complete table this is the paired t-test. A
few further degrees of freedom come from the noise of all candidates (Smyth, 2004).

Several tasks are data sets of a fixed list. Candidates are then compared by the average of their means on the tasks,
with equal weights. Each task has its own noise and its own units.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Optional, Sequence, Tuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma, stdtr

PRIOR_DF = 4.0
"""d0, the degrees of freedom that the noise of all candidates adds to the variance of a lead."""

MIN_VARIANCE_SHARE = 0.001
"""The least of the variances that are pooled, as a share of their mean: a constant candidate would pull them to 0."""

MAX_UNIT_SHARE = 0.98
"""The greatest share of the variance that effects of units explain."""

ROUNDING = 1e-13
"""Deviations smaller than this share of the numbers are rounding errors."""


@dataclass(frozen=True, eq=False)
class PooledNoise:
    """The noise that all candidates have in common. Shape of each: `(num_selections,)`.

    Attributes:
        variance: s0^2, of the numbers around the means of candidates and the effects of units.
        unit_share: b, the share of the whole variance that effects of units explain.
        df: d, the degrees of freedom that `variance` adds to the variance of a lead.
        varied: whether anything varied. If not, there is no estimate, and `variance` is 1.
    """

    variance: np.ndarray
    unit_share: np.ndarray
    df: np.ndarray
    varied: np.ndarray


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sum the products along the last of three axes, without an array of them."""
    return np.asarray(np.einsum("ijk,ijk->ij", first, second))


class Table:
    """The numbers of each candidate around its own mean, and what is counted and summed of them.

    Args:
        numbers: shape `(num_selections, num_candidates, num_units)`.
        unseen_squares: squared deviations that the numbers of a candidate do not show and that count as well; none by
            default. Shape: `(num_selections, num_candidates)`.
    """

    def __init__(self, numbers: np.ndarray, unseen_squares: Optional[np.ndarray] = None) -> None:
        is_there = ~np.isnan(numbers)
        # float: products of matrices of it follow. Shape: (num_selections, num_candidates, num_units)
        self.is_there = is_there.astype(float)
        # Shape: (num_selections, num_candidates)
        self.num_units = _dot(self.is_there, self.is_there)
        numbers = np.where(is_there, numbers, 0.0)
        self.own_means = _dot(numbers, self.is_there) / np.maximum(self.num_units, 1)
        self.deviations = (numbers - self.own_means[:, :, None]) * self.is_there
        self.unseen_squares = np.zeros(self.num_units.shape) if unseen_squares is None else unseen_squares
        self.resolution = (ROUNDING * np.abs(numbers).max(axis=2)) ** 2

    @cached_property
    def num_common(self) -> np.ndarray:
        """The number of common units of each pair. Shape: `(num_selections, num_candidates, num_candidates)`."""
        return self.is_there @ self.is_there.swapaxes(1, 2)

    @property
    def variances(self) -> np.ndarray:
        """The variance of each candidate's numbers; 0 with a single unit. Shape: `(num_selections, num_candidates)`."""
        sums_of_squares = _dot(self.deviations, self.deviations) + self.unseen_squares
        variances = sums_of_squares / np.maximum(self.num_units - 1, 1)
        return np.where(variances > self.resolution, variances, 0.0)

    @property
    def difference_variances(self) -> np.ndarray:
        """Half the variance of each pair's differences on common units. Shape: that of `num_common`."""
        common = self.is_there.swapaxes(1, 2)
        sums, squares = self.deviations @ common, self.deviations**2 @ common
        products = self.deviations @ self.deviations.swapaxes(1, 2)
        both = squares + squares.swapaxes(1, 2)
        difference_sums = sums - sums.swapaxes(1, 2)
        sums_of_squares = both - 2 * products - difference_sums**2 / np.maximum(self.num_common, 1)
        sums_of_squares += self.unseen_squares[:, :, None] + self.unseen_squares[:, None, :]
        resolution = self.resolution[:, :, None] + self.resolution[:, None, :] + ROUNDING * both
        variances = sums_of_squares / np.maximum(self.num_common - 1, 1) / 2
        return np.where(variances > resolution, variances, 0.0)


def pool_noise(table: Table) -> PooledNoise:
    """Pool the noise of all candidates.

    v_i are the half variances of the differences of all pairs of candidates with at least 2 common units, each at least
    0.1% of their mean, and d_i their degrees of freedom, the common units - 1 (Smyth, 2004)::

        log s0^2 = sum w_i (log v_i - psi(d_i / 2) + log(d_i / 2)) / sum w_i,   w_i = 1 / psi1(d_i / 2)

    In the same way, s^2 comes from the variances of the single candidates. It is at least s0^2, and::

        b = min(0.98, 1 - s0^2 / s^2)

    Without such a pair, s0 = s and b = 0. With q variances pooled into s0, d = d0 (1 - 1 / q): what a variance learns
    from itself does not count.
    """
    pairs = np.triu_indices(table.num_units.shape[1], 1)
    df_of_pairs = table.num_common[:, pairs[0], pairs[1]] - 1
    pair_variance, num_pairs = _pool(table.difference_variances[:, pairs[0], pairs[1]], df_of_pairs)
    own_variance, num_candidates = _pool(table.variances, table.num_units - 1)
    variance = np.where(num_pairs > 0, pair_variance, own_variance)
    number = np.where(num_pairs > 0, num_pairs, num_candidates)
    varied = variance > 0
    variance = np.where(varied, variance, 1.0)
    unit_share = np.minimum(MAX_UNIT_SHARE, 1 - variance / np.maximum(own_variance, variance))
    return PooledNoise(variance, unit_share, PRIOR_DF * (1 - 1 / np.maximum(number, 1)), varied)


@cache
def _of_df(most: int) -> Tuple[np.ndarray, np.ndarray]:
    """w_i and log(d_i / 2) - psi(d_i / 2) of a variance with 0 to `most` degrees of freedom."""
    half_df = np.maximum(np.arange(max(most, 0) + 1), 1) / 2
    return 1 / polygamma(1, half_df), np.log(half_df) - digamma(half_df)


def _pool(variances: np.ndarray, df: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Pool variances that have at least one degree of freedom. Return the pooled one and how many went into it, each of
    shape `(num_selections,)`. Shape of both arguments: `(num_selections, num_variances)`."""
    is_known = df > 0
    number = is_known.sum(axis=1)
    mean = np.where(is_known, variances, 0.0).sum(axis=1) / np.maximum(number, 1)
    # df are whole numbers: the functions of each are computed once.
    weights_by_df, biases_by_df = _of_df(int(df.max(initial=1)))
    places = np.maximum(df.astype(int), 0)
    weights = np.where(is_known, weights_by_df[places], 0.0)
    floored = np.maximum(variances, MIN_VARIANCE_SHARE * mean[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_variances = np.log(floored) + biases_by_df[places]
        pooled = np.exp(np.where(is_known, weights * log_variances, 0.0).sum(axis=1) / weights.sum(axis=1))
    return np.where(mean > 0, pooled, 0.0), number


class TwoWayModel:
    """The means of candidates by a two-way model, in which the effects of units are shrunk.

    With M_ku = 1 where candidate k has the number y_ku of unit u, m_u the column u of M, and c_u its sum::

        w_u = b / (1 - b + b c_u),   A = diag(n_k) - sum_u w_u m_u m_u',   C = A^-1,   mu = C z
        z_k = sum over k's units of (y_ku - w_u sum_l y_lu)

    `means` is mu, `num_units` n, `is_there` M, `covariance` C, `unit_weights` w with the shape `(num_selections, 1,
    num_units)`, and `residuals` the numbers minus their means, 0 where there is none.

    Args:
        table: every candidate has at least one number.
        noise: pooled noise of the table.
    """

    def __init__(self, table: Table, noise: PooledNoise) -> None:
        self.noise = noise
        self.num_units, self.is_there = table.num_units, table.is_there
        share = noise.unit_share[:, None]
        # Shape: (num_selections, 1, num_units)
        self.unit_weights = (share / (1 - share + share * table.is_there.sum(axis=1)))[:, None]
        weighted = table.is_there * self.unit_weights
        precision = -weighted @ table.is_there.swapaxes(1, 2)
        diagonal = np.arange(self.num_units.shape[1])
        precision[:, diagonal, diagonal] += self.num_units
        # Shape: (num_selections, num_candidates, num_candidates)
        self.covariance = np.linalg.inv(precision)
        # The means of candidates drop out of the effects of units, so it is enough to solve for deviations from them.
        sums = -(weighted @ table.deviations.sum(axis=1)[:, :, None])
        corrections = (self.covariance @ sums)[:, :, 0]
        self.means = table.own_means + corrections
        # Shape: (num_selections, num_candidates, num_units)
        self.residuals = (table.deviations - corrections[:, :, None]) * table.is_there
        self._num_common, self._unseen_squares = table.num_common, table.unseen_squares

    @classmethod
    def from_numbers(cls, numbers: np.ndarray, unseen_squares: Optional[np.ndarray] = None) -> "TwoWayModel":
        """Return the model of numbers with the noise that they show. The arguments are those of `Table`."""
        table = Table(numbers, unseen_squares)
        return cls(table, pool_noise(table))

    def leads(self, leader: np.ndarray) -> "Leads":
        """Return the leads of a candidate of each selection over all candidates.

        With g the difference of two rows of C, and G_u = sum_k M_ku g_k, the lead is D = sum h_ku y_ku with the weights
        h_ku = M_ku (g_k - w_u G_u). The residuals r give the share of unit u in its error, q_u = sum_k h_ku r_ku. Its
        expected square is e_u = s0^2 sum_k g_k h_ku. With V0 = sum e_u, and E = V0 - s0^2 sum_u h_u' C h_u what the
        residuals can show of it::

            Q = (V0 / E) sum q_u^2,   f = V0 E / sum e_u^2,   V = (d V0 + f Q) / (d + f)

        E is 0 with one unit each: then Q = f = 0.

        Args:
            leader: index of a candidate. Shape: `(num_selections,)`.
        """
        weights, covariance, rows = self.unit_weights, self.covariance, np.arange(len(leader))
        # Shape: (num_selections, num_rivals, num_candidates)
        gains = covariance[rows, leader][:, None] - covariance
        squared_gains = gains**2
        # Shape: (num_selections, num_rivals, num_units)
        spread = covariance @ self.is_there
        effects = weights * (spread[rows, leader][:, None] - spread)
        shares = gains @ self.residuals - effects * self.residuals.sum(axis=1)[:, None]
        expected = squared_gains @ self.is_there - effects**2 / np.where(weights > 0, weights, 1.0)
        unseen = self._unseen(gains, effects, self.is_there * spread)
        # Shape: (num_selections, num_rivals)
        shown = _dot(shares, shares) + (squared_gains @ self._unseen_squares[:, :, None])[:, :, 0]
        total = np.einsum("ijk->ij", expected)
        seen = np.maximum(total - unseen, 0.0)
        is_seen = seen > 1e-9 * total
        squares = np.where(is_seen, shown * total / np.where(is_seen, seen, 1.0), 0.0)
        df = np.where(is_seen, total * seen / np.maximum(_dot(expected, expected), 1e-300), 0.0)
        prior_df = self.noise.df[:, None]
        all_df = prior_df + df
        prior = self.noise.variance[:, None] * total
        variance = np.where(all_df > 0, (prior_df * prior + df * squares) / np.where(all_df > 0, all_df, 1.0), 0.0)
        difference = self.means[rows, leader][:, None] - self.means
        return Leads(leader, difference, variance, all_df, self.noise)

    def _unseen(self, gains: np.ndarray, effects: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """sum_u h_u' C h_u, without an array of all h, from M_ku (C M)_ku. Shape: `(num_selections, num_rivals)`."""
        own = _dot(gains @ (self.covariance * self._num_common), gains)
        both = effects * spread.sum(axis=1)[:, None] - 2 * (gains @ spread)
        return np.asarray(own + _dot(effects, both))


@dataclass(frozen=True, eq=False)
class Leads:
    """The leads of one candidate of each selection over all candidates, itself included.

    Attributes:
        leader: index of the candidate that leads. Shape: `(num_selections,)`.
        difference: D of each lead. Shape: `(num_selections, num_candidates)`, also that of the next two.
        variance: V, the square of the standard error of each lead; 0 where there is no estimate.
        df: the degrees of freedom of each variance.
        noise: pooled noise.
        by_task: the leads on each task, if these are their average; see `TaskModel`.
    """

    leader: np.ndarray
    difference: np.ndarray
    variance: np.ndarray
    df: np.ndarray
    noise: PooledNoise
    by_task: "Tuple[Leads, ...]" = ()

    @property
    def task_variances(self) -> np.ndarray:
        """The variances on each task. Shape: `(num_tasks, num_selections, num_candidates)`."""
        return np.array([leads.variance for leads in self.by_task or (self,)])

    def tails(self, margin: "np.ndarray | float" = 0.0) -> np.ndarray:
        """Return the probability that each candidate is better than the leader by more than the margin::

            p_j = P(t_df > (D_j + margin) / sqrt(V_j))

        It is 1/2 for the leader itself, and where nothing varied. Shape: `(num_selections, num_candidates)`.

        Args:
            margin: in units of the numbers; a number, or one for each selection, shape `(num_selections,)`.
        """
        is_known = (self.variance > 0) & self.noise.varied[:, None] & ~self.is_leader
        t = (self.difference + np.reshape(margin, (-1, 1))) / np.sqrt(np.where(is_known, self.variance, 1.0))
        return np.where(is_known, stdtr(np.where(is_known, self.df, 1.0), -t), 0.5)

    @property
    def is_leader(self) -> np.ndarray:
        """Whether a candidate is the leader. Shape: `(num_selections, num_candidates)`."""
        return np.arange(self.difference.shape[1]) == self.leader[:, None]

    def expected_losses(self) -> np.ndarray:
        """Return E[max(0, -D_j)] for each candidate: choosing the leader costs at least the greatest of these.

        It is infinite with one degree of freedom or less. Shape: `(num_selections, num_candidates)`.
        """
        is_known = (self.variance > 0) & self.noise.varied[:, None] & ~self.is_leader
        scale, df = np.sqrt(self.variance), np.where(is_known, self.df, 2.0)
        t = self.difference / np.where(is_known, scale, 1.0)
        log_peak = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * np.pi) / 2
        density = np.exp(log_peak - (df + 1) / 2 * np.log1p(t**2 / df))
        has_mean = df > 1
        excess = (df + t**2) / np.where(has_mean, df - 1, 1.0) * density - t * stdtr(df, -t)
        return np.where(is_known, np.where(has_mean, scale * np.maximum(excess, 0.0), np.inf), 0.0)


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
