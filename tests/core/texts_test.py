from pathlib import Path
from typing import Dict, Optional

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.texts import (
    check_names,
    check_no_similar_names,
    cost_text,
    duration_text,
    number_text,
    probability_text,
    split_name,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.99999, "> 0.999"), (1.0, "1.000"), (1e-9, "< 0.001")],
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
    costs = {None: "-", 0.0: "0.00", 0.000812: "0.00081", 12.5: "12.50"}
    assert {cost: cost_text(cost) for cost in costs} == costs


def named(*texts: str) -> Dict[str, str]:
    places = [(name or "", place) for name, place in map(split_name, texts)]
    check_names(places, noun="system", min_count=1, remedy="Give one.")
    return dict(places)


def test_a_name_of_any_script_with_blanks_inside_is_allowed() -> None:
    assert named("模型 ünïcode ☃=x", "a.b-c=d=x") == {"模型 ünïcode ☃": "x", "a.b-c": "d=x"}


def test_a_name_with_a_slash_has_one_directory_of_its_own(tmp_path: Path) -> None:
    assert named("org/model=x", "org%2Fmodel=y") == {"org/model": "x", "org%2Fmodel": "y"}
    directory = RunDirectory(tmp_path)
    paths = [directory.evaluation(f"{name}-0") for name in ("org/model", "org%2Fmodel", "org/../model")]
    assert len(set(paths)) == 3 and {path.parent for path in paths} == {tmp_path / "evaluations"}
    assert directory.failure_log("org/model-0", 1).parent == tmp_path / "failures"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'=x': .*empty"),
        ("a:b", "'a:b=x'"),
        ("a\nb", r"system 'a\\nb=x'"),
        ("a\u202eb", r"'a\\u202eb=x'"),
        ("a\udcff", r"'a\\udcff=x'"),
        (".", "system '.=x'"),
        ("a\u00a0", "system 'a\u00a0=x'"),
        ("n" * 111, "longer than 110 bytes"),
    ],
)
def test_a_name_that_breaks_paths_or_output_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        named(f"{name}=x")


@pytest.mark.parametrize(("first", "second"), [("Aa", "aA"), ("\u00e9", "e\u0301"), ("\u00c9", "e\u0301"), ("ß", "SS")])
def test_names_that_some_systems_take_for_one_are_refused(first: str, second: str) -> None:
    with pytest.raises(ConfigError, match=f"systems '{first}' and '{second}' differ only in case"):
        named(f"{first}=x", f"{second}=y")
    check_no_similar_names(["a", "á", "a1"], noun="system")
