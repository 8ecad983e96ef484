import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from fiesta_allennlp.beliefs import Belief, StudentT
from fiesta_allennlp.beliefs.student_t import LogitStudentT
from fiesta_allennlp.errors import ScoreError
from tests.strategies.histories import history


def test_posterior_by_hand() -> None:
    # xbar = 0.6 and S = 0.01 + 0 + 0.01; n (n - 2) = 3. Then xbar = 0.5, S = 4 x 0.01, n (n - 2) = 8.
    posterior = StudentT().posterior(history({"a": [0.5, 0.6, 0.7], "b": [0.4, 0.6, 0.4, 0.6]}))
    assert_allclose(posterior.location, [0.6, 0.5])
    assert_allclose(posterior.scale, [np.sqrt(0.02 / 3), np.sqrt(0.04 / 8)])
    assert_allclose(posterior.df, [[1, 2]])
    # Both have S = 0.02 and n = 3, so the difference of the means is a Cauchy with twice the scale.
    posterior = StudentT().posterior(history({"a": [0.5, 0.6, 0.7], "b": [0.6, 0.7, 0.8]}))
    assert_allclose(posterior.prob_best(0.1), [0.5, 0.5 + np.arctan(0.1 / np.sqrt(0.02 / 3)) / np.pi], atol=1e-9)


def test_posterior_against_likelihood_and_prior() -> None:
    scores = np.array([0.61, 0.66, 0.58, 0.64, 0.63])

    def density(mean: float) -> float:
        # The Gaussian likelihood under a uniform prior of sigma, with sigma integrated out numerically.
        squares = np.sum((scores - mean) ** 2)
        return integrate.quad(
            lambda sigma: sigma ** -len(scores) * np.exp(-squares / (2 * sigma**2)) * 1e-6,
            1e-3,
            50,
            points=[0.02, 0.1, 1],
            limit=200,
            epsrel=1e-10,
        )[0]

    grid = np.linspace(-0.4, 1.6, 2001)
    values = np.array([density(mean) for mean in grid])
    total = integrate.simpson(values, x=grid)
    posterior = StudentT().posterior(history({"a": list(scores), "b": list(scores)}))
    expected = stats.t.pdf(grid, posterior.df[0, 0], posterior.location[0], posterior.scale[0])
    assert_allclose(values / total, expected, rtol=1e-4, atol=1e-5)


def test_equal_scores_are_a_mean_known_exactly() -> None:
    # The plain mean of three times 0.8 is not 0.8 in doubles, and the tie would be lost.
    assert np.mean([0.8] * 3) != 0.8
    posterior = StudentT().posterior(history({"a": [0.8] * 3, "b": [0.8] * 4, "c": [0.7] * 3}))
    assert posterior.scale.tolist() == [0, 0, 0]
    assert_allclose(posterior.prob_best(), [0.5, 0.5, 0])


@pytest.mark.parametrize(
    ("belief", "score"), [(StudentT(), np.nan), (StudentT(), np.inf), (StudentT(), -1e200), (LogitStudentT(), 64.0)]
)
def test_scores_that_cannot_be_used_are_refused_with_candidate_and_value(belief: Belief, score: float) -> None:
    with pytest.raises(ScoreError, match=re.escape(f'candidate "a" has {score}')):
        belief.posterior(history({"a": [0.1, score, 0.2], "b": [0.1, 0.2, 0.3]}))
