"""The pool of a selection, which is all official sets together; its division into sets for each run; and the result of
building a candidate once. The pool must be equal for all candidates, because every split is drawn from it."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, DefaultDict, Dict, Hashable, Iterable, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import ConfigError, DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import shorten

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
    substitutes = {"validation": "test", "test": "validation"}
    held_out_sizes = {name: sizes.get(name) or sizes.get(substitutes[name], 0) for name in set_names[1:]}
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
        most = len(order) - names.index(name)  # which leaves a group for each other set
        sizes = np.cumsum(np.bincount(group_codes)[order])[:most]
        num_taken = int(np.argmin(np.abs(sizes - targets[name]))) + 1
        set_by_group[order[:num_taken]] = name
        order = order[num_taken:]
    set_by_item = set_by_group[group_codes]
    return {name: np.flatnonzero(set_by_item == name) for name in names}


# The pool.

ID_PATTERN = re.compile(r"|(?i:.*(id|idx|index|key))")


def is_id(name: str) -> bool:
    """Return whether a field only numbers the records, by its name. The index of a pandas table has none."""
    return ID_PATTERN.fullmatch(name) is not None


@dataclass(frozen=True)
class Pool:
    """The properties that all candidates must share, so that their scores can be compared.

    `official` and `targets` are numbers of instances by set, as published and as drawn. `data` is a digest of the data
    files, which is added afterwards; `fingerprint` is one of the groups and labels, in order, that a reader makes of
    them, empty for a program. `contents_read` is what was read from each file. `notes` are about copies.
    """

    official: Mapping[str, int]
    targets: Mapping[str, int]
    num_groups: int
    group_by: Optional[str]
    data: str = ""
    fingerprint: str = ""
    contents_read: Sequence[str] = field(default=(), compare=False)
    notes: Sequence[str] = field(default=(), compare=False)


@dataclass(frozen=True)
class Preparation:
    """The result of building a candidate once. For a program, only the pool is known. `vectors` are pairs of a file of
    word vectors that the config names and the filtered file to read instead."""

    pool: Pool
    num_parameters: Optional[int] = None
    metrics: Optional[Sequence[str]] = None
    vectors: Sequence[Tuple[str, str]] = ()


def content_text(path: str, num_items: int, unit: str, fields: Iterable[str], first_line: str = "") -> str:
    """Describe what was read from a data file: how many items, and the names of their fields, or else the first
    line."""
    ending = f"; the first: {shorten(escape_invisible(first_line))!r}" if first_line else ""
    names = join_some(list(fields))
    return f"{Path(path).name}: {num_items:,} {unit}{f' under {names}' if names else ending}"


def build_pool(
    groups: Sequence[Hashable],
    sizes: Mapping[str, int],
    *,
    contents: Sequence[Hashable],
    group_by: Optional[str],
    division: Division,
    **fields: Any,
) -> Pool:
    """Return the pool of items with these groups, in sets of these sizes. `contents` are equal for copies. Refuse items
    that cannot be split. Shapes: `(num_items,)`."""
    targets = dict(sizes)
    if not division.is_official:
        targets = target_sizes(sizes, ratios=division.ratios, set_names=division.set_names)
        (group, size), *_ = Counter(groups).most_common(1)
        smallest = min((name for name in targets if name != "train"), key=lambda name: targets[name])
        if group_by is not None and size > targets[smallest]:  # splits could not keep the official sizes
            raise DataError(
                f"the group {group_by} = {group!r} has {size} instances, but the {smallest} set holds only "
                f"{targets[smallest]}. Use a different --group-by, or none."
            )
        split_pool(groups, targets, seed=0)
    note = _note_on_copies(groups, contents, sizes, division)
    return Pool(sizes, targets, num_groups=len(set(groups)), group_by=group_by, notes=(note,) if note else (), **fields)


def _note_on_copies(
    groups: Sequence[Hashable], contents: Sequence[Hashable], sizes: Mapping[str, int], division: Division
) -> str:
    """Count the items that have a copy that a run may see on the other side of its split; empty if there are none."""
    sides = [index < sizes["train"] for index in range(len(groups))] if division.is_official else groups
    sides_by_content: DefaultDict[Hashable, Set[Hashable]] = defaultdict(set)
    for side, content in zip(sides, contents, strict=True):
        sides_by_content[content].add(side)
    are_copies = [len(sides_by_content[content]) > 1 for content in contents]
    where, remedy = "that a split may put into another set", ", or keep them together with --group-by KEY"
    if division.is_official:
        where, remedy, are_copies = "in the training set", "", are_copies[sizes["train"] :]
    if not any(are_copies):
        return ""
    return f"{sum(are_copies)} of {len(contents)} records have an exact copy {where}. Remove the copies{remedy}."


def first_group_key(keys: Iterable[Optional[str]]) -> Optional[str]:
    """Return the first group key that is given; None if that is `none`, or no key is given."""
    key = next((key for key in keys if key is not None), None)
    return None if key == "none" else key


COMPARED_FIELDS = {
    "official": "number of instances",
    "targets": "division into sets",
    "group_by": "group key",
    "num_groups": "number of groups",
    "data": "content of the data files (fingerprint)",
    "fingerprint": "groups or labels of the instances (fingerprint)",
}
"""The fields of pools that must be equal, in words."""

_SAME_DATA_ADVICE = "Both must read the same files and turn them into the same instances."
ADVICE_BY_FIELD = {
    "group_by": "Set --group-by for all candidates.",
    "fingerprint": f"{_SAME_DATA_ADVICE} A reader that draws at random needs a generator with a fixed seed.",
}
"""What to do if a field differs, unless the data do."""


def check_same_pool(pools: Mapping[str, Pool]) -> None:
    """Refuse candidates that would be scored on different data. All are compared with one, a config if there is one,
    because a program has no fingerprint."""
    (first_name, first), *further = sorted(pools.items(), key=lambda item: not item[1].fingerprint)
    for name, pool in further:
        problem = f"candidates '{first_name}' and '{name}' do not read the same data"
        if bool(first.official) != bool(pool.official):
            raise ConfigError(f"{problem}: one is a program that splits its data itself. Add 'data' to its config.")
        for key, description in COMPARED_FIELDS.items():
            values = [getattr(first, key), getattr(pool, key)]
            if values[0] == values[1] or (key == "fingerprint" and "" in values):
                continue
            if isinstance(values[0], Mapping):
                values = [", ".join(f"{set_name} {size}" for set_name, size in sizes.items()) for sizes in values]
            difference = f"the {description} is {values[0]} in one and {values[1]} in the other"
            raise ConfigError(f"{problem}: {difference}. {ADVICE_BY_FIELD.get(key, _SAME_DATA_ADVICE)}")
