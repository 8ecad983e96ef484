from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Hashable, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError

if TYPE_CHECKING:
    import numpy as np

SET_NAMES = ("train", "validation", "test")

SUM_TOLERANCE = 0.001
"""The most by which the ratios of a split may miss 1, because they are typed with few digits."""


@dataclass(frozen=True)
class Division:
    """The division of the data into training, validation and test set, and the set that is scored.

    `ratios` are the shares of `set_names` in a random split, empty for the official sizes. With `is_official`, the sets
    are those of the config. If `validation` is scored, a random split has no test set, and the pool does not hold the
    official one. Programs may do without a validation set, if they are scored on the test set.
    """

    is_official: bool = False
    ratios: Tuple[float, ...] = ()
    scored: str = "test"
    has_validation: bool = True

    @property
    def set_names(self) -> Tuple[str, ...]:
        names = SET_NAMES[: SET_NAMES.index(self.scored) + 1]
        return tuple(name for name in names if name != "validation" or self.has_validation)

    def used_paths(self, paths: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the official data paths, by set, that a run reads."""
        return {set_name: path for set_name, path in paths.items() if self.is_official or set_name in self.set_names}


OFFICIAL_RATIOS_DIVISION = Division()
"""Random splits with sets of the official sizes, scored on the test set."""


def check_ratios(ratios: Sequence[float], set_names: Sequence[str]) -> None:
    """Refuse shares that do not say how large each of these parts is."""
    total = sum(ratios)
    if len(ratios) != len(set_names) or not all(ratio > 0 for ratio in ratios) or not abs(total - 1) <= SUM_TOLERANCE:
        ratios_text = ",".join(f"{ratio:g}" for ratio in ratios)
        names = f"{len(set_names)} positive numbers ({', '.join(set_names)})"
        raise DataError(f"split ratios must be {names} that sum to 1 but {ratios_text} sum to {total:g}.")


def target_sizes(
    sizes: Mapping[str, int], *, ratios: Sequence[float] = (), set_names: Sequence[str] = SET_NAMES
) -> Dict[str, int]:
    """Return the sizes that every random split aims at: those of the official parts, or `ratios` of all instances.

    If a task has no official validation part, it becomes as large as the test part, at the cost of the training part,
    and vice versa. Raise a `DataError` if both are missing, or the training part would vanish.
    """
    total = sum(sizes.values())
    if ratios:
        check_ratios(ratios, set_names)
        targets = {set_name: round(ratio * total) for set_name, ratio in zip(set_names, ratios, strict=True)}
        targets["train"] += total - sum(targets.values())  # the rest is for training
        if empty_sets := [set_name for set_name, size in targets.items() if size < 1]:
            raise DataError(f"the {empty_sets[0]} set of {total} instances would be empty. Increase its ratio.")
        return targets
    substitute_sets = (("validation", "test"), ("test", "validation"))
    held_out_sets = [(name, substitute) for name, substitute in substitute_sets if name in set_names]
    held_out_sizes = {name: sizes.get(name) or sizes.get(substitute, 0) for name, substitute in held_out_sets}
    train_size = total - sum(held_out_sizes.values())
    if not all(held_out_sizes.values()) or train_size < 1:
        raise DataError(
            "random splits need the sizes of an official training set and of a smaller validation or test set, but the "
            f"sizes are {dict(sizes)}. Add a set, or use --split-ratios."
        )
    return {"train": train_size, **held_out_sizes}


def split_pool(groups: Sequence[Hashable], targets: Mapping[str, int], *, seed: int) -> Dict[str, "np.ndarray"]:
    """Draw a random split in which every group stays whole. Return the indices of each set, ascending. Raise a
    `DataError` if a set would stay empty.

    Groups are shuffled. The test set takes groups until its number of instances is as near to its target as it can be,
    then the validation set, and the rest is for training. With groups of one instance each (a plain random split) the
    targets are met exactly; otherwise a set can be off by less than one group.

    The same 32-bit seed gives the same split on every platform and numpy version: the legacy generator is used because
    numpy has frozen its stream.
    """
    import numpy as np  # the settings import this module, and --help needs no NumPy

    code_by_group: Dict[Hashable, int] = {}
    group_codes = np.array([code_by_group.setdefault(group, len(code_by_group)) for group in groups], dtype=int)
    names = [name for name in SET_NAMES if name in targets or name == "train"]
    if len(code_by_group) < len(names):
        num_groups = len(code_by_group)
        raise DataError(f"a split into {', '.join(names)} needs {len(names)} groups, but there are only {num_groups}.")
    order = np.random.RandomState(seed).permutation(len(code_by_group))
    set_by_group = np.full(len(code_by_group), "train", dtype=object)
    for name in reversed(names[1:]):
        sizes = np.cumsum(np.bincount(group_codes)[order])[
            : len(order) - names.index(name)
        ]  # a group for each other set
        num_taken = int(np.argmin(np.abs(sizes - targets[name]))) + 1
        set_by_group[order[:num_taken]] = name
        order = order[num_taken:]
    set_by_item = set_by_group[group_codes]
    return {name: np.flatnonzero(set_by_item == name) for name in names}
