import math
from dataclasses import replace

import numpy as np
import pytest

from fiesta_allennlp.probability.second_look import Evidence, doubts

THREE = Evidence(
    location=np.array([0.70, 0.69, 0.50]),
    scale=np.full(3, 0.001),
    odd_scale=np.full(3, 0.001),
    odd_df=np.full(3, 1.0),
    num_runs=np.array([10, 10, 10]),
    noise_sd=0.0105,
)


def test_one_failed_run_must_not_overturn_the_winner() -> None:
    # At .95, D = 2.2 log2(20) = 9.508. One failed run of ten lowers the mean by .9508 noise sds: .00998, or .01008.
    assert doubts(THREE, 0, confidence=0.95) == []
    noisier = replace(THREE, noise_sd=0.0106)
    assert doubts(noisier, 0, confidence=0.95) == [0]
    assert doubts(replace(noisier, num_runs=np.array([10, 9, 10])), 0, confidence=0.95) == [1]
    assert doubts(noisier, 0, confidence=0.95, margin=0.0001) == []
    # At .8, D = 2.2 log2(5) = 5.108.
    assert doubts(noisier, 0, confidence=0.8) == []


def test_a_rival_with_few_runs_may_have_odd_noise() -> None:
    # With one degree of freedom P(t < -x) = 1/2 - atan(x) / pi, which is .3 x .05 at x = 1 / tan(.015 pi) = 21.2.
    few = replace(THREE, location=np.array([1.0, 0.0, -9.0]), num_runs=np.array([20, 2, 20]), scale=np.zeros(3))
    at = 1 / math.tan(0.015 * math.pi)
    for factor, found in ((1.01, []), (0.99, [1])):
        spread = np.array([0.0, 1 / (factor * at), 0.0])
        assert doubts(replace(few, odd_scale=spread), 0, confidence=0.95) == found
    # It has shown its noise with three runs.
    assert doubts(replace(few, odd_scale=np.ones(3), num_runs=np.array([20, 3, 20])), 0, confidence=0.95) == []


@pytest.mark.parametrize("best", [0, 2])
def test_the_most_doubtful_comes_first(best: int) -> None:
    location = np.array([0.0, -2.0, -1.0])
    location[best] = 1.0
    spread = replace(THREE, location=location, odd_scale=np.ones(3), num_runs=np.full(3, 2), noise_sd=0.0)
    others = sorted((j for j in range(3) if j != best), key=lambda j: -location[j])
    assert doubts(spread, best, confidence=0.95) == others
