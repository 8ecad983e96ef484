import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.probability.f_measure import BINARY, measure_of

FOUR = tuple(BINARY.values())


def value(pairs: "list[tuple[str, str]]", rates: "list[float]", **options: object) -> float:
    log_odds = measure_of(pairs, **options).log_odds(np.log(np.array([rates])))  # type: ignore[arg-type]
    return float(1 / (1 + np.exp(-log_odds[0])))


def test_f1_worked_by_hand() -> None:
    # Precision 0.4 / 0.5, recall 0.4 / 0.7: F1 = 0.8 / 1.2.
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="binary", beta=0.5) == pytest.approx(2 / 3)


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.8, 1.0])
def test_beta_weighs_precision_against_recall(beta: float) -> None:
    precision, recall = 0.4 / 0.5, 0.4 / 0.7
    expected = 1 / (beta / precision + (1 - beta) / recall)
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="binary", beta=beta) == pytest.approx(expected)


def test_f2_of_the_other_convention() -> None:
    # F_b = (1 + b^2) P R / (b^2 P + R) with b = 2, by scikit-learn's definition.
    precision, recall = 0.8, 4 / 7
    expected = 5 * precision * recall / (4 * precision + recall)
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="binary", beta=1 / 5) == pytest.approx(expected)


def test_macro_is_the_mean_over_gold_labels() -> None:
    pairs = [("a", "a"), ("a", "b"), ("a", "?"), ("b", "a"), ("b", "b"), ("b", "?")]
    rates = [0.3, 0.1, 0.05, 0.15, 0.35, 0.05]
    f_a = 2 * 0.3 / (2 * 0.3 + 0.1 + 0.05 + 0.15)
    f_b = 2 * 0.35 / (2 * 0.35 + 0.15 + 0.05 + 0.1)
    assert value(pairs, rates, average="macro", beta=0.5) == pytest.approx((f_a + f_b) / 2)


def test_macro_of_a_binary_task_has_both_labels() -> None:
    f_no = 2 * 0.2 / (2 * 0.2 + 0.1 + 0.3)
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="macro", beta=0.5) == pytest.approx((2 / 3 + f_no) / 2)


def test_macro_weighs_with_beta() -> None:
    # Precision of 1 is 0.8, of 0 is 0.2 / 0.5.
    assert value(FOUR, [0.4, 0.1, 0.3, 0.2], average="macro", beta=1.0) == pytest.approx((0.8 + 0.4) / 2)


def test_nothing_is_lost_near_the_ends() -> None:
    measure = measure_of(FOUR, average="binary", beta=0.5)
    log_rates = np.array([[0.0, -500.0, -500.0, -1.0], [-900.0, 0.0, 0.0, -1.0]])
    assert_allclose(measure.log_odds(log_rates), [500, -900])
