from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fiesta_allennlp.choosing.probability.prob_best import LOGIT_CLIP, logit, prob_best
from fiesta_allennlp.core.errors import ConfigError, ScoreError

TOLERANCE = 1e-7


def reference(index: int, location: np.ndarray, scale: np.ndarray, df: np.ndarray, margin: float = 0.0) -> float:
    """P(best) of one variable with nothing of the package: scipy's functions on a ladder of steps around each
    variable, 20 Gauss-Legendre nodes each."""
    points, weights = np.polynomial.legendre.leggauss(20)
    rungs = 0.4 * 2.0 ** np.arange(42)
    ladder = np.concatenate([-rungs[::-1], [0], rungs])
    edges = np.unique(np.concatenate([location, location - margin])[:, None] + np.tile(scale, 2)[:, None] * ladder)
    half = np.diff(edges) / 2
    x = (edges[:-1, None] + half[:, None] * (1 + points)).ravel()
    integrand = stats.t.pdf(x, df[index], location[index], scale[index])
    for other in range(len(location)):
        if other != index:
            integrand *= stats.t.cdf(x + margin, df[other], location[other], scale[other])
    return float(np.sum(integrand * (half[:, None] * weights).ravel()))


def test_equal_candidates_share_equally() -> None:
    for df, number in ((1, 1), (2, 2), (3.5, 3), (10, 12), (500, 50)):
        assert_allclose(prob_best(np.full(number, 0.7), scale=0.03, df=df), 1 / number, atol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("df", [(1, 2), (1, 30), (100, 400)])
@pytest.mark.parametrize("exponents", [(-1.7, -1.7), (-2.5, -1), (-6, 3)])
def test_many_candidates_against_the_reference(exponents: Any, df: Any, margin: float) -> None:
    rng = np.random.default_rng(7)
    location, scale = rng.normal(0.6, 0.05, 7), 10 ** rng.uniform(*exponents, 7)
    degrees = rng.integers(*df, 7).astype(float)
    result = prob_best(location, scale=scale, df=degrees, margin=margin)
    for index in {0, int(np.argmax(result)), int(np.argmin(scale))}:
        assert result[index] == pytest.approx(reference(index, location, scale, degrees, margin), abs=TOLERANCE)


def test_sums_to_one_without_margin_and_grows_with_it_whatever_the_unit() -> None:
    location, scale = np.array([0.60, 0.61, 0.64, 0.1]), np.array([0.02, 1e-5, 0.01, 0.0])
    df = np.array([1, 3, 8, 2])
    margins = [0.0, 1e-9, 0.01, 0.02, 0.1, 0.6]
    rows = np.array([prob_best(location, scale=scale, df=df, margin=margin) for margin in margins])
    assert rows[0].sum() == pytest.approx(1, abs=1e-15)
    assert (np.diff(rows, axis=0) >= -1e-9).all()
    assert rows.max() <= 1
    assert_allclose(prob_best(location * 1e90, scale=scale * 1e90, df=df, margin=1e88), rows[2], atol=1e-9)
    assert_allclose(prob_best(location - 3, scale=scale, df=df, margin=0.01), rows[2], atol=1e-9)


@pytest.mark.parametrize(
    ("location", "scale", "margin", "expected"),
    [
        ([0.8], 0, 0, [1]),
        ([0.8, 0.7], 0, 0, [1, 0]),
        ([0.8, 0.8, 0.7], 0, 0, [0.5, 0.5, 0]),
        # The third is below 0.8 with probability 1/2, which the two points share.
        ([0.8, 0.8, 0.8], [0, 0, 0.1], 0, [0.25, 0.25, 0.5]),
        # Below the highest point a point has no chance, and a Cauchy at its place one half.
        ([0.8, 0.2, 0.8], [0, 0, 0.1], 0, [0.5, 0, 0.5]),
        # With a margin nothing is shared and the inequality is closed: 0.7 + 0.1 is less than 0.8 in doubles.
        ([0.8, 0.7, 0.69], 0, 0.1, [1, 1, 0]),
        # The point counts if the Cauchy is at most 0.55, the Cauchy if it is at least 0.45.
        ([0.5, 0.6], [0, 0.1], 0.05, [0.5 + np.arctan(-0.5) / np.pi, 0.5 + np.arctan(1.5) / np.pi]),
        # A certain winner, and scales that doubles cannot resolve.
        ([0.9, 0.1, 0.2], [0, 1e-9, 0], 0.1, [1, 0, 0]),
        ([0.5, 0.5, -1e9], [1e-300, 1e-17, 0.1], 0, [0.5, 0.5, 0]),
    ],
)
def test_point_masses(location: "list[float]", scale: Any, margin: float, expected: "list[float]") -> None:
    assert_allclose(prob_best(np.array(location), scale=np.array(scale), df=1, margin=margin), expected, atol=TOLERANCE)


@pytest.mark.parametrize("given", [{"scale": -1}, {"df": 0.5}, {"location": np.nan}, {"location": np.inf}])
def test_refuses_what_is_no_distribution(given: Any) -> None:
    with pytest.raises(ScoreError):
        prob_best(np.array([given.pop("location", 0.0), 0.0]), **{"scale": 1, "df": 1, **given})
    for margin in (-0.1, np.inf):
        with pytest.raises(ConfigError):
            prob_best(np.zeros(2), scale=1, df=1, margin=margin)


def test_logit_by_hand() -> None:
    """Zero and one are clipped alike; other scores are refused with candidate and value."""
    assert_allclose(logit(np.array([0.5, 0.75, 0.1]), candidate="a"), [0, np.log(3), -np.log(9)], atol=1e-15)
    assert_allclose(
        logit(np.array([0.0, 1.0]), candidate="a"), np.log((1 - LOGIT_CLIP) / LOGIT_CLIP) * np.array([-1, 1])
    )
    for score in (-0.01, 1.01, float("nan")):
        with pytest.raises(ScoreError, match=f"'tdlstm' has {score}"):
            logit(np.array([0.5, score]), candidate="tdlstm")
