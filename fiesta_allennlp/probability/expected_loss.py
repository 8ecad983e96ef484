"""How much is lost on average by choosing one of several candidates now, by quadrature."""

import math
from itertools import pairwise
from typing import Optional, Sequence

import numpy as np
from scipy.special import expit, gammaln, stdtr, stdtrit

from fiesta_allennlp.probability.quadrature import QuadraturePanels, graded_panel_edges
from fiesta_allennlp.probability.student_t import NEGLIGIBLE_PROB
from fiesta_allennlp.probability.weighted_draws import GAUSS_NODES, EmpiricalDistribution, cdf_at, cell_edges


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
    has_density = (weight > NEGLIGIBLE_PROB) & (scale > 0)
    if (has_density & (df <= 1)).any():
        return None
    # Shape: (num_components, num_candidates)
    tail_distances = np.where(has_density, -scale * stdtrit(df, NEGLIGIBLE_PROB), 0.0)
    lower_end, upper_end = float((location - tail_distances).min()), float((location + tail_distances).max())
    if not lower_end < upper_end:
        return 0.0
    point_locations = location[(scale * weight).max(axis=0) == 0]
    breakpoints = np.unique(np.concatenate([[lower_end, upper_end], point_locations]))
    centres = np.broadcast_to(location, scale.shape)[has_density]
    widths = (scale * np.sqrt(np.minimum(df, 4)))[has_density]
    loss = 0.0
    for start, end in pairwise(breakpoints.tolist()):
        edges = graded_panel_edges(centres, widths, start, end) if len(centres) else np.array([start, end])
        panels = QuadraturePanels.from_edges([edges])
        # Shape: (num_candidates, num_panels, NUM_NODES)
        cdf_values = np.stack(
            [
                _mixture_cdf(panels.nodes, location[index], scale[:, index], df[:, index], weight[:, index])
                for index in range(len(location))
            ]
        )
        loss += float(panels.integrate(_loss_integrand(cdf_values, chosen))[0])
    is_rival = np.arange(len(location)) != chosen
    has_tail = has_density & is_rival & (weight > 0)
    tail_losses = weight * _expected_excess((upper_end - location) / np.where(has_density, scale, 1.0), df) * scale
    loss += float(tail_losses[has_tail].sum())
    chosen_has_density = has_density[:, chosen]
    distances = (location[chosen] - lower_end) / np.where(chosen_has_density, scale[:, chosen], 1.0)
    chosen_tail_losses = weight[:, chosen] * _expected_excess(distances, df[:, chosen]) * scale[:, chosen]
    return loss + float(chosen_tail_losses[chosen_has_density].sum())


def expected_loss_of_draws(distributions: Sequence[EmpiricalDistribution], chosen: int) -> float:
    """Compute `expected_loss` of quantities that are known by weighted draws."""
    edges = cell_edges(distributions)
    cdf_values, values = cdf_at(distributions, edges), expit(edges)
    cdf_steps = np.diff(cdf_values, axis=1)
    integrands = [_loss_integrand(cdf_values[:, :-1] + node * cdf_steps, chosen) for node in GAUSS_NODES]
    return float(np.diff(values) @ (integrands[0] + integrands[1]) / 2)


def _loss_integrand(cdf_values: np.ndarray, chosen: int) -> np.ndarray:
    """F_chosen (1 - prod of the others), from the distribution functions. Shape: that of `cdf_values` without the
    first."""
    return np.asarray(cdf_values[chosen] * (1 - np.delete(cdf_values, chosen, axis=0).prod(axis=0)))


def _mixture_cdf(
    x: np.ndarray, location: float, scales: np.ndarray, dfs: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The distribution function of one mixture. Same shape as `x`."""
    terms = [
        weight * (stdtr(df, (x - location) / scale) if scale > 0 else (x >= location))
        for scale, df, weight in zip(scales, dfs, weights, strict=True)
        if weight > 0
    ]
    return np.asarray(sum(terms))


def _expected_excess(distance: np.ndarray, df: np.ndarray) -> np.ndarray:
    """E[(t - distance)+] of a Student-t variable t: ((df + d^2) / (df - 1)) f(d) - d P(t > d). Shape: that of `df`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_peak = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * math.pi) / 2
        density = np.exp(log_peak - (df + 1) / 2 * np.log1p(distance**2 / df))
        return np.asarray((df + distance**2) / (df - 1) * density - distance * stdtr(df, -distance))
