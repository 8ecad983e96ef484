import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import polygamma

from fiesta_allennlp.probability.noise import _inverse_trigamma, noise_posterior, noise_that_stands_out

CLASSES = ((0.03, 2.0), (0.97, 256.0))


def density(log_scale: np.ndarray, log_variance: np.ndarray, squares: float, df: float) -> np.ndarray:
    """p(squares, log sigma^2 | s^2), from SciPy's distributions: an independent statement of the model."""
    variance, common = np.exp(log_variance), np.exp(log_scale)
    prior = sum(weight * stats.invgamma.pdf(variance, d / 2, scale=d * common / 2) * variance for weight, d in CLASSES)
    return prior * stats.chi2.pdf(squares / variance, df) / variance


def by_integration(squares: float, df: float) -> "tuple[float, float, float]":
    """E[1 / sigma^2] and the moments of log sigma^2 of one candidate, by double integration.

    On a grid of equal steps, which is exact to many digits for a smooth function that ends at zero.
    """
    steps = np.linspace(-8, 8, 1601) + np.log(squares / df)
    log_scale, log_variance = np.meshgrid(steps, steps)
    mass = density(log_scale, log_variance, squares, df)
    mass = mass / mass.sum()
    mean = (log_variance * mass).sum()
    return (np.exp(-log_variance) * mass).sum(), mean, ((log_variance - mean) ** 2 * mass).sum()


def test_the_moments_are_those_of_the_double_integral() -> None:
    squares, df = 3.0, 9.0
    precision, mean, variance = by_integration(squares, df)
    found = noise_posterior(np.array([squares]), df=np.array([df]))
    assert_allclose(found.precision, precision, rtol=0.02)
    assert_allclose(found.log_mean, mean, atol=0.02)
    assert_allclose(found.log_variance, variance, rtol=0.05)


def test_many_alike_are_pooled() -> None:
    # Twenty candidates with 4 degrees of freedom each: nearly as sure as one with 80, trigamma(40) = .025, beside
    # trigamma(2) = .64 alone. What is added is for the chance of being odd.
    found = noise_posterior(np.full(20, 4.0), df=np.full(20, 4.0))
    assert_allclose(found.precision, 1, rtol=0.05)
    assert (found.log_variance > polygamma(1, 40)).all()
    assert (found.log_variance < 0.08).all()


@pytest.mark.parametrize("factor", [1e3, 1e9])
def test_scales_far_apart_are_both_seen(factor: float) -> None:
    df = np.full(4, 200.0)
    found = noise_posterior(df * np.array([1.0, 1.0, 1.0, factor]), df=df)
    assert_allclose(found.precision, [1, 1, 1, 1 / factor], rtol=0.05)
    assert (found.log_variance[:3] < 2 * polygamma(1, 300)).all()


def test_an_odd_one_is_seen_and_the_others_stay_pooled() -> None:
    squares = np.array([4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 400.0])
    found = noise_posterior(squares, df=np.full(8, 4.0))
    assert_allclose(found.precision[:7], 1, rtol=0.25)
    assert found.precision[7] < 0.03


def test_the_unit_plays_no_part() -> None:
    squares, df = np.array([1.0, 2.0, 5.0]), np.array([1.5, 2.0, 4.0])
    once, again = noise_posterior(squares, df=df), noise_posterior(squares * 1e8, df=df)
    assert_allclose(again.precision * 1e8, once.precision, rtol=1e-9)
    assert_allclose(again.log_variance, once.log_variance, rtol=1e-9)


def test_the_matched_variable_has_the_moments() -> None:
    found = noise_posterior(np.array([1.0, 2.0, 5.0]), df=np.array([1.5, 2.0, 4.0]))
    df, scale = found.scaled_inverse_chi_squared()
    draws = np.log(df * scale / np.random.default_rng(3).chisquare(df, size=(200000, 3)))
    assert_allclose(draws.mean(axis=0), found.log_mean, atol=0.02)
    assert_allclose(draws.var(axis=0), found.log_variance, rtol=0.02)


@pytest.mark.parametrize("x", [0.3, 1.0, 7.0, 500.0])
def test_inverse_trigamma(x: float) -> None:
    assert_allclose(_inverse_trigamma(polygamma(1, np.array([x]))), x, rtol=1e-6)


def test_noise_stands_out_that_is_larger_by_enough_scores() -> None:
    # 1.3^2 = 1.69 times the common variance of 2, from more than 2.4 degrees of freedom
    squares, df = np.array([3.39, 3.37, 3.39, 3.39]) * [3, 3, 2, 9], np.array([3.0, 3.0, 2.0, 9.0])
    assert noise_that_stands_out(squares, df=df, common=2.0) == pytest.approx([3.39, 0.0, 0.0, 3.39])
