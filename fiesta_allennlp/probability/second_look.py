"""Whether a winner that P(best) takes for sure is still in doubt, because candidates have too few runs."""

import math
from typing import Optional

import numpy as np

FAILED_RUN = 2.35
"""A failed run lies so many noise sds times log2(1 / (1 - confidence)) below the others: 10.2 noise sds at .95."""

RUNS_FOR_EACH = 8
"""Every other candidate needs one run for so many runs of the winner."""


def doubted(
    location: np.ndarray, num_runs: np.ndarray, noise_sd: float, *, best: int, confidence: float, margin: float = 0.0
) -> Optional[int]:
    """The candidate to run again before `best` may be named; None if there is no doubt.

    There are two reasons for doubt:

    - *One failed run of `best` would overturn it.* It would lower the mean of its n runs by D s / n, where s is the
      noise standard deviation and D = `FAILED_RUN` log2(1 / (1 - confidence)). If that exceeds the lead over the
      nearest rival plus the margin, the one of the two with fewer runs is the answer. A few clean runs of a candidate
      that fails at times are then not enough to name it.
    - *Another candidate was hardly tried.* Every candidate needs n / `RUNS_FOR_EACH` runs, rounded down; one that has
      fewer is the answer. A noisy candidate may have been unlucky in its first two runs, and a long selection
      can afford another look at it. Bandit algorithms for a fixed confidence use such forced exploration, see
      D-tracking (Garivier and Kaufmann, 2016).

    Args:
        location: the mean scores. Shape: `(num_candidates,)`.
        num_runs: the finished runs. Shape: `(num_candidates,)`.
        noise_sd: the standard deviation of the noise that the candidates have in common.
    """
    lead = location[best] - location + margin
    lead[best] = np.inf
    rival = int(np.argmin(lead))
    failed_run = -FAILED_RUN * math.log2(1 - confidence) * noise_sd / num_runs[best]
    if failed_run > lead[rival]:
        return best if num_runs[best] <= num_runs[rival] else rival
    hardly_tried = np.flatnonzero(num_runs < num_runs[best] // RUNS_FOR_EACH)
    return int(hardly_tried[np.argmin(lead[hardly_tried])]) if len(hardly_tried) else None
