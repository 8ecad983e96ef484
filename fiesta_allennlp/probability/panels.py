"""Integrals over the line by Gauss-Legendre nodes of panels, which are narrow where a function is."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import List, Sequence

import numpy as np
from numpy.polynomial import legendre

NUM_NODES = 16
"""Nodes of every panel. One panel is about as wide as the narrowest density around is smooth."""

_POINTS, _WEIGHTS = legendre.leggauss(NUM_NODES)

# From values at the nodes to the coefficients of their Legendre series, and on to the integrals from -1 to the nodes.
_COEFFICIENTS = (np.arange(NUM_NODES) + 0.5)[:, None] * legendre.legvander(_POINTS, NUM_NODES - 1).T * _WEIGHTS
_CUMULATE = legendre.legval(_POINTS, legendre.legint(_COEFFICIENTS, lbnd=-1))


@dataclass(frozen=True, eq=False)
class Panels:
    """Neighbouring intervals with `NUM_NODES` Gauss-Legendre nodes each, of several integrals one after the other.

    `start` and `half_width` have the shape `(num_panels,)`. `owner` is the index of the integral that a panel belongs
    to, in ascending order, and `first` the first panel of each. Values at the nodes have the shape
    `(..., num_panels, NUM_NODES)`.
    """

    start: np.ndarray
    half_width: np.ndarray
    owner: np.ndarray
    first: np.ndarray

    @classmethod
    def joined(cls, edges: Sequence[np.ndarray]) -> "Panels":
        """Panels between the edges of each integral, in ascending order, shape `(num_panels + 1,)` each."""
        sizes = np.array([len(points) - 1 for points in edges])
        start = np.concatenate([points[:-1] for points in edges])
        end = np.concatenate([points[1:] for points in edges])
        first = np.cumsum(sizes) - sizes
        return cls(start, (end - start) / 2, np.repeat(np.arange(len(edges)), sizes), first)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Shape: `(num_panels, NUM_NODES)`."""
        return (self.start + self.half_width)[:, None] + self.half_width[:, None] * _POINTS

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """Integrate over all panels of each integral, from values at the nodes. Shape: `(..., num_integrals)`."""
        return np.add.reduceat((values @ _WEIGHTS) * self.half_width, self.first, axis=-1)

    def antiderivative(self, values: np.ndarray) -> np.ndarray:
        """Integrate from the first edge of each integral to every node. Same shape as `values`."""
        # Shape: (..., num_panels)
        masses = (values @ _WEIGHTS) * self.half_width
        before = np.cumsum(masses, axis=-1) - masses
        before -= before[..., self.first][..., self.owner]
        return before[..., None] + (values @ _CUMULATE) * self.half_width[:, None]


def graded_panels(centres: np.ndarray, widths: np.ndarray, left: float, right: float) -> np.ndarray:
    """Compute the edges of panels from `left` to `right` that resolve every function which is smooth on the scale
    h_i(x) = sqrt((x - centre_i)^2 + width_i^2), as a density with poles at centre_i +- i width_i is.

    The number of panels is the integral of max_i 1 / h_i, rounded up: each panel has about the length h_i of the
    most demanding i. It grows with the logarithm of the ratio of scales, and not with the number of functions
    where they lie together. Shape: `(num_panels + 1,)`.

    Args:
        centres: shape `(num_functions,)`, as `widths`, which are positive.
    """
    reach = math.ceil(math.asinh((right - left) / widths.min()))
    ladder = np.sinh(np.arange(-reach, reach + 1.0))
    # Shape: (num_functions * num_steps,)
    knots = (centres[:, None] + widths[:, None] * ladder).ravel()
    knots = np.concatenate([[left], np.sort(knots[(left < knots) & (knots < right)]), [right]])
    # Shape: (num_knots,)
    nearest = _lowest_parabolas(centres, widths, knots)
    density = ((knots - centres[nearest]) ** 2 + widths[nearest] ** 2) ** -0.5
    steps = (knots[1:] - knots[:-1]) * (density[1:] + density[:-1]) / 2
    passed = np.concatenate([[0.0], np.cumsum(steps)])
    num_panels = max(1, math.ceil(passed[-1]))
    return np.interp(np.linspace(0, passed[-1], num_panels + 1), passed, knots)


def _lowest_parabolas(centres: np.ndarray, widths: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return which of the parabolas (x - centre_i)^2 + width_i^2 is the lowest at each `x`, which ascends. Shape: that
    of `x`.

    All have the same curvature, so two of them cross once, and the lower envelope takes one pass over the centres
    (Felzenszwalb and Huttenlocher, 2012, section 2).
    """
    order = np.lexsort((widths, centres))
    order = order[np.concatenate([[True], np.diff(centres[order]) > 0])]
    middles, squares = centres[order].tolist(), (widths[order] ** 2).tolist()
    lowest = [0]
    begins: List[float] = []  # where each but the first becomes the lowest
    for number in range(1, len(middles)):
        while True:
            before = lowest[-1]
            gap = middles[number] - middles[before]
            begin = (middles[number] + middles[before] + (squares[number] - squares[before]) / gap) / 2
            if not begins or begin > begins[-1]:
                break
            lowest.pop()
            begins.pop()
        lowest.append(number)
        begins.append(begin)
    return order[np.array(lowest)[np.searchsorted(begins, x)]]
