"""Score sources that need no data: normal scores with known means."""

from dataclasses import dataclass, field, replace
from typing import Dict, Mapping, Sequence

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.evaluators.score_source import DrawnScores, Sampling, ScoreSource, numbered_apart

SPLIT_SD = 0.0211
NOISE_SD = 0.0198
"""Standard deviations between splits and within one, over the released scores of the FIESTA paper."""

TDSA_MEANS = {
    "tdlstm": 0.6462,
    "atae": 0.6323,
    "ian": 0.6319,
    "tdlstm_50": 0.6095,
    "lstm": 0.6062,
    "atae_50": 0.5946,
    "ian_50": 0.5925,
    "lstm_50": 0.5679,
}
TDSA_200_MEANS = {"tdlstm_200": 0.6306, "atae_200": 0.6178, "ian_200": 0.6157, "lstm_200": 0.5890}
"""Mean test macro-F1 of the paper's candidates: the 8 of its section 5.2, and the 4 more of its section 5.1."""


@dataclass(frozen=True)
class ScorePreset(ScoreSource):
    """Scores mean_i + split_k + noise_ik, normal, with the split's effect shared by all candidates on that split.

    They are drawn anew, so they never run out, and no split comes twice.

    # Parameters

    name : the preset's.
    means : by candidate, in units of the score.
    noise_sds : standard deviation of the noise where it is not `NOISE_SD`, by candidate.
    split_sd : standard deviation of the splits' effects.
    """

    name: str
    means: Mapping[str, float]
    noise_sds: Mapping[str, float] = field(default_factory=dict)
    split_sd: float = SPLIT_SD

    def true_means(self) -> Dict[str, float]:
        return dict(self.means)

    def restricted(self, names: Sequence[str]) -> "ScorePreset":
        return replace(self, means={name: self.means[name] for name in names})

    def check(self, sampling: Sampling) -> None:
        """# Raises

        `ConfigError` : with replacement, which has no meaning here.
        """
        if sampling.with_replacement:
            raise ConfigError(f"--with-replacement: the scores of the preset {self.name} never run out. Leave it out.")

    def noise(self, name: str, rng: np.random.Generator, length: int) -> np.ndarray:
        """What is left of one candidate's scores beside its mean and the splits' effects. Shape: `(length,)`."""
        return rng.normal(0, self.noise_sds.get(name, NOISE_SD), length)

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        length = sampling.length
        shared = split_rng.normal(0, self.split_sd, length)
        scores: Dict[str, np.ndarray] = {}
        for name, mean in self.means.items():
            rng = score_rngs[name]
            effects = shared if sampling.shared_splits else rng.normal(0, self.split_sd, length)
            scores[name] = mean + effects + self.noise(name, rng, length)
        if sampling.shared_splits:
            splits: Mapping[str, np.ndarray] = dict.fromkeys(scores, np.arange(length))
        else:
            splits = numbered_apart(list(scores), dict.fromkeys(scores, length))
        return DrawnScores(splits, scores, self.name)


PRESETS: Mapping[str, ScorePreset] = {
    preset.name: preset
    for preset in (
        ScorePreset("tdsa-8", TDSA_MEANS),
        ScorePreset("tdsa-12", {**TDSA_MEANS, **TDSA_200_MEANS}),
        ScorePreset("tie", {"first": 0.64, "second": 0.64, "third": 0.62, "fourth": 0.60}),
        ScorePreset(
            "noisy", {"best": 0.64, "noisy": 0.62, "third": 0.62, "fourth": 0.60}, noise_sds={"noisy": 3 * NOISE_SD}
        ),
    )
}
"""`tie` has two best candidates; in `noisy` one that is not the best varies three times as much as the others."""
