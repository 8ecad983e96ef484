"""P(best) for independent Student-t variables, by quadrature: no simulation, hence no noise in a stopping rule.

The probability that variable i is the largest, or within `margin` of the largest, is

    P_i = integral f_i(x) prod_{j != i} F_j(x + margin) dx.

All densities are evaluated at the Gauss-Legendre nodes of one common set of panels. The distribution functions come
from the same values, integrated panel by panel, which costs a hundredth of `scipy.special.stdtr`.

`logit` takes scores in [0, 1] to the whole line, where a Student-t posterior may fit them better."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre
from scipy.special import gammaln, stdtr, stdtrit

from fiesta_allennlp.errors import ConfigError, ScoreError

LOGIT_CLIP = 1e-6
"""Scores nearer than this to 0 or 1 are taken as this near."""

NEGLIGIBLE = 1e-10
"""Probability that is left out at either end of the line."""

POINT_RATIO = 1e-13
"""A scale this much smaller than the largest scale and distance is below what doubles can resolve."""

NUM_NODES = 16
"""Nodes of every panel. One panel is about as wide as the narrowest density around is smooth."""

_POINTS, _WEIGHTS = legendre.leggauss(NUM_NODES)

# From values at the nodes to the coefficients of their Legendre series, and on to the integrals from -1 to the nodes.
_COEFFICIENTS = (np.arange(NUM_NODES) + 0.5)[:, None] * legendre.legvander(_POINTS, NUM_NODES - 1).T * _WEIGHTS
_CUMULATE = legendre.legval(_POINTS, legendre.legint(_COEFFICIENTS, lbnd=-1))


def logit(scores: np.ndarray, *, candidate: str) -> np.ndarray:
    """log(score / (1 - score)), which takes scores in [0, 1] to the whole line. Same shape as `scores`.

    Scores are clipped to [`LOGIT_CLIP`, 1 - `LOGIT_CLIP`] first, so that a score of exactly 0 or 1 becomes -13.8 or
    13.8 and not infinite. Where a candidate has some such scores and others that are not near, its mean logit
    depends on `LOGIT_CLIP`: prefer the scores themselves then.

    Raises:
        ScoreError: where a score is outside [0, 1] or NaN. The message names `candidate` and the first such score.
    """
    scores = np.asarray(scores, dtype=float)
    refused = scores[~((scores >= 0) & (scores <= 1))]
    if refused.size:
        raise ScoreError(
            f'a logit needs scores from 0 to 1 but candidate "{candidate}" has {refused[0]}: give the metric as a '
            "share, or use a belief without logit."
        )
    clipped = np.clip(scores, LOGIT_CLIP, 1 - LOGIT_CLIP)
    return np.log(clipped) - np.log1p(-clipped)


def prob_best(location: np.ndarray, *, scale: np.ndarray, df: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """P(x_i >= max_j x_j - margin) of independent x_i = location_i + scale_i t(df_i). Shape: `(num_candidates,)`.

    The absolute error is below 1e-7 for up to 50 variables with `df` of 1 or more and scales that differ by up to
    nine orders of magnitude. Without margin the result sums to 1: what is left of rounding is divided out.

    A `scale` of 0 is a point mass at `location`, treated exactly. Point masses that share the highest value share
    the probability that no other variable exceeds it, in equal parts, so that two candidates with the same constant
    score have 1/2 each. With a margin above 0 the inequality is closed and nothing is shared: all point masses
    within the margin of the highest one count.

    Args:
        location: shape `(num_candidates,)`, or a number for all. `scale` is at least 0 and `df` at least 1.
        scale: shape `(num_candidates,)`, or a number for all. `scale` is at least 0 and `df` at least 1.
        df: shape `(num_candidates,)`, or a number for all. `scale` is at least 0 and `df` at least 1.
        margin: in the units of `location`, at least 0.

    Raises:
        ScoreError: where a location, scale or df is out of its range.
        ConfigError: where `margin` is.
    """
    location, scale, df = (np.array(a, dtype=float) for a in np.broadcast_arrays(location, scale, df))
    _check(location, scale, df, margin)
    unit = max(np.abs(location).max(), scale.max(), np.finfo(float).tiny)
    # Near the narrowest variable the differences of nearly equal numbers count: it becomes the origin.
    location, scale, margin = location / unit, scale / unit, margin / unit
    location = location - location[np.argmin(scale)]
    is_point = scale <= POINT_RATIO * max(scale.max(), np.ptp(location))
    points, spread = location[is_point], ~is_point
    result = np.empty(len(location))
    result[is_point] = _points_best(points, location[spread], scale[spread], df[spread], margin)
    if spread.any():
        top = points.max() if len(points) else -math.inf
        result[spread] = _spread_best(location[spread], scale[spread], df[spread], margin, top)
    return np.clip(result, 0, 1) if margin > 0 else result / result.sum()


def _check(location: np.ndarray, scale: np.ndarray, df: np.ndarray, margin: float) -> None:
    if location.ndim != 1 or not len(location):
        raise ScoreError(f"P(best) needs one location for every candidate but got the shape {location.shape}.")
    if not (np.isfinite(location).all() and np.isfinite(scale).all() and (scale >= 0).all() and (df >= 1).all()):
        raise ScoreError(
            "P(best) needs finite locations, finite scales of at least 0 and a df of at least 1 but got "
            f"{location}, {scale} and {df}."
        )
    check_margin(margin)


def check_margin(margin: float) -> None:
    """Refuse a margin below 0, infinite or NaN.

    Raises:
        ConfigError: with the value.
    """
    if not 0 <= margin < math.inf:
        raise ConfigError(f"margin must be 0 or more, in units of the score, but got {margin}.")


def _points_best(
    points: np.ndarray, location: np.ndarray, scale: np.ndarray, df: np.ndarray, margin: float
) -> np.ndarray:
    """P(best) of the point masses, given the variables that have a spread. Shape: `(num_points,)`."""
    if not len(points):
        return points
    rounding = 4 * np.finfo(float).eps if margin > 0 else 0.0
    near_top = points + margin + rounding >= points.max()
    # Shape: (num_points, num_spread)
    below = stdtr(df, (points[:, None] + margin - location) / scale)
    share = 1 if margin > 0 else near_top.sum()
    return near_top * below.prod(axis=1) / share


def _spread_best(location: np.ndarray, scale: np.ndarray, df: np.ndarray, margin: float, top: float) -> np.ndarray:
    """P(best) of the variables that have a spread, where `top` is the highest point mass. Shape: `(num_spread,)`."""
    reach = -scale * stdtrit(df, NEGLIGIBLE)
    # Left of `left`, some variable is almost surely too far ahead; right of `right`, there is almost surely none.
    left, right = max((location - reach).max(), top) - margin, (location + reach).max()
    if left >= right:
        return np.zeros(len(location))
    shifts = np.array([0.0, margin]) if margin > 0 else np.array([0.0])
    # The poles of the density are at a distance of scale * sqrt(df); large df are as smooth as the normal.
    widths = scale * np.sqrt(np.minimum(df, 4))
    centres = (location - shifts[:, None]).ravel()
    panels = graded_panels(centres, np.tile(widths, len(shifts)), left, right)
    # Shape: (num_spread, num_nodes)
    density = _density(panels.nodes, location, scale, df)
    shifted = density if margin == 0 else _density(panels.nodes, location - margin, scale, df)
    below = stdtr(df, (left + margin - location) / scale)[:, None] + panels.antiderivative(shifted)
    return panels.integrate(density * product_of_others(below))


def _density(x: np.ndarray, location: np.ndarray, scale: np.ndarray, df: np.ndarray) -> np.ndarray:
    """The Student-t densities at `x`. Shape: `(num_variables, len(x))`."""
    power = (df + 1) / 2
    log_peak = gammaln(power) - gammaln(df / 2) - np.log(df * np.pi) / 2 - np.log(scale)
    squared = ((x - location[:, None]) / (scale * np.sqrt(df))[:, None]) ** 2
    return np.exp(log_peak[:, None] - power[:, None] * np.log1p(squared))


def product_of_others(factors: np.ndarray) -> np.ndarray:
    """The product of all rows but one, for each row, without dividing: a factor may be 0. Same shape as `factors`."""
    others = np.ones_like(factors)
    before, after = np.ones((2, factors.shape[1]))
    # Row by row, from both ends: several times as fast as np.cumprod over rows.
    for row in range(len(factors)):
        others[row] *= before
        before *= factors[row]
        others[-1 - row] *= after
        after *= factors[-1 - row]
    return others


@dataclass(frozen=True, eq=False)
class Panels:
    """Neighbouring intervals with `NUM_NODES` Gauss-Legendre nodes each.

    `edges` are in ascending order, shape `(num_panels + 1,)`. Values at the nodes have the shape
    `(..., num_panels * NUM_NODES)`.
    """

    edges: np.ndarray

    @cached_property
    def half_widths(self) -> np.ndarray:
        """Shape: `(num_panels,)`."""
        return (self.edges[1:] - self.edges[:-1]) / 2

    @cached_property
    def nodes(self) -> np.ndarray:
        """Shape: `(num_panels * NUM_NODES,)`."""
        middles = self.edges[:-1] + self.half_widths
        return (middles[:, None] + self.half_widths[:, None] * _POINTS).ravel()

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """The integrals over all panels, from values at the nodes. Shape: `(...,)`."""
        return values @ np.outer(self.half_widths, _WEIGHTS).ravel()

    def antiderivative(self, values: np.ndarray) -> np.ndarray:
        """The integrals from the first edge to every node. Same shape as `values`."""
        per_panel = values.reshape(*values.shape[:-1], -1, NUM_NODES)
        # Shape: (..., num_panels)
        masses = (per_panel @ _WEIGHTS) * self.half_widths
        before = np.cumsum(masses, axis=-1) - masses
        within = (per_panel @ _CUMULATE) * self.half_widths[:, None]
        return (before[..., None] + within).reshape(values.shape)


def graded_panels(centres: np.ndarray, widths: np.ndarray, left: float, right: float) -> Panels:
    """Panels from `left` to `right` that resolve every function which is smooth on the scale
    h_i(x) = sqrt((x - centre_i)^2 + width_i^2), as a density with poles at centre_i +- i width_i is.

    The number of panels is the integral of max_i 1 / h_i, rounded up: each panel has about the length h_i of the
    most demanding i. It grows with the logarithm of the ratio of scales, and not with the number of functions
    where they lie together.

    Args:
        centres: shape `(num_functions,)`. Widths are positive.
        widths: shape `(num_functions,)`. Widths are positive.
    """
    reach = math.ceil(math.asinh((right - left) / widths.min()))
    ladder = np.sinh(np.arange(-reach, reach + 1.0))
    # Shape: (num_functions * num_steps,)
    knots = (centres[:, None] + widths[:, None] * ladder).ravel()
    knots = np.concatenate([[left], np.sort(knots[(left < knots) & (knots < right)]), [right]])
    # Shape: (num_knots,)
    density = ((knots[:, None] - centres) ** 2 + widths**2).min(axis=1) ** -0.5
    steps = (knots[1:] - knots[:-1]) * (density[1:] + density[:-1]) / 2
    passed = np.concatenate([[0.0], np.cumsum(steps)])
    num_panels = max(1, math.ceil(passed[-1]))
    return Panels(np.interp(np.linspace(0, passed[-1], num_panels + 1), passed, knots))
