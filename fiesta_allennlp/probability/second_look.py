"""What could still overturn a winner: runs that P(best) takes for ordinary and that may not be."""

import math
from dataclasses import dataclass
from typing import List

import numpy as np
from scipy.special import stdtr

FEW_RUNS = 2
"""A rival with more runs than this has shown its own noise."""

OVERTURNS = 0.3
"""A rival is in doubt if it wins with more than this share of 1 - confidence once its noise is odd."""

FAILED_RUN = 2.2
"""A failed run lies so many noise sds times log2(1 / (1 - confidence)) below the others: 9.5 noise sds at .95."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Each candidate's mean score as the posterior has it, and as it would be with odd noise.

    `location`, `scale`: the mean score and its standard error. `odd_scale`, `odd_df`: the scale and the degrees of
    freedom of its Student-t posterior if nothing were known of its noise but its own runs and the common scale.
    `num_runs`: its finished runs. All of shape `(num_candidates,)`. `noise_sd` is the common noise standard deviation.
    """

    location: np.ndarray
    scale: np.ndarray
    odd_scale: np.ndarray
    odd_df: np.ndarray
    num_runs: np.ndarray
    noise_sd: float


def doubts(evidence: Evidence, best: int, *, confidence: float, margin: float = 0.0) -> List[int]:
    """The candidates to run again before `best` may be named, the most doubtful first. Empty if nothing is in doubt.

    Two checks, with d_j = location_best - location_j + margin:

    1. *One failed run.* If one of the n runs of `best` had failed, its mean would be lower by D s / n, where s is the
       common noise standard deviation and D = `FAILED_RUN` log2(1 / (1 - confidence)). If that exceeds the smallest
       d_j, `best` and this rival are in doubt, and the one with fewer runs is listed. A few clean runs of a candidate
       that fails at times are then not enough to name it.
    2. *Odd noise.* A rival with at most `FEW_RUNS` runs whose noise is odd beats `best` with probability
       T(-d_j / sqrt(odd_scale_j^2 + scale_best^2)), with T Student's distribution function with odd_df_j degrees of
       freedom. If that exceeds `OVERTURNS` (1 - confidence), the rival is in doubt. Two unlucky runs of a noisy
       candidate are then not enough to reject it.
    """
    rivals = np.delete(np.arange(len(evidence.location)), best)
    distance = evidence.location[best] - evidence.location[rivals] + margin
    spread = np.hypot(evidence.odd_scale[rivals], evidence.scale[best])
    with np.errstate(over="ignore"):
        overturned = stdtr(evidence.odd_df[rivals], -distance / np.maximum(spread, np.finfo(float).tiny))
    overturned[evidence.num_runs[rivals] > FEW_RUNS] = 0.0
    order = np.argsort(-overturned, kind="stable")
    doubtful = [int(rivals[k]) for k in order if overturned[k] > OVERTURNS * (1 - confidence)]
    nearest = int(np.argmin(distance))
    failed_run = -FAILED_RUN * math.log2(1 - confidence) * evidence.noise_sd / evidence.num_runs[best]
    if failed_run > distance[nearest]:
        rival = int(rivals[nearest])
        lagging = best if evidence.num_runs[best] <= evidence.num_runs[rival] else rival
        doubtful = [lagging, *(name for name in doubtful if name != lagging)]
    return doubtful
