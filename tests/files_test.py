from typing import Any

import pytest

from fiesta_allennlp.files import from_csv, to_csv


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("@SUM(1+1)", "'@SUM(1+1)"),
        ("-loss", "'-loss"),
        ("+a", "'+a"),
        ("'-a", "''-a"),
        ("+4", "'+4"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe_and_is_read_back(value: str, cell: str) -> None:
    assert to_csv(value) == cell
    assert from_csv(cell) == value


@pytest.mark.parametrize("value", [None, -0.5, 3])
def test_a_number_stays(value: Any) -> None:
    assert to_csv(value) is value


def test_invisible_characters_are_escapes() -> None:
    assert to_csv("\t=1\ud800") == r"\t=1\ud800"
