import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.probability.student_t import NUM_NODES, Panels, graded_panels


def test_integrals_of_polynomials_are_exact() -> None:
    panels = Panels(np.array([-1.0, 0.5, 2.0]))
    x = panels.nodes
    values = np.stack([np.ones_like(x), x, x**7, x ** (NUM_NODES - 1)])
    powers = np.array([1, 2, 8, NUM_NODES])
    assert_allclose(panels.integrate(values), (2.0**powers - (-1.0) ** powers) / powers, rtol=1e-13)
    expected = (x ** powers[:, None] - (-1.0) ** powers[:, None]) / powers[:, None]
    assert_allclose(panels.antiderivative(values), expected, atol=1e-13 * 2.0**NUM_NODES)


def test_the_antiderivative_runs_on_over_panels() -> None:
    panels = Panels(np.linspace(0, 6, 7))
    assert_allclose(panels.antiderivative(np.cos(panels.nodes)), np.sin(panels.nodes), atol=1e-14)


def test_a_panel_without_length_adds_nothing() -> None:
    panels = Panels(np.array([0.0, 1.0, 1.0, 2.0]))
    assert panels.integrate(panels.nodes) == pytest.approx(2.0)


def test_panels_cover_the_range_and_are_fine_around_the_centres() -> None:
    centres, widths = np.array([0.0, 3.0]), np.array([1e-4, 0.5])
    panels = graded_panels(centres, widths, -10.0, 20.0)
    assert panels.edges[0] == -10
    assert panels.edges[-1] == 20
    assert (np.diff(panels.edges) > 0).all()
    middles = (panels.edges[1:] + panels.edges[:-1]) / 2
    smooth = np.sqrt((middles[:, None] - centres) ** 2 + widths**2).min(axis=1)
    assert (2 * panels.half_widths < 1.5 * smooth).all()


def test_many_functions_at_one_place_cost_no_more_than_one() -> None:
    one = graded_panels(np.zeros(1), np.ones(1), -100.0, 100.0)
    many = graded_panels(np.zeros(50), np.ones(50), -100.0, 100.0)
    assert len(one.edges) == len(many.edges)
    # The integral of 1 / sqrt(x^2 + 1) from -100 to 100 is 10.6; the trapezoid rule may only overestimate it.
    assert 2 * np.arcsinh(100) <= len(one.edges) - 1 <= 1.2 * 2 * np.arcsinh(100) + 1
