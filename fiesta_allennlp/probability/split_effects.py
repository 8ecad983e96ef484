"""Mean scores of candidates that were evaluated on shared splits: a two-way model with unequal noise.

Several selections among equally many candidates are fitted together, because NumPy takes as long for one as for ten.
"""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import List, Sequence

import numpy as np
from scipy.special import gammainc

from fiesta_allennlp.probability.noise import CommonVariance, common_variance, noise_posterior

MAX_STEPS = 40
TOLERANCE, TOLERANCE_GROWTH = 1e-3, 1.25
"""The fixed point is found when no precision changes by more than this part of itself, a tolerance that grows by this
factor with every step: some tables leave open which of two candidates is the noisier one."""

ACCELERATION_LIMITS = (-4.0, 0.5)
"""An accelerated step goes on by at most four times the last one, and back by at most half of it."""

SHIFT_PRECISION_SHARE = 1e-6
"""Where b is free, it can take up a shift of all candidates that are linked by common splits. Such shifts, of which
residuals know nothing, are held near 0 by so much of each candidate's information."""

MIN_DF = 1e-2
"""A candidate whose scores all go into its split effects has no degrees of freedom left; it is given so many."""

MIN_VARIANCE_SHARE = 1e-20
"""Noise variance below this share of the largest squared deviation is taken as this. It is so small that one run that
diverged does not hide the differences of all others."""

CONSTANT_SHARE = 0.01
"""The noise variance of a candidate whose scores are all equal is at least this share of the smallest variance of
another candidate's scores. With none, nothing tells it from the effects of the splits."""

MIN_COMMON_SPLITS, CORRELATION_LEVEL = 4, 1e-3
"""A candidate counts as correlated with the leader if their differences on so many common splits or more vary less than
in this share of all cases without correlation."""


@dataclass(frozen=True, eq=False)
class SplitScores:
    """All finished scores of the candidates, by split.

    `counts` are numbers of evaluations and `sums` the sums of their scores, shape `(..., num_candidates, num_splits)`.
    `within_squares` are the sums of squared deviations from the mean of each candidate and split, shape
    `(..., num_candidates)`. Scores are centred and of a size about 1. Every candidate has two evaluations or more.
    The leading axes are for several selections.
    """

    counts: np.ndarray
    sums: np.ndarray
    within_squares: np.ndarray

    @classmethod
    def stack(cls, tables: Sequence["SplitScores"]) -> "SplitScores":
        """Those of several selections among equally many candidates, with empty splits at the end of the shorter
        ones."""
        shape = (len(tables), tables[0].counts.shape[0], max(table.counts.shape[1] for table in tables))
        counts, sums = np.zeros(shape), np.zeros(shape)
        for index, scores in enumerate(tables):
            counts[index, :, : scores.counts.shape[1]] = scores.counts
            sums[index, :, : scores.sums.shape[1]] = scores.sums
        return cls(counts, sums, np.stack([scores.within_squares for scores in tables]))

    @cached_property
    def empty_split_precision(self) -> np.ndarray:
        """Infinite for splits without a score, which leaves their effects out; else 0. Shape: `(..., num_splits)`."""
        return np.where(self.counts.any(axis=-2), 0.0, np.inf)

    @cached_property
    def means(self) -> np.ndarray:
        """The mean scores by split, 0 where there is none. Shape: that of `sums`."""
        return self.sums / np.maximum(self.counts, 1)

    def take(self, selected: np.ndarray) -> "SplitScores":
        return SplitScores(self.counts[selected], self.sums[selected], self.within_squares[selected])


@dataclass(frozen=True, eq=False)
class MeanScorePosterior:
    """Posterior of the mean scores: mu_i = location_i + scale_ci t(df_ci) with probability weight_ci.

    The mu_i are independent up to a common shift. `location` and `noise_variance`, the sigma_i^2 of the fit, have the
    shape `(num_candidates,)`; `scale`, `df` and `weight` have the shape `(2, num_candidates)`, see `NoisePosterior`.
    """

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    weight: np.ndarray
    noise_variance: np.ndarray


