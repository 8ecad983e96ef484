"""P(best): by the odds of leads, which is the default, and for independent Student-t variables by quadrature. Nothing
is simulated, hence there is no noise in a stopping rule.

The probability that independent variable i is the largest, or within `margin` of the largest, is

    P_i = integral f_i(x) prod_{j != i} F_j(x + margin) dx.

All densities are evaluated at the Gauss-Legendre nodes of one common set of panels. The distribution functions come
from the same values, integrated panel by panel, which costs a hundredth of `scipy.special.stdtr`.

`logit` takes scores in [0, 1] to the whole line, where a Student-t posterior may fit them better."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from scipy.special import gammaln, stdtr, stdtrit

from fiesta_allennlp.core.errors import ConfigError, ScoreError

LOGIT_CLIP = 1e-6
"""Scores nearer than this to 0 or 1 are taken as this near."""

MAX_TAIL = 1 - 1e-12
"""The greatest probability that a rival is better: its odds must be finite."""

NEGLIGIBLE_PROB = 1e-10
"""Probability that is left out at either end of the line."""

POINT_RATIO = 1e-13
"""A scale this much smaller than the largest scale and distance is below what doubles can resolve."""


NUM_NODES = 16
"""Nodes of every panel. One panel is about as wide as the narrowest density around is smooth."""

_NODES, _WEIGHTS = legendre.leggauss(NUM_NODES)

# From values at the nodes to the coefficients of their Legendre series, and on to the integrals from -1 to the nodes.
_LEGENDRE_COEFFICIENTS = (np.arange(NUM_NODES) + 0.5)[:, None] * legendre.legvander(_NODES, NUM_NODES - 1).T * _WEIGHTS
_CUMULATIVE_WEIGHTS = legendre.legval(_NODES, legendre.legint(_LEGENDRE_COEFFICIENTS, lbnd=-1))


def prob_best_from_tails(tails: np.ndarray) -> np.ndarray:
    """Return P(best) of each candidate by its odds against the leader, from `Leads.tails`.

    The share of rival j is p_j / (1 - p_j), and that of the leader 1; they are divided by their sum. For two candidates
    it is p_j, for K equal ones 1 / K. Shape: that of `tails`, `(num_selections, num_candidates)`.
    """
    bounded = np.minimum(tails, MAX_TAIL)
    odds = bounded / (1 - bounded)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def logit(scores: np.ndarray, *, candidate: str) -> np.ndarray:
    """log(score / (1 - score)), which takes scores in [0, 1] to the whole line. Same shape as `scores`.

    Scores are clipped to [`LOGIT_CLIP`, 1 - `LOGIT_CLIP`] first, so that a score of exactly 0 or 1 becomes -13.8 or
    13.8 and not infinite. Where a candidate has some such scores and others that are not near, its mean logit
    depends on `LOGIT_CLIP`: prefer the scores themselves then.

    Raises:
        ScoreError: where a score is outside [0, 1] or NaN. The message names `candidate` and the first such score.
    """
    scores = np.asarray(scores, dtype=float)
    invalid_scores = scores[~((scores >= 0) & (scores <= 1))]
    if invalid_scores.size:
        raise ScoreError(
            f"a logit requires scores from 0 to 1 but candidate '{candidate}' has {invalid_scores[0]}. Report the "
            "metric as a fraction, or use a posterior without logit."
        )
    clipped = np.clip(scores, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(clipped) - np.log1p(-clipped)


def prob_best(
    location: np.ndarray, *, scale: "np.ndarray | float", df: "np.ndarray | float", margin: float = 0.0
) -> np.ndarray:
    """Compute P(x_i >= max_j x_j - margin) of independent x_i = location_i + scale_i t(df_i). Shape:
    `(num_candidates,)`.

    The absolute error is below 1e-7 for up to 50 variables with `df` of 1 or more and scales that differ by up to nine
    orders of magnitude. Without margin the result sums to 1: what is left of rounding is divided out.

    A `scale` of 0 is a point mass at `location`, treated exactly. Point masses that share the highest value share
    the probability that no other variable exceeds it, in equal parts, so that two candidates with the same constant
    score have 1/2 each. With a margin above 0 the inequality is closed and nothing is shared: all point masses
    within the margin of the highest one count.

    Args:
        location: shape `(num_candidates,)`.
        scale: at least 0. Shape `(num_candidates,)`, or a number for all.
        df: at least 1. Shapes as `scale`.
        margin: in the units of `location`, at least 0.

    Raises:
        ScoreError: where a location, scale or df is out of its range.
        ConfigError: where `margin` is.
    """
    location = np.atleast_1d(np.array(location, dtype=float))
    scale, df = (np.broadcast_to(np.array(array, dtype=float), location.shape) for array in (scale, df))
    is_finite = location.ndim == 1 and location.size and np.isfinite(location).all() and np.isfinite(scale).all()
    if not is_finite or (scale < 0).any() or not (df >= 1).all():
        raise ScoreError(
            "P(best) requires a finite location for each candidate, finite scales of at least 0 and a df of at least 1 "
            f"but got {location}, {scale} and {df}."
        )
    check_margin(margin)
    unit = max(float(np.abs(location).max()), float(scale.max()), float(np.finfo(float).tiny))
    # Near the narrowest variable the differences of nearly equal numbers count: it becomes the origin.
    location = location / unit - location[scale.argmin()] / unit
    variables = _StudentTs(location, scale / unit, df, margin / unit)
    is_point = variables.scale <= POINT_RATIO * max(float(variables.scale.max()), float(np.ptp(location)))
    result = _prob_best_with_points(variables, is_point) if is_point.any() else variables.prob_best(-math.inf)
    return np.clip(result, 0, 1) if margin > 0 else result / result.sum()


def check_margin(margin: float) -> None:
    """Refuse a margin below 0, infinite or NaN.

    Raises:
        ConfigError: with the value.
    """
    if not 0 <= margin < math.inf:
        raise ConfigError(f"margin must be 0 or more, in units of the score, but is {margin}.")


def graded_panel_edges(centres: np.ndarray, widths: np.ndarray, left: float, right: float) -> np.ndarray:
    """Compute the edges of panels from `left` to `right` that resolve every function which is smooth on the scale
    h_i(x) = sqrt((x - centre_i)^2 + width_i^2), as a density with poles at centre_i +- i width_i is.

    The number of panels is the integral of max_i 1 / h_i, rounded up: each panel has about the length h_i of the
    most demanding i. It grows with the logarithm of the ratio of scales, and not with the number of functions
    where they lie together. Shape: `(num_panels + 1,)`.

    Args:
        centres: shape `(num_functions,)`, as `widths`, which are positive.
    """
    num_steps = math.ceil(math.asinh((right - left) / widths.min()))
    relative_knots = np.sinh(np.arange(-num_steps, num_steps + 1.0))
    # Shape: (num_functions * num_steps,)
    knots = (centres[:, None] + widths[:, None] * relative_knots).ravel()
    knots = np.concatenate([[left], np.sort(knots[(left < knots) & (knots < right)]), [right]])
    panel_density = ((knots[:, None] - centres) ** 2 + widths**2).min(axis=1) ** -0.5
    num_panels_between = (knots[1:] - knots[:-1]) * (panel_density[1:] + panel_density[:-1]) / 2
    cumulative_panels = np.concatenate([[0.0], np.cumsum(num_panels_between)])
    num_panels = max(1, math.ceil(cumulative_panels[-1]))
    return np.interp(np.linspace(0, cumulative_panels[-1], num_panels + 1), cumulative_panels, knots)


@dataclass(frozen=True, eq=False)
class _StudentTs:
    """Student-t variables in units of their own. Shape of all but the margin: `(num_candidates,)`."""

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    margin: float

    def take(self, candidates: np.ndarray) -> "_StudentTs":
        return _StudentTs(self.location[candidates], self.scale[candidates], self.df[candidates], self.margin)

    def cdf(self, x: float) -> np.ndarray:
        """The distribution functions at `x`. Shape: `(num_candidates,)`."""
        return np.asarray(stdtr(self.df, (x - self.location) / self.scale))

    def prob_best(self, highest_point: float) -> np.ndarray:
        """P(best) of all, where `highest_point` is the highest point mass. Shape: that of `location`."""
        tail_distances = self.scale * -stdtrit(self.df, NEGLIGIBLE_PROB)
        # Left of `left`, some variable is almost surely too far ahead; right of `right`, there is almost surely none.
        left = max(float((self.location - tail_distances).max()), highest_point) - self.margin
        right = float((self.location + tail_distances).max())
        if not left < right:
            return np.zeros(self.location.shape)
        # The poles of the density are at a distance of scale * sqrt(df); large df are as smooth as the normal.
        centres, widths = self.location, self.scale * np.sqrt(np.minimum(self.df, 4))
        if self.margin > 0:
            centres, widths = np.concatenate([centres, centres - self.margin]), np.tile(widths, 2)
        edges = graded_panel_edges(centres, widths, left, right)
        # Shape: (num_panels,), and of the nodes (num_panels, NUM_NODES)
        half_width = np.diff(edges) / 2
        nodes = (edges[:-1] + half_width)[:, None] + half_width[:, None] * _NODES
        density = shifted = self._densities(nodes)
        if self.margin:
            shifted = self._densities(nodes + self.margin)
        panel_integrals = (shifted @ _WEIGHTS) * half_width
        before = np.cumsum(panel_integrals, axis=-1) - panel_integrals
        to_nodes = before[..., None] + (shifted @ _CUMULATIVE_WEIGHTS) * half_width[:, None]
        below = self.cdf(left + self.margin)[:, None, None] + to_nodes
        values = density * product_of_others(below)
        return np.asarray((values @ _WEIGHTS) @ half_width)

    def _densities(self, x: np.ndarray) -> np.ndarray:
        """The densities at `x`, shape `(num_panels, NUM_NODES)`. Shape: `(num_candidates, num_panels, NUM_NODES)`."""
        power = (self.df + 1) / 2
        log_peak = gammaln(power) - gammaln(self.df / 2) - np.log(self.df * np.pi) / 2 - np.log(self.scale)
        width = self.scale * np.sqrt(self.df)
        location, log_peak, power, width = (v[:, None, None] for v in (self.location, log_peak, power, width))
        return np.asarray(np.exp(log_peak - power * np.log1p(((x - location) / width) ** 2)))


def _prob_best_with_points(variables: _StudentTs, is_point: np.ndarray) -> np.ndarray:
    """P(best) where some variables are point masses. Shape: `(num_candidates,)`."""
    points, smooth, margin = variables.location[is_point], variables.take(~is_point), variables.margin
    result = np.zeros(len(is_point))
    rounding = 4 * np.finfo(float).eps if margin > 0 else 0.0
    is_near_highest = points + margin + rounding >= points.max()
    prob_below = [smooth.cdf(point + margin).prod() for point in points]
    result[is_point] = is_near_highest * prob_below / (1 if margin > 0 else is_near_highest.sum())
    if not is_point.all():
        result[~is_point] = smooth.prob_best(points.max())
    return result


def product_of_others(factors: np.ndarray) -> np.ndarray:
    """The product of all rows but one, for each row, without dividing: a factor may be 0. Same shape as `factors`."""
    products = np.ones_like(factors)
    before, after = np.ones((2, *factors.shape[1:]))
    # Row by row, from both ends: several times as fast as np.cumprod over rows.
    for row in range(len(factors)):
        products[row] *= before
        before *= factors[row]
        products[-1 - row] *= after
        after *= factors[-1 - row]
    return products
