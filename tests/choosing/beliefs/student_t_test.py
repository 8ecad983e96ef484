import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.choosing.beliefs import Belief, StudentT
from fiesta_allennlp.choosing.beliefs.student_t import LogitStudentT
from fiesta_allennlp.core.errors import ScoreError
from tests.choosing.histories import history


def test_posterior_by_hand() -> None:
    # xbar = 0.6 and S = 0.01 + 0 + 0.01; n (n - 2) = 3. Then xbar = 0.5, S = 4 x 0.01, n (n - 2) = 8.
    posterior = StudentT().posterior(history({"a": [0.5, 0.6, 0.7], "b": [0.4, 0.6, 0.4, 0.6]}))
    assert_allclose(posterior.location, [0.6, 0.5])
    assert_allclose(posterior.scale, [np.sqrt(0.02 / 3), np.sqrt(0.04 / 8)])
    assert_allclose(posterior.df, [1, 2])
    # Both have S = 0.02 and n = 3, so the difference of the means is a Cauchy with twice the scale.
    posterior = StudentT().posterior(history({"a": [0.5, 0.6, 0.7], "b": [0.6, 0.7, 0.8]}))
    assert_allclose(posterior.prob_best(0.1), [0.5, 0.5 + np.arctan(0.1 / np.sqrt(0.02 / 3)) / np.pi], atol=1e-9)


def test_jeffreys_prior_by_hand() -> None:
    belief = StudentT(prior="jeffreys")
    assert belief.min_evaluations == 2
    # xbar = 0.6 and S = 0.02; n (n - 1) = 6. Then xbar = 0.55, S = 0.005, n (n - 1) = 2.
    posterior = belief.posterior(history({"a": [0.5, 0.6, 0.7], "b": [0.5, 0.6]}))
    assert_allclose(posterior.location, [0.6, 0.55])
    assert_allclose(posterior.scale, [np.sqrt(0.02 / 6), np.sqrt(0.005 / 2)])
    assert_allclose(posterior.df, [2, 1])


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
    with pytest.raises(ScoreError, match=re.escape(f"'a' has {score}")):
        belief.posterior(history({"a": [0.1, score, 0.2], "b": [0.1, 0.2, 0.3]}))
