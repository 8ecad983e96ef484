import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from fiesta_allennlp.choosing.beliefs.paired_measure import PseudoScores, pseudo_scores

RNG = np.random.default_rng(4)


def of_accuracy(right: np.ndarray, sizes: np.ndarray) -> PseudoScores:
    """Shapes: `(num_systems, num_documents)` and `(num_documents,)`."""
    return pseudo_scores([2.0 * each[:, None] for each in right], [2.0 * sizes[:, None]] * len(right))


def test_the_mean_is_the_metric_with_one_more_item_of_each_label() -> None:
    numerators = [RNG.integers(0, 9, (number, 3)).astype(float) for number in (40, 7)]
    denominators = [each + RNG.integers(0, 5, each.shape) for each in numerators]
    found = pseudo_scores(numerators, denominators)
    right, whole = (sum(each.sum(axis=0) for each in part) for part in (numerators, denominators))
    shared = (right + 2 * (right.sum() + 1) / (whole.sum() + 2)) / (whole + 2)
    for a, b, scores in zip(numerators, denominators, found.scores, strict=True):
        with_one_more = (a.sum(axis=0) + 2 * shared) / (b.sum(axis=0) + 2)
        assert scores.mean() + found.centre == pytest.approx(with_one_more.mean())


def test_a_label_that_nobody_has_seen_is_answered_like_all_others_and_adds_noise() -> None:
    """3 of 4 right: (6 + 1) / (8 + 2) of all. The unseen label has weight 4 / 2 / 2 = 1, the other 4 / 10 / 2 = 0.2."""
    seen = np.array([[2.0], [2.0], [2.0], [0.0]])
    numerators = np.concatenate([seen, np.zeros((4, 1))], axis=1)
    denominators = np.concatenate([np.full((4, 1), 2.0), np.zeros((4, 1))], axis=1)
    found = pseudo_scores([numerators], [denominators])
    known = (6 + 2 * 0.7) / 10
    assert found.centre == pytest.approx((known + 0.7) / 2)
    assert_allclose(found.unseen_squares, (2 * 0.2) ** 2 * known * (1 - known) + 2**2 * 0.7 * 0.3)


def test_intervals_are_those_of_a_mean_with_one_more_item() -> None:
    """Of many documents with 50 items each: nearly the t interval of the documents' shares."""
    right, sizes = RNG.binomial(50, 0.7, (1, 60)), np.full(60, 50)
    found = of_accuracy(right, sizes)
    shares = right[0] / 50
    low, high = found.interval(0.9)[0]
    assert_allclose((low, high), stats.t.interval(0.9, 59, shares.mean(), stats.sem(shares)), atol=2e-4)
    assert of_accuracy(np.full((2, 3), 5), np.full(3, 5)).interval(0.99)[:, 1].tolist() == [1, 1]


def test_intervals_cover_the_true_metric() -> None:
    """A fifth of the items is wrong, documents differ. The share of 95% intervals with the truth: 0.95 +- 3 sd."""
    covered = 0
    for _ in range(400):
        sizes = RNG.integers(1, 8, 40)
        found = of_accuracy(RNG.binomial(sizes, RNG.beta(8, 2, 40))[None], sizes)
        low, high = found.interval(0.95)[0]
        covered += low <= 0.8 <= high
    assert covered / 400 == pytest.approx(0.95, abs=3 * (0.95 * 0.05 / 400) ** 0.5)
