import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Optional

import pytest

from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.selection.summary import write_csv
from fiesta_allennlp.selection.texts import cost_text, duration_text, number_text, probability_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.5, "0.500"), (0.99999, "> 0.999"), (1.0, "1.000"), (1e-9, "< 0.001"), (0.0, "0.000")],
)
def test_a_probability_is_never_rounded_to_certainty(value: Optional[float], text: str) -> None:
    assert probability_text(value) == text
    numbers = number_text(0.12345), number_text(-1.23456e99), number_text(2.0, 1, sign="+")
    assert numbers == ("0.1235", "-1.235e+99", "+2.0")
    assert [duration_text(seconds) for seconds in (59.4, 61, 90061)] == ["59.4 s", "1 min 1 s", "25 h 1 min"]


def test_csv_has_the_columns_and_every_metric(tmp_path: Path) -> None:
    seeds = {"split_seed": 1, "random_seed": 2, "numpy_seed": 3, "pytorch_seed": 4}
    origin = json.dumps(asdict(Origin("node1", gpu="0", job="7", python="3.11", versions={"a": "1", "b": "2"})))
    rows = [
        {
            "candidate": "a",
            "replicate": 0,
            "status": "finished",
            "score": 0.1 + 0.2,
            "metrics": '{"x": 1}',
            **seeds,
            "origin": origin,
        },
        {"candidate": "b", "replicate": 0, "status": "failed", "error": 'said "no", twice', **seeds},
    ]
    write_csv(rows, tmp_path / "e.csv")
    with (tmp_path / "e.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert float(read[0]["score"]) == 0.1 + 0.2
    assert (read[0]["metric:x"], read[1]["metric:x"], read[1]["score"]) == ("1", "", "")
    assert read[1]["error"] == 'said "no", twice'
    assert list(read[0])[:4] == ["candidate", "replicate", "status", "score"]
    where = ("host", "gpu", "job", "python", "versions")
    assert [read[0][name] for name in where] == ["node1", "0", "7", "3.11", "a 1, b 2"] and read[1]["host"] == ""


def test_csv_has_no_formula_and_no_half_of_a_character(tmp_path: Path) -> None:
    row = {"candidate": "@SUM(1)", "status": "finished", "score": -0.5, "metrics": r'{"\ud800": 1, "=x": -2}'}
    write_csv([row], tmp_path / "e.csv")
    head, line = (tmp_path / "e.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(r",error,metric:=x,metric:\ud800")
    assert line == "'@SUM(1),,finished,-0.5,,,,,,,,,,,,,,,,-2,1"


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
