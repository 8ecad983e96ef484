import numpy as np
import pytest
from reproduce_haffari import effect_apart


def test_the_effect_apart_by_hand() -> None:
    """The means differ by 0.1 and both variances are 0.02: 0.1 / sqrt(0.04)."""
    assert effect_apart(np.array([0.5, 0.7]), np.array([0.4, 0.6])) == pytest.approx(0.5)
