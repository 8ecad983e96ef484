import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.choosing.beliefs import Belief, ModeratedT, StudentT
from fiesta_allennlp.choosing.beliefs.student_t import LogitStudentT
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History
from tests.choosing.histories import evaluation, history, request


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


def drawn(seed: int, *, split_sd: float) -> History:
    """Three candidates with 10 evaluations each on shared splits, means .60, .61 and .55, noise .02."""
    rng = np.random.default_rng(seed)
    splits = rng.normal(0, split_sd, 10)
    scores = {name: mean + splits + rng.normal(0, 0.02, 10) for name, mean in (("a", 0.60), ("b", 0.61), ("c", 0.55))}
    return history(scores)


def test_two_evaluations_are_enough_and_equal_ones_share_equally() -> None:
    probabilities = ModeratedT().posterior(history({"a": [0.60, 0.70], "b": [0.50, 0.61]})).prob_best()
    assert 0.6 < probabilities[0] < 0.999
    equal = ModeratedT().posterior(history(dict.fromkeys("abc", [0.5] * 3)))
    assert_allclose(equal.prob_best(), 1 / 3)
    # Two runs on each of three splits count as their mean.
    pairs = {"a": (0.60, 0.63, 0.61), "b": (0.65, 0.66, 0.67)}
    rows = {name: [(k // 2, means[k // 2] + 0.01 * (-1) ** k) for k in range(6)] for name, means in pairs.items()}
    means_alone = ModeratedT().posterior(history(pairs)).prob_best()
    assert_allclose(ModeratedT().posterior(on_splits(rows)).prob_best(), means_alone)


def test_runs_on_splits_of_their_own_are_two_samples() -> None:
    together = drawn(3, split_sd=0.1)
    apart = on_splits(
        {name: [(10 * k + s, x) for s, x in enumerate(together.scores(name))] for k, name in enumerate("abc")}
    )
    paired, unpaired = (ModeratedT().posterior(now) for now in (together, apart))
    assert unpaired.noise_sd > 0.1
    assert paired.noise_sd == pytest.approx(0.02, rel=0.3)
    assert unpaired.prob_best().max() < 0.9 < paired.prob_best().max()


def test_a_table_that_is_too_large_to_pair_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    together = drawn(3, split_sd=0.1)
    monkeypatch.setattr("fiesta_allennlp.choosing.beliefs.student_t.MAX_CELLS", 10)
    with pytest.raises(ScoreError, match="too many to compare"):
        ModeratedT().posterior(together)


def test_a_single_shared_split_is_enough_for_an_answer() -> None:
    """As when the first runs of two candidates failed on different splits."""
    rows = {"a": [(0, 0.607), (1, 0.612)], "b": [(1, 0.639), (2, 0.648)]}
    assert 0.5 < ModeratedT().posterior(on_splits(rows)).prob_best()[1] < 1


def on_splits(scores: "dict[str, list[tuple[int, float]]]") -> History:
    """Splits and scores of each candidate."""
    done = [
        replace(evaluation(name, k, score), request=replace(request(name, k), split_seed=split))
        for name, rows in scores.items()
        for k, (split, score) in enumerate(rows)
    ]
    return History(tuple(scores), tuple(done))


@pytest.mark.parametrize(
    "splits",
    [
        {"a": (0, 1), "b": (0, 1), "c": (2, 3), "d": (2, 3)},
        {"a": (0, 1), "b": (1, 2), "c": (4, 5)},
    ],
    ids=["two pairs", "a chain and one apart"],
)
def test_candidates_that_share_no_split_are_compared_too(splits: "dict[str, tuple[int, int]]") -> None:
    # Such as after failures of the first runs of one candidate. The means are .60, .61, .62 and .63.
    rng = np.random.default_rng(1)
    rows = {
        name: [(k, 0.60 + 0.01 * place + rng.normal(0, 0.02)) for k in numbers]
        for place, (name, numbers) in enumerate(splits.items())
    }
    posterior = ModeratedT().posterior(on_splits(rows))
    assert posterior.prob_best().sum() == pytest.approx(1)
    assert posterior.prob_best().max() < 0.97
    leads = [posterior.lead(rival) for rival in range(len(splits)) if rival != posterior.leader]
    assert all(lead is not None and lead.standard_error > 0.002 for lead in leads)
