"""How little evidence separates a leader from its challengers."""

import numpy as np


def transportation_cost(ahead: np.ndarray, variance: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The improved transportation cost (Jourdan et al., 2022): sign(z) z^2 / 2 + log n_J, z = ahead / sqrt(variance).

    Args:
        ahead: how far the leader is ahead of each candidate J.
        variance: the posterior variance of `ahead`; 0 where both means are known.
        runs: n_J, at least 1. All shapes are alike.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.sign(ahead) * ahead**2 / variance / 2) + np.log(runs)
