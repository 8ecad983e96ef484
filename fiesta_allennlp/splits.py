from dataclasses import dataclass
from typing import Dict, Hashable, Mapping, Sequence

import numpy as np

from fiesta_allennlp.errors import DataError

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """Indices into the pool, each in ascending order. Every instance is in exactly one part."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def part(self, name: str) -> np.ndarray:
        """The indices of the part called `train`, `validation` or `test`. Shape: `(size_of_part,)`."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]

    @property
    def sizes(self) -> Dict[str, int]:
        return {name: len(self.part(name)) for name in PARTS}


def group_targets(sizes: Mapping[str, int]) -> Dict[str, int]:
    """The sizes that every random split aims at, from the sizes of the official parts.

    Where a task has no official validation part it becomes as large as the test part, at the cost of the
    training part, and the other way round.

    # Raises

    `DataError` : where neither is there, or the training part would vanish.
    """
    total = sum(sizes.values())
    validation = sizes.get("validation") or sizes.get("test") or 0
    test = sizes.get("test") or sizes.get("validation") or 0
    train = total - validation - test
    if not validation or train < 1:
        raise DataError(
            "a random split needs an official train part and a validation or test part that is smaller than "
            f"it, to know the ratios, but the parts have {dict(sizes)} instances."
        )
    return {"train": train, "validation": validation, "test": test}


def split_pool(groups: Sequence[Hashable], targets: Mapping[str, int], *, seed: int) -> Split:
    """Draw a random split in which every group stays whole.

    Groups are shuffled; the test part takes groups until its number of instances is as near to its target as it
    can be, then the validation part, and the rest is for training. With groups of one instance each (a plain
    random split) the targets are met exactly; else a part can be off by less than one group.

    # Parameters

    groups : the group of each instance of the pool, in the pool's order. Shape: `(num_instances,)`.
    targets : the wanted number of instances of `validation` and `test`.
    seed : 32 bits. The same seed gives the same split on every platform and numpy version (the legacy generator
        is used because numpy has frozen its stream).

    # Raises

    `DataError` : where a part would stay empty.
    """
    codes: Dict[Hashable, int] = {}
    group_of = np.array([codes.setdefault(group, len(codes)) for group in groups], dtype=int)
    if len(codes) < len(PARTS):
        raise DataError(
            f"a split into {', '.join(PARTS)} needs at least {len(PARTS)} groups but the pool of "
            f"{len(group_of)} instances has {len(codes)}."
        )
    order = np.random.RandomState(seed).permutation(len(codes))
    group_sizes = np.bincount(group_of, minlength=len(codes))[order]
    num_test = _cut(group_sizes, targets["test"], leave=2)
    num_validation = _cut(group_sizes[num_test:], targets["validation"], leave=1)
    part_of_group = np.zeros(len(codes), dtype=int)
    part_of_group[order[num_test : num_test + num_validation]] = 1
    part_of_group[order[:num_test]] = 2
    part_of = part_of_group[group_of]
    return Split(*(np.flatnonzero(part_of == index) for index in range(len(PARTS))))


def _cut(group_sizes: np.ndarray, target: int, *, leave: int) -> int:
    """How many leading groups come nearest to `target` instances: at least 1, and `leave` groups are left over."""
    reached = np.cumsum(group_sizes)[: len(group_sizes) - leave]
    return int(np.argmin(np.abs(reached - target))) + 1
