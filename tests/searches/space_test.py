"""Search spaces: the files that people have, what is drawn from them, and the inputs of a searcher."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.searches.space import Choices, NumberRange, Space, pool_from_points, read_space


def read(tmp_path: Path, content: Any) -> Space:
    path = tmp_path / "space.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_space(path)


LR = NumberRange(0.001, 0.1, is_log=True)
LAYERS = NumberRange(1, 4, is_int=True)
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
    ],
)
def test_both_forms_give_one_space(tmp_path: Path, content: Any) -> None:
    assert dict(read(tmp_path, content).dimensions) == {"lr": LR, "layers": LAYERS, "kind": KIND}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("{", "JSON"),
        ({"trainer.pytorch_seed": [1, 2]}, "'trainer.pytorch_seed' is a seed"),
        ({"lr": {"low": 1, "hihg": 2}}, "'lr': .*hihg"),
        ({"lr": {"low": 2, "high": 1}}, "'lr': .* 'low' and 'high'"),
        ({"lr": {"low": 0, "high": 1, "log": True}}, "'lr': .*above 0 with 'log'"),
        ({"n": {"low": 0.5, "high": 2, "type": "int"}}, "whole numbers"),
        ({"n": [1, 1]}, "'n' .* different"),
        ([{"type": "float"}], "entry 1 "),
        ({"a,b": [1, 2]}, "'='"),
    ],
)
def test_mistakes_are_named_with_the_file(tmp_path: Path, content: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=f"space.json.*{named}"):
        read(tmp_path, content)
    with pytest.raises(ConfigError, match="none.json.*cannot be read"):
        read_space(tmp_path / "none.json")


def test_a_small_space_is_whole_and_in_random_order() -> None:
    space = Space({"layers": LAYERS, "kind": KIND})
    pool, other = (space.draw_pool(8, np.random.default_rng(seed)) for seed in (0, 1))
    assert space.num_points == len(pool.points) == 8
    assert {point.text for point in pool.points} == {f"layers={n},kind={k}" for n in range(1, 5) for k in KIND.values}
    assert [point.text for point in pool.points] != [point.text for point in other.points]


def test_a_large_space_is_drawn_from_without_repetition() -> None:
    space = Space({"lr": LR, "layers": LAYERS, "kind": KIND})
    pool = space.draw_pool(300, np.random.default_rng(0))
    assert space.num_points is None
    assert len({point.identity for point in pool.points}) == 300
    rates = np.array([point.values["lr"] for point in pool.points])
    assert rates.min() >= 0.001 and rates.max() <= 0.1
    assert abs(np.mean(rates < 0.01) - 0.5) < 4 * 0.5 / np.sqrt(300)  # half of them below the middle of the logarithm
    assert all(float(f"{rate:.3g}") == rate for rate in rates)
    small = Space({"rate": NumberRange(0.1, 0.12, is_log=True)}).draw_pool(100, np.random.default_rng(0))
    assert sorted(point.values["rate"] for point in small.points) == pytest.approx(np.arange(0.1, 0.1205, 0.001))


def test_given_points_keep_their_order_and_are_scaled() -> None:
    """Lists of numbers by the logarithm over a decade; a text, or a name that a point lacks, is a category."""
    pool = pool_from_points([{"lr": 0.001, "n": 1}, {"lr": 0.1, "n": 3}, {"lr": 0.01, "n": 2}])
    np.testing.assert_allclose(pool.inputs, [[0, 0], [1, 1], [0.5, 0.5]], atol=1e-12)
    lacking = pool_from_points([{"a": 1}, {"a": 1, "b": 5}])
    assert np.linalg.norm(lacking.inputs[0] - lacking.inputs[1]) == pytest.approx(1)
    assert pool_from_points([{}]).inputs.shape == (1, 0)
    with pytest.raises(ConfigError, match="'numpy_seed' is a seed"):
        pool_from_points([{"numpy_seed": 1}, {"numpy_seed": 2}])


def test_a_step_makes_a_range_finite_and_dimensions_are_scaled_by_their_kind() -> None:
    steps = NumberRange(0, 0.6, step=0.25)
    assert NumberRange(0, 0.6).values is None and steps.values == [0.0, 0.25, 0.5]
    assert {steps.draw(np.random.default_rng(seed)) for seed in range(40)} == {0.0, 0.25, 0.5}
    assert LR.scale_to_unit([0.001, 0.01, 0.1])[:, 0] == pytest.approx([0, 0.5, 1])
    assert LAYERS.scale_to_unit([1, 2, 4])[:, 0] == pytest.approx([0, 1 / 3, 1])
    assert Choices([0.1, 0.01, 0.001]).scale_to_unit([0.1, 0.01])[:, 0] == pytest.approx([1, 0.5])
    assert Choices([1, 3, 2]).scale_to_unit([1, 3, 2])[:, 0] == pytest.approx([0, 1, 0.5])
    texts = Choices(["adam", "sgd"]).scale_to_unit(["adam", "sgd", "adam"])
    assert np.linalg.norm(texts[0] - texts[1]) == pytest.approx(1) and (texts[0] == texts[2]).all()
