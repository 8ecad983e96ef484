from typing import List, Tuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import beta

from fiesta_allennlp.probability.f_measure import BINARY, MeasureModel, Pair, log_odds, macro_prior

FOUR = tuple(BINARY.values())
ALIKE = 1e8


def labelled(num_labels: int) -> List[Pair]:
    """Every gold label with every answer, among them none of the labels."""
    labels = [f"l{i:02d}" for i in range(num_labels)]
    return [(gold, answer) for gold in labels for answer in [*labels, "?"]]


def posterior(counts: object, pairs: object, average: str, **options: object) -> Tuple[np.ndarray, np.ndarray]:
    """Draws of the measure with their weights."""
    given = {"concentration": 1.0, "learn_concentration": True, "prior_concentration": None, "num_samples": 1024}
    model = MeasureModel(beta=0.5, average=average, **{**given, **options})  # type: ignore[arg-type]
    draws, weights = model.posterior(np.array(counts, dtype=float), pairs)  # type: ignore[arg-type]
    return expit(draws), weights


def moments(draws: np.ndarray, weights: np.ndarray) -> Tuple[float, float]:
    mean = float(weights @ draws)
    return mean, float(np.sqrt(weights @ (draws - mean) ** 2))


def test_accuracy_is_that_of_two_kinds_and_the_prior_of_a_label_has_the_share_of_all() -> None:
    # 17 right and 3 wrong, with half an answer of each before, however many labels there are.
    known = {"concentration": ALIKE, "learn_concentration": False}
    for counts, pairs in (([[6, 1, 2, 11]], FOUR), ([[9, 0, 1, 2, 8, 0]], labelled(2))):
        mean, deviation = moments(*posterior(counts, pairs, "accuracy", **known))
        assert mean == pytest.approx(17.5 / 21, abs=1e-3)
        assert deviation == pytest.approx(beta.std(17.5, 3.5), abs=1e-3)
    with_prior = posterior([[6, 1, 2, 11]], FOUR, "accuracy", **known, prior_concentration=40.0)
    assert moments(*with_prior)[0] == pytest.approx(37 / 60, abs=1e-3)
    pairs = labelled(3)
    prior = dict(zip(pairs, macro_prior(pairs, 0.8), strict=True))
    assert sum(prior.values()) == pytest.approx(2 * 3 + 1)
    expected = [2 * 0.8 + 1 / 6, (2 * 0.2 + 1 / 6) / 3, (2 * 0.2 + 1 / 6) / 3]
    assert_allclose([prior[pair] for pair in (("l00", "l00"), ("l00", "l01"), ("l02", "?"))], expected)


def true_rates(num_labels: int, share: float) -> np.ndarray:
    """Rates of kinds, in the order of `labelled`: equally frequent labels, wrong answers of all kinds but none."""
    rates = np.zeros((num_labels, num_labels + 1))
    rates[:, :-1] = (1 - share) / (num_labels - 1) / num_labels
    rates[np.arange(num_labels), np.arange(num_labels)] = share / num_labels
    return rates.ravel()


@pytest.mark.parametrize(("num_labels", "num_documents"), [(3, 60), (12, 6)])
def test_the_true_measure_is_where_it_is_believed_to_be(num_labels: int, num_documents: int) -> None:
    """Whether a system was asked about few documents or many, it does not seem worse or better than it is by much:
    else the one that was asked more often would win. Documents of some three items each."""
    rng, share = np.random.default_rng(5), 0.8
    rates, pairs = true_rates(num_labels, share), labelled(num_labels)
    errors = []
    for _ in range(25):
        counts = np.stack([rng.multinomial(1 + rng.poisson(2.5), rates) for _ in range(num_documents)])
        mean, deviation = moments(*posterior(counts, pairs, "macro", num_samples=256))
        errors.append((mean - share) / deviation)
    assert abs(np.mean(errors)) < 1.2
    assert np.mean(np.abs(errors) < 2) >= 0.8


def value(pairs: "list[tuple[str, str]]", rates: "list[float]", **options: object) -> float:
    return float(expit(log_odds(np.log([rates]), pairs, **options)[0]))  # type: ignore[arg-type]


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.8, 1.0])
def test_beta_weighs_precision_against_recall(beta: float) -> None:
    precision, recall = 0.4 / 0.5, 0.4 / 0.7
    expected = 1 / (beta / precision + (1 - beta) / recall)
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="binary", beta=beta) == pytest.approx(expected)


def test_macro_is_the_mean_over_gold_labels() -> None:
    pairs = [("a", "a"), ("a", "b"), ("a", "?"), ("b", "a"), ("b", "b"), ("b", "?")]
    rates = [0.3, 0.1, 0.05, 0.15, 0.35, 0.05]
    f_a = 2 * 0.3 / (2 * 0.3 + 0.1 + 0.05 + 0.15)
    f_b = 2 * 0.35 / (2 * 0.35 + 0.15 + 0.05 + 0.1)
    assert value(pairs, rates, average="macro", beta=0.5) == pytest.approx((f_a + f_b) / 2)
    # Precision of 1 is 0.8, of 0 is 0.2 / 0.5.
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="macro", beta=1.0) == pytest.approx((0.8 + 0.4) / 2)


def test_nothing_is_lost_near_the_ends() -> None:
    log_rates = np.array([[0.0, -500.0, -500.0, -1.0], [-900.0, 0.0, 0.0, -1.0]])
    assert_allclose(log_odds(log_rates, FOUR, average="binary", beta=0.5), [500, -900])
