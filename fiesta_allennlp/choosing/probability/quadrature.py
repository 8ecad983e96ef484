"""Integrals over the line by Gauss-Legendre nodes of panels, which are narrow where a function is."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import List

import numpy as np
from numpy.polynomial import legendre

NUM_NODES = 16
"""Nodes of every panel. One panel is about as wide as the narrowest density around is smooth."""

_NODES, _WEIGHTS = legendre.leggauss(NUM_NODES)

# From values at the nodes to the coefficients of their Legendre series, and on to the integrals from -1 to the nodes.
_LEGENDRE_COEFFICIENTS = (np.arange(NUM_NODES) + 0.5)[:, None] * legendre.legvander(_NODES, NUM_NODES - 1).T * _WEIGHTS
_CUMULATIVE_WEIGHTS = legendre.legval(_NODES, legendre.legint(_LEGENDRE_COEFFICIENTS, lbnd=-1))


@dataclass(frozen=True, eq=False)
class QuadraturePanels:
    """Neighbouring intervals with `NUM_NODES` Gauss-Legendre nodes each.

    `start` and `half_width` have the shape `(num_panels,)`. Values at the nodes have the shape
    `(..., num_panels, NUM_NODES)`.
    """

    start: np.ndarray
    half_width: np.ndarray

    @classmethod
    def from_edges(cls, edges: np.ndarray) -> "QuadraturePanels":
        """Make the panels between edges in ascending order. Shape: `(num_panels + 1,)`."""
        return cls(edges[:-1], np.diff(edges) / 2)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Shape: `(num_panels, NUM_NODES)`."""
        return (self.start + self.half_width)[:, None] + self.half_width[:, None] * _NODES

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """Integrate over all panels, from values at the nodes. Shape: `(...,)`."""
        return np.asarray((values @ _WEIGHTS) @ self.half_width)

    def integrate_to_nodes(self, values: np.ndarray) -> np.ndarray:
        """Integrate from the first edge to every node. Same shape as `values`."""
        # Shape: (..., num_panels)
        panel_integrals = (values @ _WEIGHTS) * self.half_width
        integrals_before = np.cumsum(panel_integrals, axis=-1) - panel_integrals
        return integrals_before[..., None] + (values @ _CUMULATIVE_WEIGHTS) * self.half_width[:, None]


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
    # Shape: (num_knots,)
    narrowest = _lowest_parabola_indices(centres, widths, knots)
    panel_density = ((knots - centres[narrowest]) ** 2 + widths[narrowest] ** 2) ** -0.5
    num_panels_between = (knots[1:] - knots[:-1]) * (panel_density[1:] + panel_density[:-1]) / 2
    cumulative_panels = np.concatenate([[0.0], np.cumsum(num_panels_between)])
    num_panels = max(1, math.ceil(cumulative_panels[-1]))
    return np.interp(np.linspace(0, cumulative_panels[-1], num_panels + 1), cumulative_panels, knots)


def _lowest_parabola_indices(centres: np.ndarray, widths: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return which of the parabolas (x - centre_i)^2 + width_i^2 is the lowest at each `x`, which ascends. Shape: that
    of `x`.

    All have the same curvature, so two of them cross once, and the lower envelope takes one pass over the centres
    (Felzenszwalb and Huttenlocher, 2012, section 2).
    """
    order = np.lexsort((widths, centres))
    order = order[np.concatenate([[True], np.diff(centres[order]) > 0])]
    sorted_centres, squared_widths = centres[order].tolist(), (widths[order] ** 2).tolist()
    envelope = [0]
    crossings: List[float] = []  # where each but the first becomes the lowest
    for index in range(1, len(sorted_centres)):
        while True:
            previous = envelope[-1]
            gap = sorted_centres[index] - sorted_centres[previous]
            centre_sum = sorted_centres[index] + sorted_centres[previous]
            crossing = (centre_sum + (squared_widths[index] - squared_widths[previous]) / gap) / 2
            if not crossings or crossing > crossings[-1]:
                break
            envelope.pop()
            crossings.pop()
        envelope.append(index)
        crossings.append(crossing)
    return order[np.array(envelope)[np.searchsorted(crossings, x)]]
