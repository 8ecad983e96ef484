from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.files import evaluating_once, from_csv, read_jsonnet, to_csv


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1+1)", "'@SUM(1+1)"),
        ("-loss", "'-loss"),
        ("+a", "'+a"),
        ("'-a", "''-a"),
        ("'+4", "''+4"),
        ("+4", "+4"),
        ("-1e-3", "-1e-3"),
        ("a=b", "a=b"),
        ("'a'", "'a'"),
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


def test_a_template_is_evaluated_once_for_the_same_variables(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonnet"
    path.write_text("{ a: 1, b: std.extVar('b') }")

    def read(b: str) -> Any:
        return read_jsonnet(path, variables={"b": b}, where="t")

    with evaluating_once():
        first = read("x")
        first["a"] = 9
        path.write_text("{ a: 2, b: std.extVar('b') }")
        assert (read("x"), read("y")) == ({"a": 1, "b": "x"}, {"a": 2, "b": "y"})
    assert read("x") == {"a": 2, "b": "x"}
