import math

import numpy as np
import pytest
from power_analysis import effect_apart, num_documents
from statsmodels.stats.power import TTestPower


@pytest.mark.parametrize("effect", [0.04, 0.229, 3.0])
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.0125, 0.95)])
def test_agrees_with_statsmodels(effect: float, error: float, power: float) -> None:
    expected = TTestPower().solve_power(effect, alpha=error, power=power, alternative="larger")
    assert num_documents(effect, error=error, power=power) == max(2, math.ceil(expected - 1e-6))
    assert [num_documents(effect) for effect in (0.0, -0.3, math.nan)] == [None, None, None]


def test_the_effect_apart_by_hand() -> None:
    """The means differ by 0.1 and both variances are 0.02: 0.1 / sqrt(0.04)."""
    assert effect_apart(np.array([0.5, 0.7]), np.array([0.4, 0.6])) == pytest.approx(0.5)
