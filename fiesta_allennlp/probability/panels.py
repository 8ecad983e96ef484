"""Piecewise Gauss-Legendre quadrature on a line, fine where some density is narrow and coarse elsewhere."""

from dataclasses import dataclass

import numpy as np

NUM_NODES = 16
"""Nodes of every panel. One panel is about as wide as the narrowest density around is smooth."""


def _antiderivative_matrix(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Takes values at the nodes to integrals from -1 to the nodes, exact for degrees below their number."""
    size = len(points)
    legendre = np.polynomial.legendre.legvander(points, size)
    degrees = np.arange(size)
    integrals = (legendre[:, 2:] - legendre[:, :-2]) / (2 * degrees[1:] + 1)
    integrals = np.column_stack([points + 1, integrals])
    coefficients = (degrees + 0.5)[:, None] * legendre[:, :size].T * weights
    return integrals @ coefficients


_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NUM_NODES)
_CUMULATE = _antiderivative_matrix(_POINTS, _WEIGHTS).T


@dataclass(frozen=True, eq=False)
class Panels:
    """Neighbouring intervals with `NUM_NODES` Gauss-Legendre nodes each.

    `edges` are in ascending order, shape `(num_panels + 1,)`. Values at the nodes have the shape
    `(..., num_panels * NUM_NODES)`.
    """

    edges: np.ndarray

    @property
    def half_widths(self) -> np.ndarray:
        """Shape: `(num_panels,)`."""
        return np.diff(self.edges) / 2

    @property
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

    # Parameters

    centres, widths : shape `(num_functions,)`. Widths are positive.
    """
    reach = np.arcsinh((right - left) / widths.min())
    ladder = np.sinh(np.arange(-np.ceil(reach), np.ceil(reach) + 1))
    # Shape: (num_functions * num_steps,)
    knots = (centres[:, None] + widths[:, None] * ladder).ravel()
    knots = np.concatenate([[left], np.sort(knots[(left < knots) & (knots < right)]), [right]])
    # Shape: (num_knots,)
    density = ((knots[:, None] - centres) ** 2 + widths**2).min(axis=1) ** -0.5
    steps = np.diff(knots) * (density[1:] + density[:-1]) / 2
    passed = np.concatenate([[0.0], np.cumsum(steps)])
    num_panels = max(1, int(np.ceil(passed[-1])))
    return Panels(np.interp(np.linspace(0, passed[-1], num_panels + 1), passed, knots))
