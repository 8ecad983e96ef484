"""Draws of means, noise and split effects together, for simulations that go on from scores."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from fiesta_allennlp.probability.noise import noise_posterior
from fiesta_allennlp.probability.split_effects import Joint, Scores, fitted


@dataclass(frozen=True, eq=False)
class Effects:
    """One draw of all unknowns: `means` and `noise_sds`, shape `(num_candidates,)`; `splits`, shape `(num_splits,)`;
    and the sd of further splits' effects."""

    means: np.ndarray
    noise_sds: np.ndarray
    splits: np.ndarray
    split_sd: float


@dataclass(frozen=True, eq=False)
class EffectsPosterior:
    """The posterior of `mean_scores_of_all` to draw from: given the variances, mu and b are jointly normal.

    A candidate is outlying with the probability `outlying`, shape `(num_candidates,)`. Given that, its noise variance
    is scaled inverse chi-squared with `noise_df` and `noise_variance`, shape `(2, num_candidates)`; ordinary candidates
    are drawn at one quantile, because they are alike. The splits' variance is scaled inverse chi-squared with
    `split_df` and `1 / split_precision`; it is 0 where no two candidates share two splits.
    """

    scores: Scores
    location: np.ndarray
    outlying: np.ndarray
    noise_df: np.ndarray
    noise_variance: np.ndarray
    split_df: float
    split_precision: float

    @property
    def noise_sd(self) -> float:
        """Noise standard deviation of an ordinary candidate."""
        return float(np.sqrt(np.median(self.noise_variance[1])))

    def draw(self, rng: np.random.Generator) -> Effects:
        """One draw of the means, the splits that were seen, and the sds."""
        variance = self._noise_variances(rng)
        split_precision = self.split_precision
        if np.isfinite(split_precision):
            split_precision *= rng.chisquare(self.split_df) / self.split_df
        joint = Joint(self.scores, 1 / variance, np.asarray(split_precision))
        means = rng.multivariate_normal(
            joint.location, joint.covariance.rows(np.arange(len(variance))), check_valid="ignore", method="eigh"
        )
        weights = self.scores.counts / variance[:, None]
        total = weights.sum(axis=0) + split_precision
        expected = ((self.scores.sums / variance[:, None]).sum(axis=0) - weights.T @ means) / total
        splits = rng.normal(expected, np.sqrt(1 / total))
        return Effects(means, np.sqrt(variance), splits, float(split_precision**-0.5))

    def _noise_variances(self, rng: np.random.Generator) -> np.ndarray:
        is_outlying, uniform = rng.random((2, len(self.outlying)))
        is_outlying = is_outlying < self.outlying
        df, variance = (np.where(is_outlying, *by_class) for by_class in (self.noise_df, self.noise_variance))
        return df * variance / chdtri(df, np.where(is_outlying, uniform, rng.random()))


def effects_posterior(scores: Scores) -> EffectsPosterior:
    """Compute the posterior of `mean_scores_of_all` in a form to draw from."""
    fit = fitted(Scores.stacked([scores]))
    noise = noise_posterior(fit.squares, df=fit.df, near=fit.noise)
    df, variance = noise.scaled_inverse_chi_squared()
    return EffectsPosterior(
        scores=scores,
        location=fit.location[0],
        outlying=noise.weight[0, 0],
        noise_df=np.maximum(df[:, 0], 1.0),
        noise_variance=variance[:, 0],
        split_df=max(scores.counts.shape[1] - 1.0, 1.0),
        split_precision=float(fit.split_precision[0]),
    )
