import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gamma

from fiesta_allennlp.probability.rates import even_ranks, log_gamma_quantiles


def test_every_coordinate_has_every_rank_once() -> None:
    ranks = even_ranks(256, 5)
    assert (np.sort(ranks, axis=0) == np.arange(256)[:, None]).all()
    assert not ranks.flags.writeable


def test_points_fill_the_square_evenly() -> None:
    cells = even_ranks(256, 3) // 16
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert (np.bincount(cells[:, first] * 16 + cells[:, second], minlength=256) == 1).all()


@pytest.mark.parametrize("shape", [0.25, 1.0, 7.5, 4000.0])
def test_quantiles_agree_with_scipy(shape: float) -> None:
    found = log_gamma_quantiles(shape, 64)
    assert_allclose(found, np.log(gamma.ppf((np.arange(64) + 0.5) / 64, shape)), rtol=1e-6, atol=1e-8)


def test_quantiles_too_small_for_a_number() -> None:
    # P(X < x) = x^a / Gamma(a + 1), as long as x is small.
    found = log_gamma_quantiles(1e-3, 64)
    assert_allclose(found[0], np.log(1 / 128) / 1e-3, rtol=1e-3)
    assert (np.diff(found) > 0).all()
    assert np.isfinite(found).all()
