import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import digamma, polygamma

from fiesta_allennlp.probability.noise import NoisePosterior, common_variance
from fiesta_allennlp.probability.noise import noise_posterior as posterior_near


def noise_posterior(squares: np.ndarray, *, df: np.ndarray) -> NoisePosterior:
    return posterior_near(squares, df=df, common=common_variance(squares, df=df))


CLASSES = (2.5, 256.0)


def by_integration(squares: np.ndarray, df: np.ndarray) -> "tuple[np.ndarray, np.ndarray]":
    """E[1 / sigma_i^2] and the probability of being odd, by integration over log s^2, the share and log sigma_i^2.

    On grids of equal steps, which are exact to many digits for smooth functions that end at zero, from SciPy's
    distributions: an independent statement of the model.
    """
    steps = np.linspace(-9, 9, 361)
    variance, common = np.exp(steps), np.exp(steps)[:, None]
    # Shapes: (num_classes, num_candidates, num_scales)
    likelihood, precision = np.zeros((2, 2, len(df), len(steps)))
    for number, similarity in enumerate(CLASSES):
        prior = stats.invgamma.pdf(variance, similarity / 2, scale=similarity * common / 2) * variance
        for one in range(len(df)):
            mass = prior * stats.chi2.pdf(squares[one] / variance, df[one]) / variance
            likelihood[number, one], precision[number, one] = mass.sum(axis=1), (mass / variance).sum(axis=1)
    shares = (np.arange(200) + 0.5)[:, None, None] / 200
    odd = shares * likelihood[0]
    either = odd + (1 - shares) * likelihood[1]
    # Shape: (num_shares, 1, num_scales)
    joint = either.prod(axis=1, keepdims=True)
    joint /= joint.sum()
    of_both = (shares * precision[0] + (1 - shares) * precision[1]) / either
    return (joint * of_both).sum(axis=(0, 2)), (joint * odd / either).sum(axis=(0, 2))


def test_it_is_the_posterior_by_integration() -> None:
    squares, df = np.array([3.0, 5.0, 40.0]), np.array([9.0, 4.0, 6.0])
    precision, odd = by_integration(squares, df)
    found = noise_posterior(squares, df=df)
    assert_allclose(common_variance(squares, df=df).precision, precision, rtol=0.03)
    assert_allclose(found.weight[0], odd, atol=0.02)
    assert_allclose(found.weight.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("factor", [1e3, 1e9])
def test_scales_far_apart_are_both_seen(factor: float) -> None:
    df = np.full(4, 200.0)
    squares = df * np.array([1.0, 1.0, 1.0, factor])
    assert_allclose(common_variance(squares, df=df).precision, [1, 1, 1, 1 / factor], rtol=0.05)
    found = noise_posterior(squares, df=df)
    assert (found.log_variance[1, :3] < 2 * polygamma(1, 300)).all()
    assert found.weight[0, 3] > 0.99


def test_neither_the_unit_nor_a_place_that_is_known_changes_anything() -> None:
    squares, df = np.array([1.0, 2.0, 5.0]), np.array([1.5, 2.0, 4.0])
    once, again = noise_posterior(squares, df=df), noise_posterior(squares * 1e8, df=df)
    assert_allclose(again.log_variance, once.log_variance, rtol=1e-9)
    assert_allclose(again.weight, once.weight, rtol=1e-9)
    assert_allclose(again.log_mean, once.log_mean + np.log(1e8), rtol=1e-9)
    near = common_variance(1.2 * squares, df=df)
    for _ in range(2):
        near = common_variance(squares, df=df, initial=near)
    assert_allclose(near.precision, common_variance(squares, df=df).precision, rtol=1e-4)


def test_the_matched_variable_has_the_moments() -> None:
    """log chi-squared has the mean digamma(df / 2) + log 2 and the variance trigamma(df / 2)."""
    found = noise_posterior(np.array([1.0, 2.0, 5.0]), df=np.array([1.5, 2.0, 4.0]))
    df, scale = found.match_scaled_inverse_chi_squared()
    assert_allclose(np.log(df * scale / 2) - digamma(df / 2), found.log_mean)
    assert_allclose(polygamma(1, df / 2), found.log_variance)
