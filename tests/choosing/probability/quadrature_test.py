"""Panels are as narrow as the most demanding function around, of however many."""

import numpy as np
import pytest

from fiesta_allennlp.choosing.probability.quadrature import _lowest_parabola_indices, graded_panel_edges


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_the_lowest_parabola_is_found_among_all(digits: int) -> None:
    """Also with equal centres, and widths over seven orders of magnitude."""
    rng = np.random.default_rng(digits)
    for number in (1, 2, 5, 40):
        centres, widths = rng.normal(size=number).round(digits), 10.0 ** rng.uniform(-6, 1, number)
        x = np.sort(rng.normal(size=200) * 3)
        values = (x[:, None] - centres) ** 2 + widths**2
        found = _lowest_parabola_indices(centres, widths, x)
        assert values[np.arange(200), found] == pytest.approx(values.min(axis=1), rel=1e-12)


def test_two_parabolas_cross_where_they_are_equal() -> None:
    """(x - 0)^2 + 1 = (x - 2)^2 + 3 at x = 3 / 2 and 3 / 2 alone."""
    assert _lowest_parabola_indices(np.array([0.0, 2.0]), np.array([1.0, 3.0**0.5]), np.array([1.4, 1.6])).tolist() == [
        0,
        1,
    ]


def test_panels_of_many_equal_functions_are_those_of_one() -> None:
    one = graded_panel_edges(np.zeros(1), np.ones(1), -5.0, 5.0)
    assert graded_panel_edges(np.zeros(500), np.ones(500), -5.0, 5.0) == pytest.approx(one)
