"""Whether one failed run could overturn a winner that P(best) takes for sure."""

import math
from typing import Optional

import numpy as np

FAILED_RUN = 2.4
"""A failed run lies so many noise sds times log2(1 / (1 - confidence)) below the others: 10.4 noise sds at .95."""


def doubted(
    location: np.ndarray, num_runs: np.ndarray, noise_sd: float, *, best: int, confidence: float, margin: float = 0.0
) -> Optional[int]:
    """The candidate to run again before `best` may be named; None if one failed run would not overturn it.

    If one of the n runs of `best` had failed, its mean would be lower by D s / n, where s is the noise standard
    deviation and D = `FAILED_RUN` log2(1 / (1 - confidence)). If that exceeds the lead over the nearest rival plus the
    margin, `best` and this rival are in doubt, and the one with fewer runs is the answer. A few clean runs of a
    candidate that fails at times are then not enough to name it.

    Args:
        location: the mean scores, and how many runs they are of. Shape: `(num_candidates,)`.
        num_runs: the mean scores, and how many runs they are of. Shape: `(num_candidates,)`.
        noise_sd: the standard deviation of the noise that the candidates have in common.
    """
    lead = location[best] - location + margin
    lead[best] = np.inf
    rival = int(np.argmin(lead))
    failed_run = -FAILED_RUN * math.log2(1 - confidence) * noise_sd / num_runs[best]
    if failed_run <= lead[rival]:
        return None
    return best if num_runs[best] <= num_runs[rival] else rival
