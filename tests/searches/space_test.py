"""Search spaces: the files that people have, what is drawn from them, and the inputs of a searcher."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.space import Choices, Numbers, Space, given_pool
from fiesta_allennlp.searches.space_file import read_space


def read(tmp_path: Path, content: Any) -> Space:
    path = tmp_path / "space.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_space(path)


LR = Numbers(0.001, 0.1, log=True)
LAYERS = Numbers(1, 4, whole=True)
KIND = Choices(["gru", "lstm"])


@pytest.mark.parametrize(
    "content",
    [
        {"lr": {"low": 0.001, "high": 0.1, "log": True}, "layers": {"low": 1, "high": 4}, "kind": ["gru", "lstm"]},
        [
            {"type": "float", "attributes": {"name": "lr", "low": 0.001, "high": 0.1, "log": True}},
            {"type": "int", "attributes": {"name": "layers", "low": 1, "high": 4}},
            {"type": "categorical", "attributes": {"name": "kind", "choices": ["gru", "lstm"]}},
        ],
        {
            "lr": {"sampling strategy": "loguniform", "bounds": [0.001, 0.1]},
            "layers": {"sampling strategy": "integer", "bounds": [1, 4]},
            "kind": {"sampling strategy": "choice", "choices": ["gru", "lstm"]},
        },
    ],
)
def test_three_forms_give_one_space(tmp_path: Path, content: Any) -> None:
    assert dict(read(tmp_path, content).dimensions) == {"lr": LR, "layers": LAYERS, "kind": KIND}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not valid JSON"),
        ("3", "must be an object of names"),
        ({"random_seed": [1, 2]}, "'random_seed' is a seed. A seed is not a hyperparameter"),
        ({"trainer.pytorch_seed": [1, 2]}, "is a seed"),
        ({"lr": {"low": 1, "hihg": 2}}, "'lr': 'hihg' is an unknown key. Did you mean 'high'?"),
        ({"lr": {"low": 2, "high": 1}}, "'lr': a range needs the numbers 'low' and 'high', low first"),
        ({"lr": {"low": 0, "high": 1, "log": True}}, "'lr': 'log' needs 'low' above 0 but it is 0"),
        ({"lr": {"low": 0, "high": 1, "step": 0}}, "'lr': 'step' must be a number above 0"),
        ({"n": {"low": 0.5, "high": 2, "type": "int"}}, "of an int must be whole numbers"),
        ({"n": [1, 1]}, "'n': must be a list of different values"),
        ({"n": 1}, "the space contains a single point"),
        ({"n": {"sampling strategy": "normal"}}, "must be one of uniform, loguniform, integer, choice"),
        ({"n": {"sampling strategy": "uniform", "bounds": [1]}}, "'bounds' must be two numbers"),
        ([{"type": "float"}], "entry 1: must have 'type' int, float or categorical"),
        ({"a,b": [1, 2]}, "must be a string without '='"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, content)
    assert str(tmp_path / "space.json") in str(error.value)
    assert said in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="space.json: cannot be read: No such file or directory"):
        read_space(tmp_path / "space.json")


def test_a_small_space_is_whole_and_in_random_order() -> None:
    space = Space({"layers": LAYERS, "kind": KIND})
    pool, other = (space.pool(8, np.random.default_rng(seed)) for seed in (0, 1))
    assert space.num_points == len(pool.points) == 8
    assert {point.typed for point in pool.points} == {f"layers={n},kind={k}" for n in range(1, 5) for k in KIND.values}
    assert [point.typed for point in pool.points] != [point.typed for point in other.points]


def test_a_large_space_is_drawn_from_without_repetition() -> None:
    space = Space({"lr": LR, "layers": LAYERS, "kind": KIND})
    pool = space.pool(300, np.random.default_rng(0))
    assert space.num_points is None
    assert len({point.identity for point in pool.points}) == 300
    rates = np.array([point.values["lr"] for point in pool.points])
    assert rates.min() >= 0.001 and rates.max() <= 0.1
    assert abs(np.mean(rates < 0.01) - 0.5) < 4 * 0.5 / np.sqrt(300)  # half of them below the middle of the logarithm
    assert all(float(f"{rate:.3g}") == rate for rate in rates)


def test_a_pool_never_has_more_points_than_the_space() -> None:
    space = Space({"rate": Numbers(0.1, 0.12, log=True)})
    assert sorted(point.values["rate"] for point in space.pool(100, np.random.default_rng(0)).points) == pytest.approx(
        np.arange(0.1, 0.1205, 0.001)
    )


def test_inputs_are_scaled_by_hand() -> None:
    pool = Space({"lr": LR, "layers": LAYERS, "kind": KIND})._pool(
        [
            type(point)({"lr": lr, "layers": layers, "kind": kind})
            for point in Space({"kind": KIND}).pool(2, np.random.default_rng(0)).points[:1]
            for lr, layers, kind in ((0.001, 1, "gru"), (0.01, 2, "lstm"), (0.1, 4, "gru"))
        ]
    )
    root = 1 / np.sqrt(2)
    np.testing.assert_allclose(pool.inputs, [[0, 0, root, 0], [0.5, 1 / 3, 0, root], [1, 1, root, 0]], atol=1e-12)


def test_given_points_keep_their_order_and_lists_of_numbers_are_scaled_by_logarithm_over_a_decade() -> None:
    pool = given_pool([{"lr": 0.001, "n": 1}, {"lr": 0.1, "n": 3}, {"lr": 0.01, "n": 2}])
    np.testing.assert_allclose(pool.inputs, [[0, 0], [1, 1], [0.5, 0.5]], atol=1e-12)
    with pytest.raises(ConfigError, match="needs at least 2 points but got 1"):
        given_pool([{"lr": 1}])
    with pytest.raises(ConfigError, match="'numpy_seed' is a seed"):
        given_pool([{"numpy_seed": 1}, {"numpy_seed": 2}])


def test_a_name_that_a_point_lacks_is_a_category() -> None:
    pool = given_pool([{"a": 1}, {"a": 1, "b": 5}])
    assert np.linalg.norm(pool.inputs[0] - pool.inputs[1]) == pytest.approx(1)


@pytest.mark.parametrize(("step", "values"), [(None, None), (0.25, [0.0, 0.25, 0.5])])
def test_a_step_makes_a_range_finite(step: Any, values: Any) -> None:
    numbers = Numbers(0, 0.6, step=step)
    assert numbers.values == values
    if values:
        assert {numbers.draw(np.random.default_rng(seed)) for seed in range(40)} == set(values)


def test_choices_are_scaled_by_their_kind() -> None:
    assert Choices([0.1, 0.01, 0.001]).scaled([0.1, 0.01])[:, 0] == pytest.approx([1, 0.5])
    assert Choices([1, 3, 2]).scaled([1, 3, 2])[:, 0] == pytest.approx([0, 1, 0.5])
    texts = Choices(["adam", "sgd"]).scaled(["adam", "sgd", "adam"])
    assert np.linalg.norm(texts[0] - texts[1]) == pytest.approx(1) and (texts[0] == texts[2]).all()
