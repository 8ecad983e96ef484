from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Hashable, Mapping, Optional, Sequence, Tuple

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
    official one; `keeps_test` gives it a test set that no run looks at. Programs may do without a validation set, if
    they are scored on the test set.
    """

    is_official: bool = False
    ratios: Tuple[float, ...] = ()
    scored: str = "test"
    keeps_test: bool = False
    has_validation: bool = True

    @property
    def set_names(self) -> Tuple[str, ...]:
        candidate_names = SET_NAMES if self.keeps_test else SET_NAMES[: SET_NAMES.index(self.scored) + 1]
        return tuple(set_name for set_name in candidate_names if set_name != "validation" or self.has_validation)

    def used_paths(self, paths: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the official data paths, by part, that a run reads."""
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


@dataclass(frozen=True)
class Split:
    """Indices into the pool, each in ascending order. Every instance is in exactly one part."""

    train: "np.ndarray"
    validation: "np.ndarray"
    test: "np.ndarray"

    def indices_of(self, name: str) -> "np.ndarray":
        """Return the indices of the part called `train`, `validation` or `test`. Shape: `(size_of_part,)`."""
        return {"train": self.train, "validation": self.validation, "test": self.test}[name]

    @property
    def sizes(self) -> Dict[str, int]:
        return {name: len(self.indices_of(name)) for name in SET_NAMES}


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


def split_pool(groups: Sequence[Hashable], targets: Mapping[str, int], *, seed: int) -> Split:
    """Draw a random split in which every group stays whole. Raise a `DataError` if a part would stay empty.

    Groups are shuffled. The test part takes groups until its number of instances is as near to its target as it can be,
    then the validation part, and the rest is for training. With groups of one instance each (a plain random split) the
    targets are met exactly; otherwise a part can be off by less than one group. A part without a target stays empty.

    The same 32-bit seed gives the same split on every platform and numpy version: the legacy generator is used because
    numpy has frozen its stream.
    """
    import numpy as np  # the settings import this module, and --help needs no NumPy

    code_by_group: Dict[Hashable, int] = {}
    group_codes = np.array([code_by_group.setdefault(group, len(code_by_group)) for group in groups], dtype=int)
    set_names = [set_name for set_name in SET_NAMES if set_name in targets or set_name == "train"]
    if len(code_by_group) < len(set_names):
        names, num_groups = ", ".join(set_names), len(code_by_group)
        raise DataError(f"a split into {names} needs {len(set_names)} groups, but there are only {num_groups}.")
    order = np.random.RandomState(seed).permutation(len(code_by_group))
    group_sizes = np.bincount(group_codes, minlength=len(code_by_group))[order]
    num_test = _num_leading_groups(group_sizes, targets.get("test"), min_groups_left=len(set_names) - 1)
    num_validation = _num_leading_groups(group_sizes[num_test:], targets.get("validation"), min_groups_left=1)
    set_index_by_group = np.zeros(len(code_by_group), dtype=int)
    set_index_by_group[order[num_test : num_test + num_validation]] = 1
    set_index_by_group[order[:num_test]] = 2
    set_index_by_instance = set_index_by_group[group_codes]
    return Split(*(np.flatnonzero(set_index_by_instance == index) for index in range(len(SET_NAMES))))


def _num_leading_groups(group_sizes: "np.ndarray", target: Optional[int], *, min_groups_left: int) -> int:
    """Return the number of leading groups nearest to `target` instances: at least 1, leaving `min_groups_left`
    groups; 0 without a target."""
    import numpy as np

    if target is None:
        return 0

    cumulative_sizes = np.cumsum(group_sizes)[: len(group_sizes) - min_groups_left]
    return int(np.argmin(np.abs(cumulative_sizes - target))) + 1
