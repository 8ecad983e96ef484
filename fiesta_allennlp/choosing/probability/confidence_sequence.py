"""Evidence that a normal mean is above 0, valid at all sample sizes at once, with the variance unknown."""

import numpy as np
from scipy.special import gammainccinv, stdtr

PRIOR_PRECISION = 0.5
"""g: the effect size of the mixture is half-normal with variance 1/g. In a simulation with 1,500 sequences of normal
differences, effect sizes 0.8 to 2 and thresholds 40 and 160, it took 8 to 25 differences to reach the threshold, and
0.5 came within 4% of the best of {0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 4} for each of them."""

NUM_GRID_CELLS = 400


def log_evidence(counts: np.ndarray, sums: np.ndarray, sums_of_squares: np.ndarray) -> np.ndarray:
    """log E_m of normal differences D_1, ..., D_m of unknown variance, against the hypothesis that their mean is <= 0.

    With T = sum D, S = sum D^2, A = S - T^2 / (m + g) and F_m the distribution function of Student's t::

        E_m = sqrt(g / (m + g)) (S / A)^(m/2) 2 F_m(T sqrt(m / ((m + g) A)))

    This is the likelihood of D_1/|D_1|, ..., D_m/|D_1| with half-normal effect sizes (mean / sd) of variance 1/g, over
    that with effect size 0; both have the scale integrated out with 1/sigma. S / A rises with t^2, so E_m >= c says
    that the generalised likelihood ratio (m/2) log(1 + t^2 / (m - 1)) exceeds a number that depends on m alone.

    To derive it, put u = 1/sigma with density 1/u. Integrate the likelihood over the effect size theta > 0, whose
    density is 2 sqrt(g / (2 pi)) exp(-g theta^2 / 2)::

        u^(m-1) exp(-(S u^2 - 2 theta T u + m theta^2) / 2)
        -> sqrt(g / (m + g)) u^(m-1) exp(-A u^2 / 2) 2 Phi(T u / sqrt(m + g))

    Then integrate over u. A u^2 is chi-squared with m degrees of freedom, so Phi becomes F_m. The rest gives A^(-m/2),
    and S^(-m/2) without an effect.

    Under mean 0, E_m is a non-negative martingale that begins at 1, whatever the variance, with respect to what these
    ratios tell (Lai, 1976; Wang and Ramdas, 2023), and by Ville's inequality P(some E_m >= c) <= 1/c. To add one
    number to all D_k raises t and leaves the sd as it is, and E_m rises with t by the monotone likelihood ratio of
    the noncentral t: a mean below 0 makes all E_m only smaller. Jourdan, Degenne and Kaufmann (2022) calibrate these
    ratios with other bounds.

    If all differences are equal and not 0, the evidence grows with m but stays finite. With g = 0.5 it reaches the
    threshold 40 (two candidates at 0.95) after 4 differences, and 160 (eight candidates) after 5.

    `counts` (m, at least 1), `sums` (T) and `sums_of_squares` (S) may have any shapes that go together. Where S is 0,
    nothing was seen to differ and the evidence is log 1.
    """
    is_varying = sums_of_squares > 0
    squares = np.where(is_varying, sums_of_squares, 1.0)
    residual = squares - sums**2 / (counts + PRIOR_PRECISION)
    prob_below = stdtr(counts, sums * np.sqrt(counts / ((counts + PRIOR_PRECISION) * residual)))
    with np.errstate(divide="ignore"):
        log_tail = np.log(2 * prob_below)
    log_prior = 0.5 * np.log(PRIOR_PRECISION / (counts + PRIOR_PRECISION))
    return np.where(is_varying, log_prior + counts / 2 * (np.log(squares) - np.log(residual)) + log_tail, 0.0)


def max_log_evidence(differences: np.ndarray) -> float:
    """The largest log E_m over all beginnings of the sequence, and of none: at least 0.

    `differences` has the shape `(num_differences,)`.
    """
    counts = np.arange(1.0, len(differences) + 1)
    log_evidences = log_evidence(counts, np.cumsum(differences), np.cumsum(differences**2))
    return float(np.max(log_evidences, initial=0.0))


def unpaired_log_evidence(higher_scores: np.ndarray, lower_scores: np.ndarray) -> float:
    """Evidence that one mean is above another, from two independent samples with unknown variances. It is much weaker
    than the evidence of pairs.

    The least over u of max(0, log E(higher - u)) + max(0, log E(u - lower)). Where the mean of `higher_scores` is not
    above the mean of `lower_scores`, both hypotheses hold at the latter's u; over all sizes of the two samples, each
    term is then dominated by an exponential variable, they are independent, and so::

        P(some value >= c) <= (1 + c) exp(-c)

    The first term falls with u and the second rises, so values at the ends of `NUM_GRID_CELLS` cells bound it from
    below: what is returned is this bound. Below the lower mean the second is 0, above the higher one the first.

    Both have shapes `(count,)` of their own, at least 1 score each.
    """
    shift_grid = np.linspace(lower_scores.mean(), higher_scores.mean(), NUM_GRID_CELLS + 1)
    if shift_grid[-1] <= shift_grid[0]:
        return 0.0
    higher_evidence = np.maximum(_log_evidence_above(higher_scores, shift_grid, 1.0), 0.0)
    lower_evidence = np.maximum(_log_evidence_above(lower_scores, shift_grid, -1.0), 0.0)
    return float(np.min(higher_evidence[1:] + lower_evidence[:-1]))


def unpaired_threshold(error: float) -> float:
    """The c with (1 + c) exp(-c) = `error`."""
    return float(gammainccinv(2, error))


def _log_evidence_above(scores: np.ndarray, shift_grid: np.ndarray, sign: float) -> np.ndarray:
    """log E of sign (scores - u) for each u of `shift_grid`. Shape: that of `shift_grid`."""
    count = np.array(float(len(scores)))
    shifts = scores.mean() - shift_grid
    return log_evidence(count, sign * count * shifts, np.sum((scores - scores.mean()) ** 2) + count * shifts**2)