def mean_score_posteriors(tables: Sequence[SplitScores]) -> List[MeanScorePosterior]:
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
    if not tables:
        return []
    fit = fit_tables(SplitScores.stack(tables))
    noise = noise_posterior(fit.squares, df=fit.df, common=fit.common_variance)
    df, variance = noise.match_scaled_inverse_chi_squared()
    scale_factors = np.sqrt(variance * fit.used_precision)
    df = np.maximum(df, 1.0)
    posteriors = []
    for index, location in enumerate(fit.location):
        scale = np.sqrt(_independent_variances(location, fit.covariance[index])) * scale_factors[:, index]
        noise_variance = 1 / fit.used_precision[index]
        posteriors.append(MeanScorePosterior(location, scale, df[:, index], noise.weight[:, index], noise_variance))
    return posteriors


def refit_correlated(posterior: MeanScorePosterior, scores: SplitScores) -> MeanScorePosterior:
    """Return the posterior in which the differences of the leader l to candidates correlated with it are their own.

    The model has one effect of each split, so two candidates that move together beyond it look noisier than their
    differences D_k on m common splits are. With one run of each on a split, noise variances sigma_i^2 and
    V = sigma_l^2 + sigma_j^2, sum_k (D_k - mean D)^2 / V is about chi^2(m - 1). Where it is improbably small, mean D
    and the variance of D replace what the fit says of mu_l - mu_j. The differences to all other candidates keep their
    variances. Do not use it where most differences are 0, as between the answers of two systems: their variance is then
    known too badly.
    """
    leader = int(np.argmax(posterior.location))
    is_common = (scores.counts > 0) & (scores.counts[leader] > 0)
    cell_variance = posterior.noise_variance[:, None] / np.maximum(scores.counts, 1)
    # Shape of both: (num_candidates, num_splits)
    weights = is_common / (cell_variance + cell_variance[leader])
    differences = scores.means[leader] - scores.means
    total_weight = np.maximum(weights.sum(axis=-1), np.finfo(float).tiny)
    mean_difference = (weights * differences).sum(axis=-1) / total_weight
    squares = (weights * (differences - mean_difference[:, None]) ** 2).sum(axis=-1)
    num_df = np.maximum(is_common.sum(axis=-1) - 1, 1)
    is_correlated = (num_df >= MIN_COMMON_SPLITS - 1) & (gammainc(num_df / 2, squares / 2) < CORRELATION_LEVEL)
    is_correlated[leader] = False
    if not is_correlated.any():
        return posterior
    own_variance = np.maximum(squares / num_df / total_weight, MIN_VARIANCE_SHARE)
    variance = np.where(is_correlated, own_variance, posterior.scale**2 + posterior.scale[:, [leader]] ** 2)
    closest = int(np.argmin(np.where(is_correlated, own_variance, np.inf)))
    leader_variance = own_variance[closest] / 2
    variance = np.maximum(variance - leader_variance, leader_variance)
    variance[:, leader] = leader_variance
    df = np.where(is_correlated, num_df, posterior.df)
    df[:, leader] = num_df[closest]
    location = np.where(is_correlated, posterior.location[leader] - mean_difference, posterior.location)
    return replace(posterior, location=location, scale=np.sqrt(variance), df=df)


def fit_tables(tables: SplitScores) -> "VariationalFit":
    """Compute the fixed points of several selections. Each is left as it is once it is found."""
    fit = unfinished = VariationalFit(tables)
    indices = np.arange(len(tables.counts))
    for step in range(MAX_STEPS):
        is_unfinished = unfinished.step() >= TOLERANCE * TOLERANCE_GROWTH**step
        if unfinished is not fit:
            fit.update(indices, unfinished)
        if not is_unfinished.any():
            break
        if not is_unfinished.all():
            indices, unfinished = indices[is_unfinished], unfinished.take(is_unfinished)
    return fit


