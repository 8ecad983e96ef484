from typing import Any, Dict

import numpy as np

from fiesta_allennlp.probability.second_look import lacking

THREE: Dict[str, Any] = {
    "location": np.array([0.70, 0.69, 0.50]),
    "num_runs": np.array([10, 10, 10]),
    "noise_sd": 0.0098,
    "own_noise_sd": np.zeros(3),
    "best": 0,
}


def test_one_failed_run_must_not_overturn_the_winner() -> None:
    # At .95, D = 2.35 log2(20) = 10.157. One failed run of ten lowers the mean by 1.0157 noise sds: .00995, or .01006.
    assert lacking(**THREE, confidence=0.95) == []
    noisier = {**THREE, "noise_sd": 0.0099}
    assert lacking(**noisier, confidence=0.95) == [0]
    assert lacking(**{**noisier, "num_runs": np.array([10, 9, 10])}, confidence=0.95) == [1, 0]
    assert lacking(**noisier, confidence=0.95, margin=0.0001) == []
    # At .8, D = 2.35 log2(5) = 5.457.
    assert lacking(**noisier, confidence=0.8) == []


def test_the_runs_that_make_up_for_a_failed_one_are_told_in_turn() -> None:
    # 10.157 x .0128 / .01 = 13.0009 runs of the winner
    assert lacking(**{**THREE, "noise_sd": 0.0128}, confidence=0.95) == [0, 1, 0, 1, 0, 1, 0]
    # 10.157 x .03 / .01 = 30.5 would be more than twice the present ones; without a lead no number is enough
    assert lacking(**{**THREE, "noise_sd": 0.03}, confidence=0.95).count(0) == 10
    assert lacking(**{**THREE, "best": 1}, confidence=0.95, margin=0.001).count(1) == 10


def test_a_candidate_that_was_hardly_tried_runs_again() -> None:
    def again(*num_runs: int) -> Any:
        location = np.array([0.60, 0.70, 0.50, 0.65])
        return lacking(location, np.array(num_runs), 0.001, np.zeros(4), best=1, confidence=0.95)

    assert again(2, 26, 2, 2) == []
    assert again(2, 27, 3, 3) == [0]
    assert again(2, 27, 2, 3) == [0, 2]  # the nearer one first
    assert again(3, 27, 2, 3) == [2]
    assert again(3, 27, 3, 3) == []
    assert again(2, 45, 4, 2) == [3, 3, 3, 0, 0, 0, 2]
    assert again(4, 44, 4, 4) == []


def test_many_candidates_are_asked_for_no_more_runs_together_than_the_winner_has() -> None:
    def again(most: int, num_candidates: int) -> Any:
        location = np.array([0.70] + [0.50] * (num_candidates - 1))
        num_runs = np.array([most] + [2] * (num_candidates - 1))
        return lacking(location, num_runs, 0.001, np.zeros(num_candidates), best=0, confidence=0.95)

    assert again(59, 20) == []
    assert again(60, 20) == list(range(1, 20))
    assert again(27, 8) == list(range(1, 8))


def test_a_noisy_candidate_that_is_near_runs_again() -> None:
    def again(*own: float, confidence: float = 0.95, margin: float = 0.0) -> Any:
        return lacking(**{**THREE, "own_noise_sd": np.array(own)}, confidence=confidence, margin=margin)

    # At .95, z = 2.8070 is the quantile of 1 - .05 / 20: a noise of .013 and a distance of .01 take 13.32 runs.
    assert again(0.0, 0.013, 0.0) == [1] * 4
    assert again(0.013, 0.0, 0.0) == [0] * 4, "the winner's distance is that to its rival"
    assert again(0.0, 0.013, 0.0, margin=0.0025) == [], "8.52 runs"
    assert again(0.0, 0.013, 0.0, confidence=0.8) == [], "z = 2.3263: 9.15 runs"
    assert again(0.0, 0.0, 0.1) == [], "1.97 runs of the one that is far behind"
    assert again(0.0, 0.03, 0.0) == [1] * 10, "71 would be more than twice the present ones"
    many = {**THREE, "num_runs": np.array([50, 50, 50]), "own_noise_sd": np.array([0.0, 0.1, 0.0])}
    assert lacking(**many, confidence=0.95) == [1] * 10, "60 are enough"
