from typing import Any, Dict

import numpy as np

from fiesta_allennlp.probability.second_look import doubted

THREE: Dict[str, Any] = {
    "location": np.array([0.70, 0.69, 0.50]),
    "num_runs": np.array([10, 10, 10]),
    "noise_sd": 0.0105,
    "best": 0,
}


def test_one_failed_run_must_not_overturn_the_winner() -> None:
    # At .95, D = 2.2 log2(20) = 9.508. One failed run of ten lowers the mean by .9508 noise sds: .00998, or .01008.
    assert doubted(**THREE, confidence=0.95) is None
    noisier = {**THREE, "noise_sd": 0.0106}
    assert doubted(**noisier, confidence=0.95) == 0
    assert doubted(**{**noisier, "num_runs": np.array([10, 9, 10])}, confidence=0.95) == 1
    assert doubted(**noisier, confidence=0.95, margin=0.0001) is None
    # At .8, D = 2.2 log2(5) = 5.108.
    assert doubted(**noisier, confidence=0.8) is None