class VariationalFit:
    """Finds fixed points. `location` and `covariance` are of mu, given the precisions used. The first axis of every
    array is that of the selections. The last column of `log_precision` is that of the splits, the others are those of
    the noise."""

    common_variance: CommonVariance

    def __init__(self, scores: SplitScores) -> None:
        self.scores = scores
        self.num_runs = scores.counts.sum(axis=-1)
        has_run = (scores.counts > 0).astype(float)
        self.num_splits = has_run.any(axis=-2).sum(axis=-1)
        # Two candidates share two splits where two splits share two candidates: the smaller matrix says so.
        pairing = has_run if has_run.shape[-2] <= has_run.shape[-1] else has_run.swapaxes(-1, -2)
        self.has_split_effects = (np.triu(pairing @ pairing.swapaxes(-1, -2), 1) > 1).any(axis=(-2, -1))
        means = scores.sums.sum(axis=-1) / self.num_runs
        variance_of_means = np.var(means, axis=-1)
        own_variances = _squared_deviations(scores, means[..., None]) / np.maximum(self.num_runs - 1, 1)
        max_variance = np.maximum(np.maximum(own_variances.max(axis=-1), variance_of_means), np.finfo(float).tiny)
        self.min_variance = MIN_VARIANCE_SHARE * max_variance
        varies = own_variances > self.min_variance[:, None]
        least_variance = np.where(varies, own_variances, np.inf).min(axis=-1, keepdims=True)
        is_constant = ~varies & np.isfinite(least_variance)
        self.min_noise_variance = np.where(is_constant, CONSTANT_SHARE * least_variance, self.min_variance[:, None])
        # The middle one: a run that diverged is far from where the others are.
        typical_variance = np.exp(np.median(np.log(np.maximum(own_variances, self.min_variance[:, None])), axis=-1)) / 2
        self.log_precision = np.repeat(-np.log(typical_variance)[:, None], means.shape[-1] + 1, axis=-1)
        self.previous_log_precision = self.previous_change = np.zeros(self.log_precision.shape)

    @property
    def precision(self) -> np.ndarray:
        """1 / sigma_i^2. Shape: `(..., num_candidates)`."""
        return np.exp(self.log_precision[..., :-1])

    @property
    def split_precision(self) -> np.ndarray:
        """1 / tau^2, infinite where no two candidates share two splits. Shape: `(...,)`."""
        return np.where(self.has_split_effects, np.exp(self.log_precision[..., -1]), np.inf)

    def take(self, selected: np.ndarray) -> "VariationalFit":
        fit = copy(self)
        arrays = {name: value[selected] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        common = {name: value[selected] for name, value in vars(self.common_variance).items()}
        vars(fit).update(arrays, scores=self.scores.take(selected), common_variance=CommonVariance(**common))
        return fit

    def update(self, indices: np.ndarray, fit: "VariationalFit") -> None:
        """Take over the results of these selections."""
        for name in ("location", "covariance", "used_precision", "squares", "df", "log_precision"):
            getattr(self, name)[indices] = getattr(fit, name)
        for name, values in vars(fit.common_variance).items():
            getattr(self.common_variance, name)[indices] = values

    def step(self) -> np.ndarray:
        """Go on once. The largest relative change of a precision, by selection."""
        self.used_precision = self.precision
        joint = JointNormal(self.scores, self.used_precision, self.split_precision)
        self.location, self.covariance = joint.location, joint.covariance
        squares = _squared_deviations(self.scores, joint.location[..., None] + joint.split_effects[..., None, :])
        df = self.num_runs - self.used_precision * (joint.fitted_variance * self.scores.counts).sum(axis=-1)
        self.squares = np.maximum(squares, self.min_noise_variance * self.num_runs)
        self.df = np.maximum(df, MIN_DF)
        self.common_variance = common_variance(self.squares, df=self.df, initial=vars(self).get("common_variance"))
        # Shape: (num_selections,), 1 / E[tau^2] given b, whose prior is uniform in tau
        split_squares = (joint.split_effects**2 + joint.split_variance).sum(axis=-1)
        split_precision = np.maximum(self.num_splits - 1, 1) / np.maximum(split_squares, self.min_variance)
        log_precision = np.log(np.concatenate([self.common_variance.precision, split_precision[..., None]], axis=-1))
        change = log_precision - self.log_precision
        self.log_precision = self._accelerate(log_precision, change)
        return np.abs(change).max(axis=-1)

    def _accelerate(self, log_precision: np.ndarray, change: np.ndarray) -> np.ndarray:
        """The next precisions from those found: the secant through this step and the one before (Anderson, 1965)."""
        change_difference = change - self.previous_change
        squared_norm = np.maximum((change_difference**2).sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        secant = np.clip((change_difference * change).sum(axis=-1, keepdims=True) / squared_norm, *ACCELERATION_LIMITS)
        factor = np.where(self.previous_log_precision.any(), secant, 0.0)
        result = log_precision - factor * (log_precision - self.previous_log_precision)
        self.previous_log_precision, self.previous_change = log_precision, change
        return result


class JointNormal:
    """mu and b, jointly normal given the precisions of noise and b. A precision of 0 leaves b free; mu is free.

    `location` and `covariance`, shape `(..., num_candidates, num_candidates)`, are of mu, `split_effects` and
    `split_variance` of b, `fitted_variance` of mu_i + b_k, shape `(..., num_candidates, num_splits)`. `noise_precision`
    has the shape `(..., num_candidates)`, `split_precision` `(...,)`.
    """

    def __init__(self, scores: SplitScores, noise_precision: np.ndarray, split_precision: np.ndarray) -> None:
        # Shape: (..., num_candidates, num_splits)
        weights = noise_precision[..., None] * scores.counts
        split_total = weights.sum(axis=-2) + split_precision[..., None] + scores.empty_split_precision
        shares = weights / split_total[..., None, :]
        precision = -shares @ weights.swapaxes(-1, -2)
        candidates = range(precision.shape[-1])
        precision[..., candidates, candidates] += weights.sum(axis=-1) * (1 + SHIFT_PRECISION_SHARE)
        self.covariance = np.linalg.inv(precision)
        sums = noise_precision[..., None] * scores.sums
        split_sums = sums.sum(axis=-2)
        self.location = _multiply(self.covariance, sums.sum(axis=-1) - _multiply(shares, split_sums))
        # Shape: (..., num_splits)
        self.split_effects = (split_sums - _multiply(weights.swapaxes(-1, -2), self.location)) / split_total
        cross = self.covariance @ shares
        self.split_variance = 1 / split_total + (shares * cross).sum(axis=-2)
        variance = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        self.fitted_variance = variance[..., None] + self.split_variance[..., None, :] - 2 * cross


def _multiply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return (matrix @ vector[..., None])[..., 0]


def _squared_deviations(scores: SplitScores, expected: np.ndarray) -> np.ndarray:
    """Sums of squared deviations of each candidate's scores from `expected`. Shape: `(..., num_candidates)`."""
    return scores.within_squares + (scores.counts * (scores.means - expected) ** 2).sum(axis=-1)


def _independent_variances(location: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Variances v_i of independent variables whose differences to the leading candidate l have the right variances.

    V_ij = Var(mu_i - mu_j). v_l is the mean of Cov(mu_l - mu_i, mu_l - mu_j) over the three nearest rivals, and
    v_j = V_lj - v_l. P(best) was within .003 of that of the joint normal with histories as selections make them.
    Shape: `(num_candidates,)`.
    """
    leader = int(np.argmax(location))
    variance, lead_row = np.diagonal(covariance), covariance[leader]
    gap_variance = np.maximum(variance[leader] + variance - 2 * lead_row, 0)
    rivals = np.delete(np.arange(len(location)), leader)
    if len(rivals) == 1:
        return np.full(2, gap_variance[rivals[0]] / 2)
    distance = (location[leader] - location[rivals]) / np.sqrt(np.maximum(gap_variance[rivals], np.finfo(float).tiny))
    nearest = rivals[np.argsort(distance, kind="stable")[:3]]
    lead_cov = variance[leader] - lead_row[nearest][:, None] - lead_row[nearest] + covariance[np.ix_(nearest, nearest)]
    pairs = lead_cov[np.triu_indices(len(nearest), 1)]
    leader_variance = np.clip(pairs.mean(), 0.05 * gap_variance[nearest].min(), 0.95 * gap_variance[rivals].min())
    variances = gap_variance - leader_variance
    variances[leader] = leader_variance
    return variances
