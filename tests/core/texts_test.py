from typing import Optional

import pytest

from fiesta_allennlp.core.texts import cost_text, duration_text, number_text, probability_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.5, "0.500"), (0.99999, "> 0.999"), (1.0, "1.000"), (1e-9, "< 0.001"), (0.0, "0.000")],
)
def test_a_probability_is_never_rounded_to_certainty(value: Optional[float], text: str) -> None:
    assert probability_text(value) == text
    numbers = number_text(0.12345), number_text(-1.23456e99), number_text(2.0, 1, sign="+")
    assert numbers == ("0.1235", "-1.235e+99", "+2.0")
    assert [duration_text(seconds) for seconds in (59.4, 61, 90061)] == ["59.4 s", "1 min 1 s", "25 h 1 min"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.2e-5, "1.2e-05"), (1.5e-5, "1.5e-05"), (1e9 + 0.5, "1000000000.5"), (-2e-4, "-0.0002"), (0.0, "0.0000")],
)
def test_small_and_large_numbers_keep_their_digits(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_small_cost_has_two_significant_digits() -> None:
    assert [cost_text(cost) for cost in (None, 0.0, 0.000812, 0.025, 12.5)] == [
        "-",
        "0.00",
        "0.00081",
        "0.025",
        "12.50",
    ]
