import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fiesta_allennlp.probability.split_effects import (
    MeanScorePosterior,
    SplitScores,
    _independent_variances,
    mean_score_posteriors,
    refit_correlated,
)
from fiesta_allennlp.probability.student_t import prob_best, prob_best_of_selections


def table(values: np.ndarray, present: "np.ndarray | None" = None) -> SplitScores:
    """One evaluation in each cell where `present`; `values` has the shape (num_candidates, num_splits)."""
    counts = np.ones_like(values) if present is None else present.astype(float)
    return SplitScores(counts, (values - values[counts > 0].mean()) * counts, np.zeros(len(values)))


def drawn(seed: int, *, num_candidates: int, num_splits: int, split_sd: float, noise_sd: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, noise_sd, (num_candidates, num_splits))
    return rng.normal(0, 1, (num_candidates, 1)) + rng.normal(0, split_sd, num_splits) + noise


def mean_scores(scores: SplitScores) -> MeanScorePosterior:
    return mean_score_posteriors([scores])[0]


def scales(found: MeanScorePosterior) -> np.ndarray:
    """The root mean squared scale of each candidate. Shape: (num_candidates,)."""
    return np.sqrt((found.weight * found.scale**2).sum(axis=0))


def test_a_balanced_table_gives_the_scale_of_paired_differences() -> None:
    # Many splits, so that priors hardly count: Var(mu_0 - mu_1) = Var(x_0k - x_1k) / n.
    values = drawn(1, num_candidates=2, num_splits=200, split_sd=5.0)
    found = mean_scores(table(values))
    differences = values[0] - values[1]
    assert_allclose(found.location[0] - found.location[1], differences.mean(), rtol=0.02)
    assert_allclose(np.hypot(*scales(found)), differences.std(ddof=1) / np.sqrt(200), rtol=0.03)


@pytest.mark.parametrize(("num_candidates", "num_splits", "split_sd"), [(2, 4, 1.0), (8, 2, 0.0), (8, 6, 10.0)])
def test_probabilities_are_right_as_often_as_they_say(num_candidates: int, num_splits: int, split_sd: float) -> None:
    # P(mu_0 - mu_1 > its true value) is uniform: a tenth of 500 tables give less than .05 or more than .95, with a
    # standard error of 1.3 %.
    rng = np.random.default_rng([num_candidates, num_splits])
    means, tables = [], []
    for _ in range(500):
        means.append(rng.normal(0, 1.5, (num_candidates, 1)))
        noise = rng.normal(0, 1, (num_candidates, num_splits))
        tables.append(table(means[-1] + rng.normal(0, split_sd, num_splits) + noise))
    every = mean_score_posteriors(tables)
    error = np.array([found.location[:2] - mean[:2, 0] for found, mean in zip(every, means, strict=True)])
    parts = {key: np.stack([getattr(one, key)[:, :2] for one in every], axis=1) for key in ("scale", "df", "weight")}
    probability = prob_best_of_selections(error, **parts)[:, 0]
    assert 0.06 < np.mean((probability <= 0.05) | (probability >= 0.95)) < 0.14


def test_a_candidate_with_few_evaluations_is_corrected_for_its_splits() -> None:
    # Candidate 2 was evaluated on the two best splits only: its plain mean is too high by what those splits give.
    values = np.array([[0.0, 0.1, 4.0, 4.1], [1.0, 0.9, 5.1, 5.0], [0.0, 0.0, 4.6, 4.5]])
    values = values + np.random.default_rng(0).normal(0, 0.05, values.shape)
    present = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 1]], dtype=bool)
    found = mean_scores(table(values, present))
    assert_allclose(found.location[2] - found.location[0], 0.5, atol=0.1)
    assert_allclose(found.location[1] - found.location[0], 1.0, atol=0.1)


def test_a_noisier_candidate_is_less_sure_and_several_seeds_on_a_split_tell_the_noise() -> None:
    values = drawn(5, num_candidates=6, num_splits=12, split_sd=1.0, noise_sd=0.5)
    values[2] += np.random.default_rng(6).normal(0, 3.0, 12)
    found = mean_scores(table(values))
    assert scales(found)[2] > 3 * np.delete(scales(found), 2).max()
    assert found.weight[0, 2] > 0.99
    # The same cell means from one evaluation each, or from four that differ by as much as the noise, or by more.
    values = drawn(7, num_candidates=3, num_splits=6, split_sd=1.0, noise_sd=0.5)
    centred = values - values.mean()
    one = mean_scores(table(values))
    same, wider = (
        mean_scores(SplitScores(np.full((3, 6), 4.0), centred * 4, np.full(3, 18 * sd**2))) for sd in (0.5, 2.0)
    )
    assert (same.df > one.df).all()
    assert (scales(wider) > 2 * scales(same)).all()


