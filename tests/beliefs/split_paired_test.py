from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.beliefs import LogitSplitPaired, LogitUnpaired, SplitPaired, StudentT, Unpaired
from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.seeding import make_request
from tests.strategies.histories import history


def drawn(seed: int, *, split_sd: float, shared: bool = True) -> History:
    """Three candidates with 10 evaluations each, means .60, .61 and .55, noise .02."""
    rng = np.random.default_rng(seed)
    splits = rng.normal(0, split_sd, 10)
    done = []
    for name, mean in (("a", 0.60), ("b", 0.61), ("c", 0.55)):
        own = splits if shared else rng.normal(0, split_sd, 10)
        for k in range(10):
            request = make_request(seed, name, k, shared_splits=shared)
            done.append(Evaluation(request, mean + own[k] + rng.normal(0, 0.02), "macro_f1"))
    return History(("a", "b", "c"), tuple(done))


def test_two_evaluations_are_enough_to_begin() -> None:
    probabilities = SplitPaired().posterior(history({"a": [0.60, 0.70], "b": [0.50, 0.61]})).prob_best()
    assert 0.6 < probabilities[0] < 0.999


def test_unpaired_is_the_answer_where_no_two_scores_share_a_split() -> None:
    apart = drawn(3, split_sd=0.02, shared=False)
    assert_allclose(Unpaired().posterior(apart).prob_best(), SplitPaired().posterior(apart).prob_best())
    together = drawn(3, split_sd=0.1)
    renamed = [
        replace(e, request=replace(e.request, split_seed=number)) for number, e in enumerate(together.evaluations)
    ]
    for belief, paired in ((Unpaired(), SplitPaired()), (LogitUnpaired(), LogitSplitPaired())):
        mine = belief.posterior(together).prob_best()
        assert_allclose(mine, paired.posterior(replace(together, evaluations=tuple(renamed))).prob_best())
        assert not np.allclose(mine, paired.posterior(together).prob_best())


def test_what_splits_share_falls_out() -> None:
    now = drawn(1, split_sd=0.1)
    paired, alone = SplitPaired().posterior(now), StudentT().posterior(now)
    assert np.hypot(*paired.scale[:2]) < np.hypot(*alone.scale[:2]) / 2


def test_splits_that_nobody_shares_are_not_paired() -> None:
    now = drawn(3, split_sd=0.1, shared=False)
    paired = SplitPaired().posterior(now)
    spread = np.hypot(now.scores("a").std(ddof=1), now.scores("b").std(ddof=1)) / np.sqrt(10)
    assert_allclose(np.hypot(*paired.scale[:2]), spread, rtol=0.3)


def test_candidates_may_stand_at_different_replicates() -> None:
    now = drawn(4, split_sd=0.1)
    fewer = replace(now, evaluations=tuple(e for e in now.evaluations if e.request.key not in {("b", 3), ("c", 9)}))
    all_of_them, without = SplitPaired().posterior(now), SplitPaired().posterior(fewer)
    assert_allclose(np.diff(without.location), np.diff(all_of_them.location), atol=0.01)


def test_several_seeds_on_one_split() -> None:
    # Two evaluations on each of two splits; the splits differ by .2 and the seeds by .01.
    done = []
    for name, mean in (("a", 0.60), ("b", 0.65)):
        for k in range(4):
            request = replace(make_request(1, name, k, shared_splits=True), split_seed=k // 2)
            done.append(Evaluation(request, mean + 0.2 * (k // 2) + 0.01 * (k % 2), "macro_f1"))
    probabilities = SplitPaired().posterior(History(("a", "b"), tuple(done))).prob_best()
    assert probabilities[1] > 0.98


@pytest.mark.parametrize("unit", [1e-6, 100.0])
def test_the_unit_of_the_score_plays_no_part(unit: float) -> None:
    now = drawn(5, split_sd=0.02)
    scaled = replace(now, evaluations=tuple(replace(e, score=e.score * unit) for e in now.evaluations))
    assert_allclose(SplitPaired().posterior(scaled).prob_best(), SplitPaired().posterior(now).prob_best(), atol=1e-6)


def test_equal_scores_of_all_share_equally() -> None:
    same = history({"a": [0.5] * 3, "b": [0.5] * 3, "c": [0.5] * 3})
    assert_allclose(SplitPaired().posterior(same).prob_best(), 1 / 3)


def test_the_logit_is_taken_first() -> None:
    now = drawn(6, split_sd=0.02)
    by_hand = replace(
        now, evaluations=tuple(replace(e, score=float(np.log(e.score / (1 - e.score)))) for e in now.evaluations)
    )
    expected = SplitPaired().posterior(by_hand)
    assert_allclose(LogitSplitPaired().posterior(now).location, expected.location)
    assert_allclose(LogitSplitPaired().posterior(now).prob_best(), expected.prob_best())


@pytest.mark.parametrize(
    "replicates",
    [
        {"a": (0, 1), "b": (0, 1), "c": (2, 3)},
        {"a": (0, 1), "b": (0, 1), "c": (2, 3), "d": (2, 3)},
        {"a": (0, 1), "b": (1, 2), "c": (4, 5)},
        {"a": (0, 1), "b": (1, 2), "c": (2, 3)},
    ],
    ids=["one stands apart", "two pairs", "a chain and one apart", "a chain"],
)
def test_candidates_that_share_no_split_are_compared_too(replicates: "dict[str, tuple[int, int]]") -> None:
    # As when the first trainings of one candidate failed. The means are .60, .61, .62 and .63.
    rng = np.random.default_rng(1)
    done = []
    for index, (name, numbers) in enumerate(replicates.items()):
        for k in numbers:
            request = make_request(1, name, k, shared_splits=True)
            done.append(Evaluation(request, 0.60 + 0.01 * index + rng.normal(0, 0.02), "macro_f1"))
    posterior = SplitPaired().posterior(History(tuple(replicates), tuple(done)))
    assert posterior.prob_best().sum() == pytest.approx(1)
    assert posterior.prob_best().max() < 0.9
    assert (posterior.scale > 0.002).all()


def test_a_run_that_diverged_does_not_hide_the_difference_of_others() -> None:
    rng = np.random.default_rng(0)
    split = rng.normal(0, 1, 10)
    a, b, c = (mean - split - rng.normal(0, 0.5, 10) for mean in (-50, -55, -60))
    c[3] = -1e9
    a_is_best, b_is_best, _ = SplitPaired().posterior(history({"a": a, "b": b, "c": c})).prob_best()
    assert a_is_best > 0.7 and b_is_best < 1e-6
