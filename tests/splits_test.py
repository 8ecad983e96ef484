from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.splits import PARTS, Division, check_ratios, group_targets, split_pool


def test_targets_make_a_missing_validation_part_as_large_as_the_test_part() -> None:
    assert group_targets({"train": 3602, "test": 1120}) == {"train": 2482, "validation": 1120, "test": 1120}


def test_targets_make_a_missing_test_part_as_large_as_the_validation_part() -> None:
    assert group_targets({"train": 80, "validation": 20}) == {"train": 60, "validation": 20, "test": 20}


def test_targets_of_three_official_parts_are_their_sizes() -> None:
    sizes = {"train": 70, "validation": 10, "test": 20}
    assert group_targets(sizes) == sizes


def test_targets_at_ratios_are_shares_of_all_instances_and_the_rest_is_for_training() -> None:
    assert group_targets({"train": 101}, ratios=(0.64, 0.16, 0.2)) == {"train": 65, "validation": 16, "test": 20}
    sizes = {"train": 50, "validation": 30, "test": 20}
    assert group_targets(sizes, ratios=(0.5, 0.25, 0.25)) == {"train": 50, "validation": 25, "test": 25}


def test_without_a_test_set_the_sizes_are_those_of_two_parts() -> None:
    two = Division(scored="validation").parts
    assert group_targets({"train": 80, "validation": 20}, parts=two) == {"train": 80, "validation": 20}
    assert group_targets({"train": 10}, ratios=(0.7, 0.3), parts=two) == {"train": 7, "validation": 3}
    split = split_pool(range(10), {"train": 7, "validation": 3}, seed=3)
    assert split.sizes == {"train": 7, "validation": 3, "test": 0}
    with pytest.raises(DataError, match="a split into train, validation needs at least 2 groups"):
        split_pool("aaa", {"train": 2, "validation": 1}, seed=3)


def test_without_a_validation_set_the_training_set_keeps_its_size() -> None:
    two = Division(has_validation=False).parts
    assert group_targets({"train": 80, "test": 20}, parts=two) == {"train": 80, "test": 20}
    assert group_targets({"train": 10}, ratios=(0.7, 0.3), parts=two) == {"train": 7, "test": 3}
    split = split_pool(range(10), {"train": 7, "test": 3}, seed=3)
    assert split.sizes == {"train": 7, "validation": 0, "test": 3}


@pytest.mark.parametrize(
    ("ratios", "message"),
    [
        ((0.5, 0.5), "must be 3 numbers above 0, for train, validation, test, .* got 0.5,0.5, with the sum 1"),
        ((0.5, 0.5, 0.0), "above 0"),
        ((0.6, 0.2, 0.1), "with the sum 0.9"),
        ((float("nan"), 0.5, 0.5), "nan"),
    ],
)
def test_ratios_that_are_no_shares_are_refused(ratios: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_ratios(ratios, PARTS)
    check_ratios((0.333, 0.333, 0.333), PARTS)


def test_a_share_of_no_instance_is_refused() -> None:
    with pytest.raises(DataError, match="at the ratios 0.9,0.05,0.05 the validation set of 9 instances would be empty"):
        group_targets({"train": 9}, ratios=(0.9, 0.05, 0.05))


@pytest.mark.parametrize("sizes", [{"train": 10}, {"train": 5, "test": 5}, {"train": 10, "test": 0}])
def test_targets_that_cannot_be_known_are_an_error(sizes: dict) -> None:
    with pytest.raises(DataError, match="ratios"):
        group_targets(sizes)


def test_without_groups_the_sizes_are_exact() -> None:
    split = split_pool(range(100), {"validation": 13, "test": 29}, seed=3)
    assert split.sizes == {"train": 58, "validation": 13, "test": 29}


def test_the_same_seed_gives_the_same_split_and_another_seed_another_one() -> None:
    first, again, other = (split_pool(range(50), {"validation": 10, "test": 10}, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.test, again.test) and np.array_equal(first.train, again.train)
    assert not np.array_equal(first.test, other.test)


def test_a_split_is_what_it_was_when_it_was_first_published() -> None:
    """By hand, from `RandomState(0).permutation(4)`, a stream that numpy has promised not to change."""
    split = split_pool("aabbcd", {"validation": 1, "test": 2}, seed=0)
    assert np.random.RandomState(0).permutation(4).tolist() == [2, 3, 1, 0]
    # Groups in drawn order: c, d, b, a of sizes 1, 1, 2, 2; the test part takes c and d, validation b.
    assert split.test.tolist() == [4, 5]
    assert split.validation.tolist() == [2, 3]
    assert split.train.tolist() == [0, 1]


def test_a_pool_with_too_few_groups_is_an_error() -> None:
    with pytest.raises(DataError, match="at least 3 groups but the pool of 4 instances has 2"):
        split_pool("aabb", {"validation": 1, "test": 1}, seed=0)


def test_a_group_larger_than_its_part_leaves_no_part_empty() -> None:
    for seed in range(20):
        split = split_pool("aaaaaaaaabc", {"validation": 1, "test": 1}, seed=seed)
        assert min(split.sizes.values()) >= 1


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
    together = np.concatenate([split.train, split.validation, split.test])
    assert sorted(together.tolist()) == list(range(len(groups)))
    parts = [{groups[i] for i in part} for part in (split.train, split.validation, split.test)]
    assert all(parts)
    assert len(parts[0]) + len(parts[1]) + len(parts[2]) == len(set(groups))


def test_parts_are_off_by_less_than_the_largest_group() -> None:
    groups = [index // 3 for index in range(3000)]
    for seed in range(10):
        sizes = split_pool(groups, {"validation": 500, "test": 1000}, seed=seed).sizes
        assert abs(sizes["test"] - 1000) < 3
        assert abs(sizes["validation"] - 500) < 3


def test_every_instance_is_as_likely_to_be_tested() -> None:
    counts = Counter(
        i for seed in range(400) for i in split_pool(range(20), {"validation": 4, "test": 5}, seed=seed).test
    )
    # 400 draws of probability 1/4: the standard deviation is 8.7, so all of 20 counts are within 45 of 100.
    assert set(counts) == set(range(20))
    assert max(abs(count - 100) for count in counts.values()) < 45
