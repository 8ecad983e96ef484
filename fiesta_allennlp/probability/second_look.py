"""Whether one failed run could overturn a winner that P(best) takes for sure."""

import math
from dataclasses import dataclass
from typing import Optional

import numpy as np

FAILED_RUN = 2.2
"""A failed run lies so many noise sds times log2(1 / (1 - confidence)) below the others: 9.5 noise sds at .95."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the check needs of the posterior.

    `location`: the mean scores; `num_runs`: finished runs; both of shape `(num_candidates,)`. `noise_sd` is the
    standard deviation of the noise that the candidates have in common.
    """

    location: np.ndarray
    num_runs: np.ndarray
    noise_sd: float


def doubted(evidence: Evidence, best: int, *, confidence: float, margin: float = 0.0) -> Optional[int]:
    """The candidate to run again before `best` may be named; None if one failed run would not overturn it.

    If one of the n runs of `best` had failed, its mean would be lower by D s / n, where s is the noise standard
    deviation and D = `FAILED_RUN` log2(1 / (1 - confidence)). If that exceeds the lead over the nearest rival plus the
    margin, `best` and this rival are in doubt, and the one with fewer runs is the answer. A few clean runs of a
    candidate that fails at times are then not enough to name it.
    """
    lead = evidence.location[best] - evidence.location + margin
    lead[best] = np.inf
    rival = int(np.argmin(lead))
    failed_run = -FAILED_RUN * math.log2(1 - confidence) * evidence.noise_sd / evidence.num_runs[best]
    if failed_run <= lead[rival]:
        return None
    return best if evidence.num_runs[best] <= evidence.num_runs[rival] else rival