def test_of_two_candidates_alone_on_their_splits_the_one_that_fails_is_the_noisy_one() -> None:
    # Their differences would not tell which. The other four have three evaluations each.
    present = np.arange(20) < np.array([20, 20, 3, 3, 3, 3])[:, None]
    for failing, steady in ((0, 1), (1, 0)):
        values = drawn(9, num_candidates=6, num_splits=20, split_sd=1.0)
        values[failing, [7, 15]] -= 10
        found = mean_scores(table(values, present))
        assert found.weight[0, failing] > 0.9 > 1.5 * found.weight[0, steady]
        assert scales(found)[failing] > 1.5 * scales(found)[steady]


def test_candidates_that_move_with_the_leader_are_compared_by_their_own_differences() -> None:
    # Three near copies and five losers, which do not move with them: one effect of each split cannot hold for both.
    rng = np.random.default_rng(4)
    copies = rng.normal(0, 1, 12) + rng.normal(0, 0.05, (3, 12)) + np.array([[0.1], [0.0], [-0.05]])
    losers = rng.normal(-2, 1, (5, 12))
    scores = table(np.concatenate([copies, losers]))
    found, alone = refit_correlated(mean_scores(scores), scores), mean_scores(table(copies))
    differences = copies[0] - copies[1]
    assert_allclose(found.location[0] - found.location[1], differences.mean(), rtol=1e-9)
    assert_allclose(np.hypot(*scales(found)[:2]), differences.std(ddof=1) / np.sqrt(12), rtol=1e-9)
    of_all, of_copies = (
        prob_best(one.location, scale=one.scale, df=one.df, weight=one.weight) for one in (found, alone)
    )
    assert_allclose(of_all[:3], of_copies, atol=0.02)
    # Two runs on every split, with the same means.
    twice = SplitScores(2 * scores.counts, 2 * scores.sums, np.full(8, 12 * 2.0))
    again = refit_correlated(mean_scores(twice), twice)
    assert_allclose(np.diff(again.location[:3]), np.diff(found.location[:3]), rtol=1e-9)


def test_without_correlation_hardly_any_difference_is_replaced() -> None:
    tables = [table(drawn(seed, num_candidates=6, num_splits=8, split_sd=1.0)) for seed in range(100)]
    found = zip(mean_score_posteriors(tables), tables, strict=True)
    num_replaced = sum(refit_correlated(posterior, scores) is not posterior for posterior, scores in found)
    assert num_replaced <= 3, "500 differences, each at level 0.001"


def test_p_best_is_that_of_the_joint_normal() -> None:
    # A nested design as a selection makes it: the more promising, the more evaluations.
    counts = np.array([12, 10, 12, 4, 3, 2, 2, 2])
    present = (np.arange(12) < counts[:, None]).astype(float)
    split_total = present.sum(axis=0) + 1.0
    information = np.diag(counts.astype(float)) - (present / split_total) @ present.T
    covariance = np.linalg.inv(information + 0.4 * (np.eye(8) - 1 / 8))
    rng = np.random.default_rng(13)
    for gap in (0.3, 0.6, 1.0):
        location = np.array([gap, 0.0, 0.05, -1.0, -1.5, -2.0, -2.0, -3.0])
        draws = rng.multivariate_normal(location, covariance, size=200000)
        joint = np.bincount(draws.argmax(axis=1), minlength=8) / len(draws)
        scale = np.sqrt(_independent_variances(location, covariance))
        assert_allclose(prob_best(location, scale=scale, df=np.full(8, 1e5)), joint, atol=0.005)


def test_constant_noise_free_tables_have_an_answer() -> None:
    exact = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    found = mean_scores(table(exact))
    assert np.isfinite(found.location).all()
    assert (found.scale > 0).all()
    assert found.location[1] - found.location[0] == pytest.approx(1, rel=0.1)
    assert prob_best(found.location, scale=found.scale, df=found.df, weight=found.weight)[1] > 0.95


@pytest.mark.parametrize("num_others", [1, 2, 4])
def test_a_candidate_that_never_varies_is_compared_by_how_the_others_vary(num_others: int) -> None:
    # Its noise and the effects of the splits could both be 0. The differences are the others' scores, with a t test.
    for num_splits in (6, 8, 12, 20):
        rng = np.random.default_rng([num_others, num_splits])
        others = -np.abs(rng.normal(0, 1 + np.arange(num_others)[:, None], (num_others, num_splits)))
        found = mean_scores(table(np.concatenate([np.zeros((1, num_splits)), others])))
        probability = prob_best(found.location, scale=found.scale, df=found.df, weight=found.weight)[0]
        tested = [stats.t.cdf(-row.mean() / row.std(ddof=1) * num_splits**0.5, num_splits - 1) for row in others]
        assert probability == pytest.approx(1 - sum(1 - each for each in tested), abs=0.05)
