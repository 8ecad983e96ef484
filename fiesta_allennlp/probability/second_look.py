"""Whether a winner that P(best) takes for sure is still in doubt, because candidates have too few runs."""

import math
from typing import List

import numpy as np
from scipy.special import ndtri

FAILED_RUN = 2.35
"""A failed run lies so many noise sds times log2(1 / (1 - confidence)) below the others: 10.2 noise sds at .95."""

RUNS_FOR_EACH = 9
"""Every other candidate needs one run for so many runs of the winner, or for as many as there are candidates."""

MOST_TIMES = 2
"""No more than so many times its runs are asked of a candidate at once, for the lead changes with them."""

ERROR_SHARE = 20
"""A noisy candidate's error must be so many times smaller than 1 - confidence."""

MOST_FOR_NOISE = 60
"""No more runs than these are asked of a candidate because it is noisy: the posterior knows its noise by then."""


def lacking(
    location: np.ndarray,
    num_runs: np.ndarray,
    noise_sd: float,
    own_noise_sd: np.ndarray,
    *,
    best: int,
    confidence: float,
    margin: float = 0.0,
) -> List[int]:
    """The candidates to run again before `best` may be named, one for each run that is lacking, in order.

    There are three reasons to run some again:

    - *One failed run of `best` would overturn it.* It would lower the mean of its n runs by D s / n, where s is the
      noise standard deviation and D = `FAILED_RUN` log2(1 / (1 - confidence)). If that exceeds the lead over the
      nearest rival plus the margin, `best` needs as many runs as make up for it, and its rival as many as `best`.
      Whoever has fewer is first. A few clean runs of a candidate that fails at times are then not enough to name it.
    - *Another candidate was hardly tried.* Every candidate needs n / 9 runs, rounded down; n / K where there are more
      than 9 candidates, K of them, so that all together are asked for no more than n. A noisy candidate may have been
      unlucky in its first two runs, and a long selection can afford another look at it. Bandit algorithms for a fixed
      confidence use such forced exploration, see D-tracking (Garivier and Kaufmann, 2016).
    - *A noisy candidate is too near.* A candidate with noise s_i of its own needs (z s_i / d_i)^2 runs, where d_i is
      its distance to `best`, for `best` itself that to its nearest rival, plus the margin, and z the normal quantile of
      1 - (1 - confidence) / 20; 60 runs are enough. The posterior takes all noise for alike until much speaks against
      it, and may be too sure of such a candidate.

    The first reason is told alone where it holds. The nearest candidate is first for the others.

    Args:
        location: the mean scores. Shape: `(num_candidates,)`.
        num_runs: the finished runs. Shape: `(num_candidates,)`.
        noise_sd: the standard deviation of the noise that the candidates have in common.
        own_noise_sd: that of candidates whose noise stands out, 0 for the others. Shape: `(num_candidates,)`.
    """
    lead = location[best] - location + margin
    lead[best] = np.inf
    rival, runs = int(np.argmin(lead)), int(num_runs[best])
    needed = runs_to_win(lead[rival], noise_sd, confidence=confidence)
    if needed > runs:
        return _in_turn(best, rival, num_runs, needed=math.ceil(min(needed, MOST_TIMES * runs)))
    tried = runs // max(RUNS_FOR_EACH, len(num_runs))
    lead[best] = lead[rival]
    noisy = (ndtri(1 - (1 - confidence) / ERROR_SHARE) * own_noise_sd / lead) ** 2
    noisy = np.minimum(noisy, np.minimum(MOST_TIMES * num_runs, MOST_FOR_NOISE))
    missing = np.maximum(np.maximum(tried, np.ceil(noisy)) - num_runs, 0)
    return [int(one) for one in np.argsort(lead, kind="stable") for _ in range(int(missing[one]))]


def runs_to_win(lead: np.ndarray, noise_sd: float, *, confidence: float) -> np.ndarray:
    """How many runs a winner needs, at its lead over the nearest rival plus the margin, so that one failed run would
    not overturn it: D s / lead, infinite without a lead. Shapes: as `lead`."""
    failed_run = -FAILED_RUN * math.log2(1 - confidence) * noise_sd
    with np.errstate(divide="ignore"):
        return np.where(lead > 0, failed_run / lead, np.inf)


def _in_turn(best: int, rival: int, num_runs: np.ndarray, *, needed: int) -> List[int]:
    """Runs of the one with fewer, `best` if they are equal, until `best` has as many as it needs."""
    counts, order = {one: int(num_runs[one]) for one in (best, rival)}, []
    while counts[best] < needed:
        order.append(best if counts[best] <= counts[rival] else rival)
        counts[order[-1]] += 1
    return order
