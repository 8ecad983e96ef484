"""Families of synthetic problems: some that earlier rules were tuned on, and others only to report error rates.

No family is in both sets. Where a rule was changed after its results on a family were seen, the family became one for
tuning.
"""

from dataclasses import dataclass, field, replace
from typing import Dict, Iterator, Mapping, Optional, Tuple

import numpy as np
from common import TDSA_MEANS

from fiesta_allennlp.tables.simulation.planning import NOISE_SD, ScorePreset
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling


@dataclass(frozen=True)
class Family(ScorePreset):
    """Scores of candidates whose noise differs from the normal noise of a preset.

    Attributes:
        tail_df: degrees of freedom of Student-t noise with the same standard deviation; None for normal noise.
        skew: shape parameter k of gamma noise, whose skewness is -2 / sqrt(k); None for symmetric noise.
        failing: rate and cost of failures by candidate. The cost is in noise standard deviations. The mean stays.
        noise_growth: the noise standard deviation of a candidate is multiplied by exp(growth * gap), where the gap is
            the distance of its mean to the lowest mean in noise standard deviations.
        items: the score is the accuracy on this number of test items; None for a continuous score.
        clusters: cluster of each candidate. Candidates of one cluster share an effect of the split.
        cluster_sd: standard deviation of that effect.
        margin: the indifference zone of the selection.
        workers: number of runs at once.
    """

    tail_df: Optional[float] = None
    skew: Optional[float] = None
    failing: Mapping[str, Tuple[float, float]] = field(default_factory=dict)
    noise_growth: float = 0.0
    items: Optional[int] = None
    clusters: Mapping[str, int] = field(default_factory=dict)
    cluster_sd: float = NOISE_SD
    margin: float = 0.0
    workers: int = 1

    def noise(self, name: str, rng: np.random.Generator, length: int) -> np.ndarray:
        noise = self._standard_noise(rng, length) * self._noise_sd(name)
        rate, cost = self.failing.get(name, (0.0, 0.0))
        return noise + cost * NOISE_SD * (rate - (rng.random(length) < rate))

    def _standard_noise(self, rng: np.random.Generator, length: int) -> np.ndarray:
        if self.tail_df is not None:
            return rng.standard_t(self.tail_df, length) * np.sqrt((self.tail_df - 2) / self.tail_df)
        if self.skew is not None:
            return (self.skew - rng.gamma(self.skew, size=length)) / np.sqrt(self.skew)
        return rng.normal(size=length)

    def _noise_sd(self, name: str) -> float:
        gap = (self.means[name] - min(self.means.values())) / NOISE_SD
        return self.noise_sds.get(name, NOISE_SD) * float(np.exp(self.noise_growth * gap))

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        normal_scores = super().draw(sampling, split_rng=split_rng, score_rngs=score_rngs)
        scores = dict(normal_scores.scores)
        if self.clusters:
            effects = split_rng.normal(0, self.cluster_sd, (max(self.clusters.values()) + 1, sampling.length))
            scores = {name: values + effects[self.clusters[name]] for name, values in scores.items()}
        if self.items is not None:
            scores = {
                name: score_rngs[name].binomial(self.items, np.clip(values, 0, 1)) / self.items
                for name, values in scores.items()
            }
        return replace(normal_scores, scores=scores)


def noisier(factor: float, *names: str) -> Mapping[str, float]:
    """The noise standard deviations of candidates that are `factor` times as noisy as the others."""
    return dict.fromkeys(names, factor * NOISE_SD)


def means_at_gaps(*gaps: float) -> Mapping[str, float]:
    """Means of candidates a, b, c, ... that lie these numbers of noise standard deviations below the best."""
    return {chr(ord("a") + index): 0.65 - gap * NOISE_SD for index, gap in enumerate(gaps)}


@dataclass(frozen=True)
class RandomFamily(Family):
    """Normal scores of candidates whose means and noise are drawn again for each repetition.

    The means are normal, with a standard deviation of one noise standard deviation, and so are the logarithms of the
    noise, with a standard deviation of `log_noise_sd`.
    """

    log_noise_sd: float = 0.7

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        gaps, log_noise = split_rng.normal(size=(2, len(self.means)))
        means = {name: 0.65 + NOISE_SD * float(gap) for name, gap in zip(self.means, gaps, strict=True)}
        noise_sds = dict(zip(means, (NOISE_SD * np.exp(self.log_noise_sd * log_noise)).tolist(), strict=True))
        family = Family(self.name, means, noise_sds)
        return replace(family.draw(sampling, split_rng=split_rng, score_rngs=score_rngs), true_means=means)


BEST, SECOND, THIRD = "a", "b", "c"


