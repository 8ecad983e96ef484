from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fiesta_allennlp.candidates.splits import SET_NAMES, Division, check_ratios, split_pool, target_sizes
from fiesta_allennlp.core.errors import DataError


@pytest.mark.parametrize(
    ("sizes", "ratios", "targets"),
    [
        ((3602, 0, 1120), (), (2482, 1120, 1120)),  # a missing set is as large as the other
        ((80, 20, 0), (), (60, 20, 20)),
        ((70, 10, 20), (), (70, 10, 20)),
        ((101, 0, 0), (0.64, 0.16, 0.2), (65, 16, 20)),  # the rest is for training
        ((50, 30, 20), (0.5, 0.25, 0.25), (50, 25, 25)),
    ],
)
def test_targets(sizes: Any, ratios: Any, targets: Any) -> None:
    official = {part: size for part, size in zip(SET_NAMES, sizes, strict=True) if size}
    assert target_sizes(official, ratios=ratios) == dict(zip(SET_NAMES, targets, strict=True))


@pytest.mark.parametrize(
    ("division", "other"), [(Division(scored="validation"), "validation"), (Division(has_validation=False), "test")]
)
def test_without_a_third_set_the_sizes_are_those_of_two_parts(division: Division, other: str) -> None:
    assert target_sizes({"train": 80, other: 20}, set_names=division.set_names) == {"train": 80, other: 20}
    targets = target_sizes({"train": 10}, ratios=(0.7, 0.3), set_names=division.set_names)
    assert targets == {"train": 7, other: 3}
    assert {k: len(v) for k, v in split_pool(range(10), targets, seed=3).items()} == targets
    with pytest.raises(DataError, match="needs 2 groups"):
        split_pool("aaa", {"train": 2, other: 1}, seed=3)


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ((0.5, 0.5), "3 positive numbers"),
        ((0.5, 0.5, 0.0), "positive"),
        ((0.6, 0.2, 0.1), "sum to 0.9"),
        ((float("nan"), 0.5, 0.5), "nan"),
    ],
)
def test_ratios_that_are_no_shares_are_refused(ratios: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_ratios(ratios, SET_NAMES)
    check_ratios((0.333, 0.333, 0.333), SET_NAMES)
    with pytest.raises(DataError, match="validation set of 9"):
        target_sizes({"train": 9}, ratios=(0.9, 0.05, 0.05))


@pytest.mark.parametrize("sizes", [{"train": 10}, {"train": 5, "test": 5}, {"train": 10, "test": 0}])
def test_targets_that_cannot_be_known_are_an_error(sizes: dict) -> None:
    with pytest.raises(DataError, match="ratios"):
        target_sizes(sizes)


def test_a_split_is_what_it_was_when_it_was_first_published() -> None:
    """By hand, from `RandomState(0).permutation(4)`, a stream that numpy has promised not to change."""
    split = split_pool("aabbcd", {"validation": 1, "test": 2}, seed=0)
    assert np.random.RandomState(0).permutation(4).tolist() == [2, 3, 1, 0]
    # Groups in drawn order: c, d, b, a of sizes 1, 1, 2, 2; the test part takes c and d, validation b.
    assert {name: indices.tolist() for name, indices in split.items()} == {
        "train": [0, 1],
        "validation": [2, 3],
        "test": [4, 5],
    }


def test_a_pool_with_too_few_groups_is_an_error() -> None:
    with pytest.raises(DataError, match="needs 3 groups"):
        split_pool("aabb", {"validation": 1, "test": 1}, seed=0)


@given(
    groups=st.lists(st.integers(0, 30), min_size=3, max_size=120).filter(lambda g: len(set(g)) >= 3),
    validation=st.floats(0.05, 0.4),
    test=st.floats(0.05, 0.4),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_instance_is_in_one_part_and_every_group_is_whole(
    groups: list, validation: float, test: float, seed: int
) -> None:
    targets = {"validation": round(validation * len(groups)), "test": round(test * len(groups))}
    split = split_pool(groups, targets, seed=seed)
    assert sorted(np.concatenate(list(split.values())).tolist()) == list(range(len(groups)))
    parts = [{groups[i] for i in part} for part in split.values()]
    assert len(parts) == 3 and all(parts)
    assert sum(map(len, parts)) == len(set(groups))


def test_parts_are_off_by_less_than_the_largest_group() -> None:
    groups = [index // 3 for index in range(3000)]
    for seed in range(10):
        split = split_pool(groups, {"validation": 500, "test": 1000}, seed=seed)
        assert abs(len(split["test"]) - 1000) < 3
        assert abs(len(split["validation"]) - 500) < 3
