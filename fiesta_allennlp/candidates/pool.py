"""The result of checking a candidate once. Its pool, all official sets together, must be equal for all candidates,
because every split is drawn from it."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, DefaultDict, Dict, FrozenSet, Hashable, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.candidates.splits import Division, split_pool, target_sizes
from fiesta_allennlp.core.errors import ConfigError, DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.registry import build_record

ID_PATTERN = re.compile(r"|(?i:.*(id|idx|index|key))")


def is_id(name: str) -> bool:
    """Return whether a field only numbers the records, by its name. The index of a pandas table has none."""
    return ID_PATTERN.fullmatch(name) is not None


@dataclass(frozen=True)
class Pool:
    """The properties that all candidates must share, so that their scores can be compared, and the words.

    `official` and `targets` are numbers of instances by set, as published and as drawn. `data` is a digest of the data
    files, `fingerprint` one of the instances' groups and labels in order. `counts` is how often each word occurs, by
    vocabulary namespace. `pairing` are digests of groups and labels, which a program and a config have in common. With
    `is_of_program`, the pool is what the files hold, not what a reader makes of them. `contents_read` is what was read
    from each file. `notes` are about copies.
    """

    official: Mapping[str, int]
    targets: Mapping[str, int]
    num_groups: int
    group_by: Optional[str]
    data: str
    fingerprint: str
    pairing: Sequence[str] = ()
    is_of_program: bool = False
    contents_read: Sequence[str] = field(default=(), compare=False)
    notes: Sequence[str] = field(default=(), compare=False)
    words: FrozenSet[str] = frozenset()
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(self.official.values())


@dataclass(frozen=True)
class Preparation:
    """The result of building a candidate once. For a program, only the pool is known. `vectors` are pairs of a file of
    word vectors that the config names and the filtered file to read instead; `coverage` is, for each of these files,
    the share of the tokens in the data that have a vector."""

    pool: Pool
    num_parameters: Optional[int] = None
    metrics: Optional[Sequence[str]] = None
    vectors: Sequence[Tuple[str, str]] = ()
    coverage: Sequence[float] = ()

    @property
    def has_vectors(self) -> bool:
        """Whether the filtered vectors exist; they do not if the run directory was moved or cleaned."""
        return all(Path(filtered).is_file() for _, filtered in self.vectors)

    def with_vectors_in(self, vectors: Path) -> "Preparation":
        """Return the same with the filtered files in this directory."""
        return replace(self, vectors=tuple((uri, str(vectors / Path(file).name)) for uri, file in self.vectors))

    @property
    def facts(self) -> Dict[str, Any]:
        """Plain data for the store, without words, notes and what was read."""
        facts = asdict(self)
        for name in ("words", "counts", "contents_read", "notes"):
            del facts["pool"][name]
        return facts


def preparation_from_facts(facts: Mapping[str, Any]) -> Preparation:
    """Return the preparation that has these facts, without the words."""
    return build_record(Preparation, facts)


def describe_content(path: str, num_items: int, unit: str, fields: Iterable[str], first_line: str = "") -> str:
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
        _check_groups(groups, targets, group_by)
        split_pool(groups, targets, seed=0)
    notes = tuple(filter(None, [_note_on_copies(groups, contents, sizes, division)]))
    return Pool(sizes, targets, num_groups=len(set(groups)), group_by=group_by, notes=notes, **fields)


def _check_groups(groups: Sequence[Hashable], targets: Mapping[str, int], group_by: Optional[str]) -> None:
    """Refuse a group that fills a whole set: splits could not keep the official sizes."""
    (group, size), *_ = Counter(groups).most_common(1)
    smallest = min((name for name in targets if name != "train"), key=lambda name: targets[name])
    if group_by is not None and size > targets[smallest]:
        raise DataError(
            f"the group {group_by} = {group!r} has {size} instances, but the {smallest} set holds only "
            f"{targets[smallest]}. Use a different --group-by, or none."
        )


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


_SAME_DATA_ADVICE = "Both must read the same files and turn them into the same instances."
COMPARED_FIELDS = {
    "official": ("number of instances", _SAME_DATA_ADVICE),
    "targets": ("division into sets", _SAME_DATA_ADVICE),
    "group_by": ("group key", "Set --group-by for all candidates."),
    "num_groups": ("number of groups", _SAME_DATA_ADVICE),
    "data": ("content of the data files (fingerprint)", _SAME_DATA_ADVICE),
    "fingerprint": ("groups or labels of the instances (fingerprint)", _SAME_DATA_ADVICE),
}
"""The fields of pools that must be equal, in words, and what to do if they are not."""


def check_same_pool(pools: Mapping[str, Pool]) -> None:
    """Refuse candidates that would be scored on different data."""
    (first_name, first), *further = pools.items()
    for name, pool in further:
        difference = _first_difference(first, pool)
        if difference is not None:
            raise ConfigError(f"candidates '{first_name}' and '{name}' do not read the same data: {difference}")


def _first_difference(first: Pool, second: Pool) -> Optional[str]:
    """Return the first difference of two pools, with the remedy; None if they are equal.

    Only the config's reader knows what it makes of an item. An AllenNLP config and a program therefore have the same
    items if groups and labels are equal at equal positions.
    """
    if bool(first.official) != bool(second.official):
        return "one of them is a program that splits its data itself. Add 'data' to its config."
    is_mixed = first.is_of_program != second.is_of_program
    for name, (description, remedy) in COMPARED_FIELDS.items():
        if name == "fingerprint" and is_mixed:
            continue
        values = [getattr(pool, name) for pool in (first, second)]
        if values[0] != values[1]:
            if isinstance(values[0], Mapping):
                values = [", ".join(f"{set_name} {size}" for set_name, size in sizes.items()) for sizes in values]
            return f"the {description} is {values[0]} in one and {values[1]} in the other. {remedy}"
    if is_mixed and set(first.pairing).isdisjoint(second.pairing):
        return (
            "groups or labels of the config's instances and the program's records differ. Make the reader yield one "
            "instance for each record, in the order of the file, with a label that is a field of the record."
        )
    return None


def encode_values(values: Iterable[Hashable]) -> List[int]:
    """Return each value as the number of distinct values before it: equal for values that are only renamed."""
    codes: Dict[Hashable, int] = {}
    return [codes.setdefault(value, len(codes)) for value in values]


def pairing_digests(groups: Sequence[Hashable], fields: Mapping[str, Sequence[Hashable]]) -> Tuple[str, ...]:
    """Return digests of the groups in order: one with each field that tells items apart, sorted; without such a field,
    of the groups alone. Shapes: `(num_items,)`.

    A field says something about the order if its values repeat but are not all equal. Two candidates with a digest in
    common have items with equal groups and, apart from names, equal labels at equal positions.
    """
    columns = [codes for codes in map(encode_values, fields.values()) if 1 < len(set(codes)) < len(codes)]
    digested = ([encode_values(groups), codes] for codes in columns or [[]])
    return tuple(sorted({hashlib.sha256(json.dumps(pair).encode("ascii")).hexdigest() for pair in digested}))
