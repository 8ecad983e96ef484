from typing import Any, Dict

import numpy as np

from fiesta_allennlp.probability.second_look import doubted

THREE: Dict[str, Any] = {
    "location": np.array([0.70, 0.69, 0.50]),
    "num_runs": np.array([10, 10, 10]),
    "noise_sd": 0.0098,
    "best": 0,
}


def test_one_failed_run_must_not_overturn_the_winner() -> None:
    # At .95, D = 2.35 log2(20) = 10.157. One failed run of ten lowers the mean by 1.0157 noise sds: .00995, or .01006.
    assert doubted(**THREE, confidence=0.95) is None
    noisier = {**THREE, "noise_sd": 0.0099}
    assert doubted(**noisier, confidence=0.95) == 0
    assert doubted(**{**noisier, "num_runs": np.array([10, 9, 10])}, confidence=0.95) == 1
    assert doubted(**noisier, confidence=0.95, margin=0.0001) is None
    # At .8, D = 2.35 log2(5) = 5.457.
    assert doubted(**noisier, confidence=0.8) is None


def test_a_candidate_that_was_hardly_tried_runs_again() -> None:
    def again(*num_runs: int) -> Any:
        location = np.array([0.60, 0.70, 0.50, 0.65])
        return doubted(location, np.array(num_runs), 0.001, best=1, confidence=0.95)

    assert again(2, 23, 2, 2) is None
    assert again(2, 24, 3, 3) == 0
    assert again(2, 24, 2, 3) == 0  # the nearer one first
    assert again(3, 24, 2, 3) == 2
    assert again(3, 24, 3, 3) is None
    assert again(4, 32, 4, 3) == 3
    assert again(4, 39, 4, 4) is None
