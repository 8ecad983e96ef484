from typing import Dict

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.replays.sources import NOISE_SD, PRESETS, SPLIT_SD, DrawnScores, Sampling

LENGTH = 20_000


def drawn(name: str, *, shared: bool) -> DrawnScores:
    preset = PRESETS[name]
    rngs: Dict[str, np.random.Generator] = {
        candidate: np.random.default_rng(number) for number, candidate in enumerate(preset.true_means())
    }
    return preset.draw(Sampling(shared, False, LENGTH), split_rng=np.random.default_rng(99), score_rngs=rngs)


@pytest.mark.parametrize("name", PRESETS)
def test_scores_have_the_means_and_standard_deviations_that_they_should(name: str) -> None:
    scores = drawn(name, shared=True)
    sd = np.hypot(SPLIT_SD, NOISE_SD)
    for candidate, mean in PRESETS[name].true_means().items():
        expected = np.hypot(SPLIT_SD, 3 * NOISE_SD) if candidate == "noisy" else sd
        # Five standard errors, of the mean and of the standard deviation
        assert np.mean(scores.scores[candidate]) == pytest.approx(mean, abs=5 * expected / LENGTH**0.5)
        assert np.std(scores.scores[candidate]) == pytest.approx(expected, rel=5 / (2 * LENGTH) ** 0.5)


def test_shared_splits_correlate_and_independent_ones_do_not() -> None:
    expected = SPLIT_SD**2 / (SPLIT_SD**2 + NOISE_SD**2)
    for shared, correlation in ((True, expected), (False, 0.0)):
        scores = drawn("tdsa-8", shared=shared)
        found = np.corrcoef(scores.scores["ian"], scores.scores["atae"])[0, 1]
        assert found == pytest.approx(correlation, abs=5 / LENGTH**0.5)
        same = scores.request("ian", 3).split_seed == scores.request("atae", 3).split_seed
        assert same == shared
        assert len(set(scores.splits["ian"].tolist())) == LENGTH


def test_replacement_means_nothing_for_a_preset() -> None:
    with pytest.raises(ConfigError, match="--with-replacement: the scores of the preset tie never run out"):
        PRESETS["tie"].check(Sampling(True, True, 10))
