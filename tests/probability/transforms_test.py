import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.errors import ScoreError
from fiesta_allennlp.probability import logit
from fiesta_allennlp.probability.student_t import LOGIT_CLIP


def test_logit_by_hand() -> None:
    assert_allclose(logit(np.array([0.5, 0.75, 0.1]), candidate="a"), [0, np.log(3), -np.log(9)], atol=1e-15)


def test_zero_and_one_are_clipped_alike() -> None:
    zero, one = logit(np.array([0.0, 1.0]), candidate="a")
    assert one == pytest.approx(np.log((1 - LOGIT_CLIP) / LOGIT_CLIP))
    assert zero == pytest.approx(-one)


@pytest.mark.parametrize("score", [-0.01, 1.01, 64.2, float("nan")])
def test_refuses_other_scores_and_names_candidate_and_value(score: float) -> None:
    with pytest.raises(ScoreError, match=f'"tdlstm" has {score}'):
        logit(np.array([0.5, score]), candidate="tdlstm")
