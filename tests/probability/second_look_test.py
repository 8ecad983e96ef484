from typing import Any, Dict

import numpy as np

from fiesta_allennlp.probability.second_look import doubted

THREE: Dict[str, Any] = {
    "location": np.array([0.70, 0.69, 0.50]),
    "num_runs": np.array([10, 10, 10]),
    "noise_sd": 0.0096,
    "best": 0,
}


def test_one_failed_run_must_not_overturn_the_winner() -> None:
    # At .95, D = 2.4 log2(20) = 10.373. One failed run of ten lowers the mean by 1.0373 noise sds: .00996, or .01006.
    assert doubted(**THREE, confidence=0.95) is None
    noisier = {**THREE, "noise_sd": 0.0097}
    assert doubted(**noisier, confidence=0.95) == 0
    assert doubted(**{**noisier, "num_runs": np.array([10, 9, 10])}, confidence=0.95) == 1
    assert doubted(**noisier, confidence=0.95, margin=0.0001) is None
    # At .8, D = 2.4 log2(5) = 5.573.
    assert doubted(**noisier, confidence=0.8) is None
