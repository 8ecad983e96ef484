"""Mean scores of candidates that were evaluated on shared splits: a two-way model with unequal noise.

Several selections among equally many candidates are fitted together, because NumPy takes as long for one as for ten.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, List, Sequence, Union

import numpy as np

from fiesta_allennlp.probability.noise import CommonNoise, common_noise, noise_posterior

MAX_STEPS = 40
TOLERANCE, PATIENCE = 1e-3, 1.25
"""The fixed point is found when no precision changes by more than this part of itself, a tolerance that grows by this
factor with every step: some tables leave open which of two candidates is the noisier one."""

REACH = (-4.0, 0.5)
"""An accelerated step goes on by at most four times the last one, and back by at most half of it."""

HELD = 1e-6
"""Where b is free, it can take up a shift of all candidates that are linked by common splits. Such shifts, of which
residuals know nothing, are held near 0 by so much of each candidate's information."""

SMALLEST_DF = 1e-2
"""A candidate whose scores all go into its split effects has no degrees of freedom left; it is given so many."""

SMALLEST = 1e-20
"""Noise variance below this share of the largest squared deviation is taken as this. It is so small that one run that
diverged does not hide the differences of all others."""


MANY = 100
"""With more candidates than this, and than splits, their covariance is kept as a sum of two parts: a full matrix of
10,000 candidates takes 0.8 GB and minutes."""


@dataclass(frozen=True, eq=False)
class Scores:
    """All finished scores of the candidates, by split.

    `counts` are numbers of evaluations and `sums` the sums of their scores, shape `(..., num_candidates, num_splits)`.
    `within` are the sums of squared deviations from the mean of each candidate and split, shape
    `(..., num_candidates)`. Scores are centred and of a size about 1. Every candidate has two evaluations or more.
    The leading axes are for several selections.
    """

    counts: np.ndarray
    sums: np.ndarray
    within: np.ndarray

    @classmethod
    def stacked(cls, selections: Sequence["Scores"]) -> "Scores":
        """Those of several selections among equally many candidates, with empty splits at the end of the shorter
        ones."""
        shape = (len(selections), selections[0].counts.shape[0], max(scores.counts.shape[1] for scores in selections))
        counts, sums = np.zeros(shape), np.zeros(shape)
        for index, scores in enumerate(selections):
            counts[index, :, : scores.counts.shape[1]] = scores.counts
            sums[index, :, : scores.sums.shape[1]] = scores.sums
        return cls(counts, sums, np.stack([scores.within for scores in selections]))

    @cached_property
    def empty(self) -> np.ndarray:
        """Infinite for splits without a score, which leaves their effects out; else 0. Shape: `(..., num_splits)`."""
        return np.where(self.counts.any(axis=-2), 0.0, np.inf)

    @cached_property
    def means(self) -> np.ndarray:
        """The mean scores by split, 0 where there is none. Shape: that of `sums`."""
        return self.sums / np.maximum(self.counts, 1)

    def only(self, selected: np.ndarray) -> "Scores":
        return Scores(self.counts[selected], self.sums[selected], self.within[selected])


@dataclass(frozen=True, eq=False)
class MeanScores:
    """Posterior of the mean scores: mu_i = location_i + scale_ci t(df_ci) with probability weight_ci.

    The mu_i are independent up to a common shift. `location` has the shape `(num_candidates,)`; `scale`, `df` and
    `weight` have the shape `(2, num_candidates)`, see `NoisePosterior`.
    """

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    weight: np.ndarray


def mean_scores_of_all(selections: Sequence[Scores]) -> List[MeanScores]:
    """Compute the posteriors of the mean scores mu_i of several selections, each under::

        x_ik = mu_i + b_k + e_ik,  b_k ~ N(0, tau^2),  e_ik ~ N(0, sigma_i^2)

    with uniform mu_i, the sigma_i^2 as in `fiesta_allennlp.probability.noise`, and uniform tau. Where no two candidates
    share two splits, the b_k are left out, because they cannot be told from the noise.

    Given precisions, mu and b are jointly normal, and the precisions follow from their squares: both in turn until
    nothing changes (variational Bayes). The degrees of freedom that mu and b take up are counted for each candidate, as
    in restricted maximum likelihood. Splits vary by tau only, so that of two candidates with common splits, the noisier
    one is found: differences alone would not tell. The uncertainty about sigma_i^2 makes normal into Student-t, one for
    each class of noise.
    """
    if not selections:
        return []
    fit = fitted(Scores.stacked(selections))
    noise = noise_posterior(fit.squares, df=fit.df, near=fit.noise)
    df, variance = noise.scaled_inverse_chi_squared()
    factors = np.sqrt(variance * fit.used_precision)
    df = np.maximum(df, 1.0)
    posteriors = []
    for index, location in enumerate(fit.location):
        scale = np.sqrt(_as_independent(location, _at(fit.covariance, index))) * factors[:, index]
        posteriors.append(MeanScores(location, scale, df[:, index], noise.weight[:, index]))
    return posteriors


