"""Draws of means, noise and split effects together, for simulations that go on from scores."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from fiesta_allennlp.probability.noise import noise_posterior
from fiesta_allennlp.probability.split_effects import JointNormal, SplitScores, fit_tables


@dataclass(frozen=True, eq=False)
class EffectsDraw:
    """One draw of all unknowns: `means` and `noise_sds`, shape `(num_candidates,)`; `split_effects`, shape
    `(num_splits,)`; and the sd of further splits' effects."""

    means: np.ndarray
    noise_sds: np.ndarray
    split_effects: np.ndarray
    split_sd: float


@dataclass(frozen=True, eq=False)
class EffectsPosterior:
    """The posterior of `mean_score_posteriors` to draw from: given the variances, mu and b are jointly normal.

    A candidate is outlying with the probability `prob_outlying`, shape `(num_candidates,)`. Given that, its noise
    variance is scaled inverse chi-squared with `noise_df` and `noise_variance`, shape `(2, num_candidates)`; ordinary
    candidates are drawn at one quantile, because they are alike. The splits' variance is scaled inverse chi-squared
    with `split_df` and `1 / split_precision`; it is 0 where no two candidates share two splits.
    """

    scores: SplitScores
    location: np.ndarray
    prob_outlying: np.ndarray
    noise_df: np.ndarray
    noise_variance: np.ndarray
    split_df: float
    split_precision: float

    @property
    def noise_sd(self) -> float:
        """Noise standard deviation of an ordinary candidate."""
        return float(np.sqrt(np.median(self.noise_variance[1])))

    def draw(self, rng: np.random.Generator) -> EffectsDraw:
        """One draw of the means, the splits that were seen, and the sds."""
        variance = self._noise_variances(rng)
        split_precision = self.split_precision
        if np.isfinite(split_precision):
            split_precision *= rng.chisquare(self.split_df) / self.split_df
        joint = JointNormal(self.scores, 1 / variance, np.asarray(split_precision))
        means = rng.multivariate_normal(joint.location, joint.covariance, check_valid="ignore", method="eigh")
        weights = self.scores.counts / variance[:, None]
        total_precision = weights.sum(axis=0) + split_precision
        expected_effects = ((self.scores.sums / variance[:, None]).sum(axis=0) - weights.T @ means) / total_precision
        split_effects = rng.normal(expected_effects, np.sqrt(1 / total_precision))
        return EffectsDraw(means, np.sqrt(variance), split_effects, float(split_precision**-0.5))

    def _noise_variances(self, rng: np.random.Generator) -> np.ndarray:
        is_outlying, uniform = rng.random((2, len(self.prob_outlying)))
        is_outlying = is_outlying < self.prob_outlying
        df, variance = (np.where(is_outlying, *by_class) for by_class in (self.noise_df, self.noise_variance))
        return df * variance / chdtri(df, np.where(is_outlying, uniform, rng.random()))


def effects_posterior(scores: SplitScores) -> EffectsPosterior:
    """Compute the posterior of `mean_score_posteriors` in a form to draw from."""
    fit = fit_tables(SplitScores.stack([scores]))
    noise = noise_posterior(fit.squares, df=fit.df, common=fit.common_variance)
    df, variance = noise.match_scaled_inverse_chi_squared()
    return EffectsPosterior(
        scores=scores,
        location=fit.location[0],
        prob_outlying=noise.weight[0, 0],
        noise_df=np.maximum(df[:, 0], 1.0),
        noise_variance=variance[:, 0],
        split_df=max(scores.counts.shape[1] - 1.0, 1.0),
        split_precision=float(fit.split_precision[0]),
    )
