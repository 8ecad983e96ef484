"""How much is lost on average by taking one of several candidates now, by quadrature."""

import math
from itertools import pairwise
from typing import Optional, Sequence

import numpy as np
from scipy.special import expit, gammaln, stdtr, stdtrit

from fiesta_allennlp.probability.panels import Panels, graded_panels
from fiesta_allennlp.probability.student_t import NEGLIGIBLE
from fiesta_allennlp.probability.weighted_draws import GAUSS, Marginal, below_at, edges_of


def expected_loss(
    location: np.ndarray, *, scale: np.ndarray, df: np.ndarray, weight: np.ndarray, taken: int
) -> Optional[float]:
    """Compute E[max_j x_j - x_taken] of independent mixtures of Student-t variables, as in `prob_best`.

    With F_j their distribution functions, it is an integral of something that is never below 0::

        integral F_taken(x) (1 - prod_{j != taken} F_j(x)) dx

    Both tails beyond the nodes are added in closed form. The result is None if one of the variables has no mean,
    because a df is 1 or less, as that of `student_t` after three runs.

    Args:
        location: shape `(num_candidates,)`.
        scale: at least 0; 0 is a known mean. Shape `(num_parts, num_candidates)`, as `df` and `weight`.
    """
    counts = (weight > NEGLIGIBLE) & (scale > 0)
    if (counts & (df <= 1)).any():
        return None
    # Shape: (num_parts, num_candidates)
    reach = np.where(counts, -scale * stdtrit(df, NEGLIGIBLE), 0.0)
    low, high = float((location - reach).min()), float((location + reach).max())
    if not low < high:
        return 0.0
    points = location[(scale * weight).max(axis=0) == 0]
    ends = np.unique(np.concatenate([[low, high], points]))
    centres = np.broadcast_to(location, scale.shape)[counts]
    widths = (scale * np.sqrt(np.minimum(df, 4)))[counts]
    total = 0.0
    for left, right in pairwise(ends.tolist()):
        edges = graded_panels(centres, widths, left, right) if len(centres) else np.array([left, right])
        panels = Panels.joined([edges])
        # Shape: (num_candidates, num_panels, NUM_NODES)
        below = np.stack(
            [
                _below(panels.nodes, location[each], scale[:, each], df[:, each], weight[:, each])
                for each in range(len(location))
            ]
        )
        total += float(panels.integrate(_lost(below, taken))[0])
    others = np.arange(len(location)) != taken
    beyond = counts & others & (weight > 0)
    tails = weight * _beyond((high - location) / np.where(counts, scale, 1.0), df) * scale
    total += float(tails[beyond].sum())
    own = counts[:, taken]
    tail = weight[:, taken] * _beyond((location[taken] - low) / np.where(own, scale[:, taken], 1.0), df[:, taken])
    return total + float((tail * scale[:, taken])[own].sum())


def expected_loss_of_draws(marginals: Sequence[Marginal], taken: int) -> float:
    """Compute `expected_loss` of quantities that are known by weighted draws."""
    edges = edges_of(marginals)
    own, y = below_at(marginals, edges), expit(edges)
    rise = np.diff(own, axis=1)
    lost = [_lost(own[:, :-1] + node * rise, taken) for node in GAUSS]
    return float(np.diff(y) @ (lost[0] + lost[1]) / 2)


def _lost(below: np.ndarray, taken: int) -> np.ndarray:
    """F_taken (1 - prod of the others), from the distribution functions. Shape: that of `below` without the first."""
    return np.asarray(below[taken] * (1 - np.delete(below, taken, axis=0).prod(axis=0)))


def _below(x: np.ndarray, location: float, scale: np.ndarray, df: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The distribution function of one mixture. Same shape as `x`."""
    parts = [
        part * (stdtr(free, (x - location) / width) if width > 0 else (x >= location))
        for width, free, part in zip(scale, df, weight, strict=True)
        if part > 0
    ]
    return np.asarray(sum(parts))


def _beyond(distance: np.ndarray, df: np.ndarray) -> np.ndarray:
    """E[(t - distance)+] of a Student-t variable t: ((df + d^2) / (df - 1)) f(d) - d P(t > d). Shape: that of `df`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_peak = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * math.pi) / 2
        density = np.exp(log_peak - (df + 1) / 2 * np.log1p(distance**2 / df))
        return np.asarray((df + distance**2) / (df - 1) * density - distance * stdtr(df, -distance))