def families_with_means(means: Mapping[str, float]) -> Iterator[Family]:
    """Yield families of at least six candidates with these means whose noise is not alike, not normal or not
    independent."""
    num_candidates = len(means)
    for factor in (1.5, 2, 5):
        for label, name in (("best", BEST), ("second", SECOND), ("third", THIRD)):
            yield Family(f"{label} {factor} times as noisy, {num_candidates}", means, noisier(factor, name))
    yield Family(f"half of {num_candidates} twice as noisy", means, noisier(2, "a", "d", "e"))
    for rate in (0.05, 0.3):
        for cost in (3, 5, 10):
            for label, name in (("best", BEST), ("second", SECOND)):
                failing = f"{label} fails at rate {rate}, which costs {cost} sds, {num_candidates}"
                yield Family(failing, means, failing={name: (rate, cost)})
    yield Family(f"skewed noise, {num_candidates}", means, skew=2.0)
    yield Family(f"noise grows with the mean, {num_candidates}", means, noise_growth=0.3)
    clusters = {name: place % 2 for place, name in enumerate(means)}
    yield Family(f"two clusters of correlated candidates, {num_candidates}", means, clusters=clusters)
    yield Family(f"4 workers, the best 2 times as noisy, {num_candidates}", means, noisier(2, BEST), workers=4)


LEAD_OF_7, LEAD_OF_10 = (0, 0.7, 1.1, 1.4, 2.0, 2.6, 3.2), (0, 0.7, 0.9, 1.2, 1.5, 1.9, 2.3, 2.7, 3.1, 3.6)
"""Distances from the best in noise standard deviations."""

TUNING_FAMILIES = (
    Family("second-best three times as noisy, 8", TDSA_MEANS, noisier(3, "atae")),
    Family("best three times as noisy, 8", TDSA_MEANS, noisier(3, "tdlstm")),
    Family("second-best fails to converge at times, 8", TDSA_MEANS, failing={"atae": (0.2, 5.05)}),
    Family("near tie, 4", {"a": 0.640, "b": 0.637, "c": 0.620, "d": 0.600}, margin=0.01),
    Family("two of 5 three times as noisy", means_at_gaps(0, 0.9, 1.2, 1.8, 2.5), noisier(3, BEST, THIRD)),
    *families_with_means(means_at_gaps(0, 0.8, 1.0, 1.6, 2.2, 3.0)),
    *families_with_means(means_at_gaps(*LEAD_OF_7)),
)
"""Families that earlier rules were tuned on."""

REPORTING_FAMILIES = (
    Family("2 candidates, 0.8 sds apart", means_at_gaps(0, 0.8)),
    Family("3 candidates, 0.7 sds apart", means_at_gaps(0, 0.7, 1.4)),
    Family("5 candidates, the second 0.6 sds behind", means_at_gaps(0, 0.6, 1.0, 1.2, 2.4)),
    Family("20 candidates, 0.35 sds apart", {f"c{k}": 0.65 - NOISE_SD * (0.3 + 0.35 * k) * (k > 0) for k in range(20)}),
    Family("2 candidates, the best 2.5 times as noisy", means_at_gaps(0, 1.1), noisier(2.5, BEST)),
    Family("4 candidates, the second 2.5 times as noisy", means_at_gaps(0, 0.8, 1.3, 1.9), noisier(2.5, SECOND)),
    Family("two of 6 four times as noisy", means_at_gaps(0, 1.1, 1.3, 1.7, 2.3, 3.0), noisier(4, SECOND, THIRD)),
    Family(
        "best of 5 fails at rate 0.15, which costs 7 sds",
        means_at_gaps(0, 0.9, 1.2, 1.6, 2.8),
        failing={BEST: (0.15, 7)},
    ),
    Family("heavy tails (t with 5 df), 7", means_at_gaps(0, 0.65, 1.0, 1.5, 2.0, 2.4, 3.1), tail_df=5.0),
    Family("accuracy on 100 items, 6", means_at_gaps(0, 2.2, 2.4, 3.5, 4.5, 6.0), split_sd=0.01, items=100),
    *families_with_means(means_at_gaps(0, 0.9, 1.0, 1.2, 1.7, 2.1, 2.5, 3.0, 3.6)),
)

NOISE_FAMILIES = (
    *(
        family
        for family in families_with_means(means_at_gaps(*LEAD_OF_10))
        if family.name.startswith(("best 5 times as noisy", "second 5 times as noisy"))
    ),
    *(
        RandomFamily(f"noise of {number} drawn with a log sd of 0.7", means_at_gaps(*range(number)))
        for number in (5, 8)
    ),
    Family(
        "two near copies, 8",
        means_at_gaps(0, 0.2, 1, 1.5, 2, 2.5, 3, 3.5),
        noisier(0.1, *"abcdefgh"),
        clusters={name: max(0, number - 1) for number, name in enumerate("abcdefgh")},
    ),
)
"""Families of unequal noise. The leads are 0.7 sds, or means and noise are drawn, or the best two share all but a tenth
of their noise and are 0.2 sds apart."""

CLEAR_FAMILIES = (
    Family("2 candidates, 3 sds apart", means_at_gaps(0, 3)),
    Family("3 candidates, 0, 5 and 10 sds below the best", means_at_gaps(0, 5, 10)),
    Family("4 candidates, 0, 2, 3 and 4 sds below the best", means_at_gaps(0, 2, 3, 4)),
)
"""Families that a few runs decide."""

SETS: Dict[str, Tuple[Family, ...]] = {
    "tuning": TUNING_FAMILIES,
    "reporting": REPORTING_FAMILIES,
    "noise": NOISE_FAMILIES,
    "clear": CLEAR_FAMILIES,
}
