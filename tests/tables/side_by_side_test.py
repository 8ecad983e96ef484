"""Selections that are simulated together have the posteriors that each would have alone."""

import numpy as np

from fiesta_allennlp.beliefs.split_paired import SplitPaired
from fiesta_allennlp.tables.side_by_side import PreparedBelief
from tests.strategies.histories import THREE_EACH, history


def test_a_candidate_that_dropped_out_of_one_selection_is_still_in_the_other() -> None:
    histories = [history(THREE_EACH), history(THREE_EACH, withdrawn=["c"])]
    prepared = PreparedBelief(SplitPaired(), [0.0])
    prepared.prepare(histories)
    for each, num_active in zip(histories, (3, 2), strict=True):
        together = prepared.posterior(each).prob_best()
        assert together.shape == (num_active,)
        np.testing.assert_allclose(together, SplitPaired().posterior(each).prob_best(), atol=1e-9)