def fitted(scores: Scores) -> "Fit":
    """Compute the fixed points of several selections. Each is left as it is once it is found."""
    fit = unfinished = Fit(scores)
    indices = np.arange(len(scores.counts))
    for step in range(MAX_STEPS):
        is_unfinished = unfinished.step() >= TOLERANCE * PATIENCE**step
        if unfinished is not fit:
            fit.put(indices, unfinished)
        if not is_unfinished.any():
            break
        if not is_unfinished.all():
            indices, unfinished = indices[is_unfinished], unfinished.only(is_unfinished)
    return fit


class Fit:
    """Finds fixed points. `location` and `covariance` are of mu, given the precisions used. The first axis of every
    array is that of the selections. The last column of `log_precision` is that of the splits, the others are those of
    the noise."""

    noise: CommonNoise
    covariance: "Covariance"

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.sizes = scores.counts.sum(axis=-1)
        has_run = (scores.counts > 0).astype(float)
        self.num_splits = has_run.any(axis=-2).sum(axis=-1)
        # Two candidates share two splits where two splits share two candidates: the smaller matrix says so.
        rows = has_run if has_run.shape[-2] <= has_run.shape[-1] else has_run.swapaxes(-1, -2)
        self.has_splits = (np.triu(rows @ rows.swapaxes(-1, -2), 1) > 1).any(axis=(-2, -1))
        means = scores.sums.sum(axis=-1) / self.sizes
        between = np.var(means, axis=-1)
        spread = _squares(scores, means[..., None]) / np.maximum(self.sizes - 1, 1)
        largest = np.maximum(np.maximum(spread.max(axis=-1), between), np.finfo(float).tiny)
        self.smallest = SMALLEST * largest
        # The middle one: a run that diverged is far from where the others are.
        common = np.exp(np.median(np.log(np.maximum(spread, self.smallest[:, None])), axis=-1)) / 2
        self.log_precision = np.repeat(-np.log(common)[:, None], means.shape[-1] + 1, axis=-1)
        self.previous = self.previous_change = np.zeros(self.log_precision.shape)

    @property
    def precision(self) -> np.ndarray:
        """1 / sigma_i^2. Shape: `(..., num_candidates)`."""
        return np.exp(self.log_precision[..., :-1])

    @property
    def split_precision(self) -> np.ndarray:
        """1 / tau^2, infinite where no two candidates share two splits. Shape: `(...,)`."""
        return np.where(self.has_splits, np.exp(self.log_precision[..., -1]), np.inf)

    def only(self, selected: np.ndarray) -> "Fit":
        fit = copy(self)
        arrays = {name: value[selected] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        records = {name: _at(getattr(self, name), selected) for name in ("noise", "covariance")}
        vars(fit).update(arrays, scores=self.scores.only(selected), **records)
        return fit

    def put(self, indices: np.ndarray, fit: "Fit") -> None:
        """Take over the results of these selections."""
        for name in ("location", "used_precision", "squares", "df", "log_precision"):
            getattr(self, name)[indices] = getattr(fit, name)
        for record in ("noise", "covariance"):
            for name, values in vars(getattr(fit, record)).items():
                getattr(getattr(self, record), name)[indices] = values

    def step(self) -> np.ndarray:
        """Go on once. The largest relative change of a precision, by selection."""
        self.used_precision = self.precision
        joint = Joint(self.scores, self.used_precision, self.split_precision)
        self.location, self.covariance = joint.location, joint.covariance
        squares = _squares(self.scores, joint.location[..., None] + joint.split[..., None, :])
        df = self.sizes - self.used_precision * (joint.fitted_variance * self.scores.counts).sum(axis=-1)
        self.squares = np.maximum(squares, self.smallest[:, None] * self.sizes)
        self.df = np.maximum(df, SMALLEST_DF)
        self.noise = common_noise(self.squares, df=self.df, near=vars(self).get("noise"))
        # Shape: (num_selections,), 1 / E[tau^2] given b, whose prior is uniform in tau
        split_squares = (joint.split**2 + joint.split_variance).sum(axis=-1)
        split_precision = np.maximum(self.num_splits - 1, 1) / np.maximum(split_squares, self.smallest)
        log_precision = np.log(np.concatenate([self.noise.precision, split_precision[..., None]], axis=-1))
        change = log_precision - self.log_precision
        self.log_precision = self._accelerated(log_precision, change)
        return np.abs(change).max(axis=-1)

    def _accelerated(self, log_precision: np.ndarray, change: np.ndarray) -> np.ndarray:
        """The next precisions from those found: the secant through this step and the one before (Anderson, 1965)."""
        bend = change - self.previous_change
        squared = np.maximum((bend**2).sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        back = np.clip((bend * change).sum(axis=-1, keepdims=True) / squared, *REACH)
        result = log_precision - np.where(self.previous.any(), back, 0.0) * (log_precision - self.previous)
        self.previous, self.previous_change = log_precision, change
        return result


@dataclass(frozen=True, eq=False)
class Full:
    """The covariance of mu as a matrix. Shape: `(..., num_candidates, num_candidates)`."""

    matrix: np.ndarray

    @classmethod
    def inverse(cls, own: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> "Full":
        """Invert diag(own) - shares weights^T. Shapes as for `Joint`."""
        size = own.shape[-1]
        information = -shares @ weights.swapaxes(-1, -2)
        information[..., range(size), range(size)] += own
        return cls(np.linalg.inv(information))

    def times(self, factor: np.ndarray) -> np.ndarray:
        return self.matrix @ factor

    @property
    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix, axis1=-2, axis2=-1)

    def rows(self, candidates: np.ndarray) -> np.ndarray:
        return self.matrix[..., candidates, :]


@dataclass(frozen=True, eq=False)
class Thin:
    """The covariance of mu as diag(own) + left right, for many candidates on few splits (Woodbury, 1950).

    Shapes: `(..., num_candidates)`, `(..., num_candidates, num_splits)` and `(..., num_splits, num_candidates)`.
    """

    own: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def inverse(cls, own: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> "Thin":
        """Invert diag(own) - shares weights^T. Shapes as for `Joint`."""
        left, right = shares / own[..., None], (weights / own[..., None]).swapaxes(-1, -2)
        return cls(1 / own, left, np.linalg.solve(np.eye(left.shape[-1]) - right @ shares, right))

    def times(self, factor: np.ndarray) -> np.ndarray:
        return self.own[..., None] * factor + self.left @ (self.right @ factor)

    @property
    def diagonal(self) -> np.ndarray:
        return self.own + (self.left * self.right.swapaxes(-1, -2)).sum(axis=-1)

    def rows(self, candidates: np.ndarray) -> np.ndarray:
        rows = self.left[..., candidates, :] @ self.right
        rows[..., range(len(candidates)), candidates] += self.own[..., candidates]
        return rows


Covariance = Union[Full, Thin]


class Joint:
    """mu and b, jointly normal given the precisions of noise and b. A precision of 0 leaves b free; mu is free.

    `location` and `covariance` are of mu, `split` and `split_variance` of b, `fitted_variance` of mu_i + b_k, shape
    `(..., num_candidates, num_splits)`. `noise` has the shape `(..., num_candidates)`, `split` `(...,)`.
    """

    def __init__(self, scores: Scores, noise: np.ndarray, split: np.ndarray) -> None:
        # Shape: (..., num_candidates, num_splits)
        weights = noise[..., None] * scores.counts
        split_total = weights.sum(axis=-2) + split[..., None] + scores.empty
        shares = weights / split_total[..., None, :]
        own = weights.sum(axis=-1) * (1 + HELD)
        kind = Thin if own.shape[-1] > max(MANY, weights.shape[-1]) else Full
        self.covariance: Covariance = kind.inverse(own, shares, weights)
        weighted = noise[..., None] * scores.sums
        total = weighted.sum(axis=-2)
        self.location = self.covariance.times((weighted.sum(axis=-1) - _times(shares, total))[..., None])[..., 0]
        # Shape: (..., num_splits)
        self.split = (total - _times(weights.swapaxes(-1, -2), self.location)) / split_total
        crossed = self.covariance.times(shares)
        self.split_variance = 1 / split_total + (shares * crossed).sum(axis=-2)
        self.fitted_variance = self.covariance.diagonal[..., None] + self.split_variance[..., None, :] - 2 * crossed


def _at(record: Any, indices: Any) -> Any:
    """The selections of a record of arrays at these indices of the first axis."""
    return type(record)(**{name: value[indices] for name, value in vars(record).items()})


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _squares(scores: Scores, expected: np.ndarray) -> np.ndarray:
    """Sums of squared deviations of each candidate's scores from `expected`. Shape: `(..., num_candidates)`."""
    return scores.within + (scores.counts * (scores.means - expected) ** 2).sum(axis=-1)


def _as_independent(location: np.ndarray, covariance: Covariance) -> np.ndarray:
    """Variances v_i of independent variables whose differences to the leading candidate l have the right variances.

    V_ij = Var(mu_i - mu_j). v_l is the mean of Cov(mu_l - mu_i, mu_l - mu_j) over the three nearest rivals, and
    v_j = V_lj - v_l. P(best) was within .003 of that of the joint normal with histories as selections make them.
    Shape: `(num_candidates,)`.
    """
    leader = int(np.argmax(location))
    variance, lead_row = covariance.diagonal, covariance.rows(np.array([leader]))[0]
    difference = np.maximum(variance[leader] + variance - 2 * lead_row, 0)
    rivals = np.delete(np.arange(len(location)), leader)
    if len(rivals) == 1:
        return np.full(2, difference[rivals[0]] / 2)
    distance = (location[leader] - location[rivals]) / np.sqrt(np.maximum(difference[rivals], np.finfo(float).tiny))
    nearest = rivals[np.argsort(distance, kind="stable")[:3]]
    shared = variance[leader] - lead_row[nearest][:, None] - lead_row[nearest] + covariance.rows(nearest)[:, nearest]
    pairs = shared[np.triu_indices(len(nearest), 1)]
    leader_variance = np.clip(pairs.mean(), 0.05 * difference[nearest].min(), 0.95 * difference[rivals].min())
    result = difference - leader_variance
    result[leader] = leader_variance
    return result
