"""How much is lost on average by choosing one of several candidates now, by quadrature."""

import math
from itertools import pairwise
from typing import Optional, Sequence

import numpy as np
from scipy.special import expit, gammaln, stdtr, stdtrit

from fiesta_allennlp.probability.panels import Panels, graded_panels
from fiesta_allennlp.probability.student_t import NEGLIGIBLE
from fiesta_allennlp.probability.weighted_draws import GAUSS, Marginal, below_at, edges_of


def expected_loss(
    location: np.ndarray, *, scale: np.ndarray, df: np.ndarray, weight: np.ndarray, chosen: int
) -> Optional[float]:
    """Compute E[max_j x_j - x_chosen] of independent mixtures of Student-t variables, as in `prob_best`.

    With F_j their distribution functions, it is an integral of something that is never below 0::

        integral F_chosen(x) (1 - prod_{j != chosen} F_j(x)) dx

    Both tails beyond the nodes are added in closed form. The result is None if one of the variables has no mean,
    because a df is 1 or less, as that of `student_t` after three runs.

    Args:
        location: shape `(num_candidates,)`.
        scale: at least 0; 0 is a known mean. Shape `(num_components, num_candidates)`, as `df` and `weight`.
    """
    matters = (weight > NEGLIGIBLE) & (scale > 0)
    if (matters & (df <= 1)).any():
        return None
    # Shape: (num_components, num_candidates)
    reach = np.where(matters, -scale * stdtrit(df, NEGLIGIBLE), 0.0)
    low, high = float((location - reach).min()), float((location + reach).max())
    if not low < high:
        return 0.0
    point_locations = location[(scale * weight).max(axis=0) == 0]
    ends = np.unique(np.concatenate([[low, high], point_locations]))
    centres = np.broadcast_to(location, scale.shape)[matters]
    widths = (scale * np.sqrt(np.minimum(df, 4)))[matters]
    total = 0.0
    for start, end in pairwise(ends.tolist()):
        edges = graded_panels(centres, widths, start, end) if len(centres) else np.array([start, end])
        panels = Panels.joined([edges])
        # Shape: (num_candidates, num_panels, NUM_NODES)
        below = np.stack(
            [
                _distribution(panels.nodes, location[index], scale[:, index], df[:, index], weight[:, index])
                for index in range(len(location))
            ]
        )
        total += float(panels.integrate(_loss_density(below, chosen))[0])
    not_chosen = np.arange(len(location)) != chosen
    has_tail = matters & not_chosen & (weight > 0)
    tails = weight * _excess((high - location) / np.where(matters, scale, 1.0), df) * scale
    total += float(tails[has_tail].sum())
    mask = matters[:, chosen]
    tail = weight[:, chosen] * _excess((location[chosen] - low) / np.where(mask, scale[:, chosen], 1.0), df[:, chosen])
    return total + float((tail * scale[:, chosen])[mask].sum())


def expected_loss_of_draws(marginals: Sequence[Marginal], chosen: int) -> float:
    """Compute `expected_loss` of quantities that are known by weighted draws."""
    edges = edges_of(marginals)
    below, y = below_at(marginals, edges), expit(edges)
    rise = np.diff(below, axis=1)
    densities = [_loss_density(below[:, :-1] + node * rise, chosen) for node in GAUSS]
    return float(np.diff(y) @ (densities[0] + densities[1]) / 2)


def _loss_density(below: np.ndarray, chosen: int) -> np.ndarray:
    """F_chosen (1 - prod of the others), from the distribution functions. Shape: that of `below` without the first."""
    return np.asarray(below[chosen] * (1 - np.delete(below, chosen, axis=0).prod(axis=0)))


def _distribution(x: np.ndarray, location: float, scale: np.ndarray, df: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The distribution function of one mixture. Same shape as `x`."""
    terms = [
        share * (stdtr(freedom, (x - location) / width) if width > 0 else (x >= location))
        for width, freedom, share in zip(scale, df, weight, strict=True)
        if share > 0
    ]
    return np.asarray(sum(terms))


def _excess(distance: np.ndarray, df: np.ndarray) -> np.ndarray:
    """E[(t - distance)+] of a Student-t variable t: ((df + d^2) / (df - 1)) f(d) - d P(t > d). Shape: that of `df`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_peak = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * math.pi) / 2
        density = np.exp(log_peak - (df + 1) / 2 * np.log1p(distance**2 / df))
        return np.asarray((df + distance**2) / (df - 1) * density - distance * stdtr(df, -distance))
