"""Points: how values are typed, named and handed to a template."""

from typing import Any, Dict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as some

from fiesta_allennlp.candidates.candidate_values import MAX_NAME_BYTES, Point
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.names import FORBIDDEN_CHARACTERS

JSON = some.recursive(
    some.one_of(some.none(), some.booleans(), some.integers(), some.floats(allow_nan=False, allow_infinity=False))
    | some.text(some.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8),
    lambda inner: some.lists(inner, max_size=2) | some.dictionaries(some.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def test_a_text_reaches_the_template_as_it_is_and_all_else_as_json() -> None:
    values = {"lr": 0.01, "layers": 2.0, "name": "adam", "on": True, "none": None, "dims": [1, 2], "number": "1"}
    texts = ("0.01", "2", "adam", "true", "null", "[1,2]", "1")
    point = Point({**values, "model.dropout": 0.5, ".vocabulary": {"type": "empty"}})
    assert point.variables == dict(zip(values, texts, strict=True))
    assert point.overrides == {"model.dropout": 0.5, "vocabulary": {"type": "empty"}}


@pytest.mark.parametrize(
    ("values", "typed", "name"),
    [
        ({"lr": 0.01, "layers": 2}, "lr=0.01,layers=2", "lr=0.01,layers=2"),
        ({"text": "a b", "dims": [1, 2]}, "text=a b,dims=[1,2]", "text=a b,dims=[1,2]"),
        ({}, "", ""),
        ({"n": np.int64(3), "x": np.float32(0.5)}, "n=3,x=0.5", "n=3,x=0.5"),
        # A file cannot be called so: cleaned, with the first 8 digits of the SHA-256 of {"bert": "google:bert"}.
        ({"bert": "google:bert"}, "bert=google:bert", "bert=google_bert~5a091c6b"),
        ({"bert": "google/bert"}, "bert=google/bert", "bert=google/bert"),
        ({"n": "1"}, 'n="1"', "n=1~fbf03fa3"),
    ],
)
def test_a_point_is_typed_and_named_by_its_values(values: Dict[str, Any], typed: str, name: str) -> None:
    point = Point(values)
    assert (point.text, point.name) == (typed, name)


def test_a_long_name_keeps_what_tells_points_apart() -> None:
    path = "model.text_field_embedder.token_embedders.tokens.embedding_dim"
    names = [Point({path: size, "text": "é" * 50}).name for size in (50, 100)]
    assert names[0].startswith("embedding_dim=50,text=éé") and names[1].startswith("embedding_dim=100,text=éé")
    assert names[0] != names[1]
    assert all(len(name.encode()) <= MAX_NAME_BYTES for name in names)


@limits(max_examples=60)
@given(some.dictionaries(some.sampled_from(["lr", "a.b", ".top", "a name"]), JSON, max_size=3))
def test_any_json_is_named(values: Dict[str, Any]) -> None:
    point = Point(values)
    assert set(point.name).isdisjoint(FORBIDDEN_CHARACTERS) and len(point.name.encode()) <= MAX_NAME_BYTES


def test_bad_points_are_refused() -> None:
    for key in ("", " lr", "l,r", ".model.lr"):
        with pytest.raises(ConfigError, match="lr|l,r|the name"):
            Point({key: 1})
    for value in (float("nan"), float("inf"), np.ones(2), {1: 2}, "\ud800", "a\0b", object()):
        with pytest.raises(ConfigError, match="'lr' must be JSON but is"):
            Point({"lr": value})
