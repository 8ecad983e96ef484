"""The result of checking a candidate once. Its pool, all official sets together, must be equal for all candidates,
because every split is drawn from it."""

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, DefaultDict, Dict, FrozenSet, Hashable, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.candidates.splits import Division, split_pool, target_sizes
from fiesta_allennlp.core.errors import ConfigError, DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.registry import build_record


@dataclass(frozen=True)
class FileContent:
    """What was read from a data file: how many items, what one is, and the names of its fields, or else the first
    line."""

    path: str
    num_items: int
    unit: str
    fields: Tuple[str, ...] = ()
    first_line: str = ""

    @property
    def text(self) -> str:
        ending = f" under {join_some(self.fields)}" if self.fields else ""
        if self.first_line and not self.fields:
            ending = f"; the first: {shorten(escape_invisible(self.first_line))!r}"
        return f"{Path(self.path).name}: {self.num_items:,} {self.unit}{ending}"


@dataclass(frozen=True)
class Pool:
    """The properties that all candidates must share, so that their scores can be compared, and the words.

    `official` and `targets` are numbers of instances by part, as published and as drawn. `data` is a digest of the data
    files, `fingerprint` one of the instances' groups and labels in order. `counts` is how often each word occurs, by
    vocabulary namespace. `pairing` are the digests of `pairing_digests`. With `is_of_program`, the pool is what the
    files hold, not what a reader makes of them. `contents_read` is what was read from each file. `notes` are about
    copies.
    """

    official: Mapping[str, int]
    targets: Mapping[str, int]
    num_groups: int
    group_by: Optional[str]
    data: str
    fingerprint: str
    pairing: Sequence[str] = ()
    is_of_program: bool = False
    contents_read: Sequence[FileContent] = field(default=(), compare=False)
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

    def with_vectors_in(self, vectors: Path) -> "Preparation":
        """Return the same with the filtered files in this directory."""
        return replace(self, vectors=tuple((uri, str(vectors / Path(file).name)) for uri, file in self.vectors))


def preparation_to_facts(preparation: Preparation) -> Dict[str, Any]:
    """Return a preparation as plain data for the store, without words, notes and what was read."""
    facts = asdict(preparation)
    for name in ("words", "counts", "contents_read", "notes"):
        del facts["pool"][name]
    return facts


def preparation_from_facts(facts: Mapping[str, Any]) -> Preparation:
    """Return the preparation that `preparation_to_facts` made plain, without the words."""
    return build_record(Preparation, facts)


def vectors_exist(preparation: Preparation) -> bool:
    """Return whether the filtered vectors exist; they do not if the run directory was moved or cleaned."""
    return all(Path(filtered).is_file() for _, filtered in preparation.vectors)


def _sides_of(groups: Sequence[Hashable], sizes: Mapping[str, int], division: Division) -> Sequence[Hashable]:
    """Return what a run never has on both sides: the group of each item, or whether it is in the training set."""
    return [index < sizes["train"] for index in range(len(groups))] if division.is_official else groups


def note_on_copies(
    groups: Sequence[Hashable],
    contents: Sequence[Hashable],
    sizes: Mapping[str, int],
    division: Division,
    *,
    remedy: str,
) -> str:
    """Count the items that have a copy that a run may see on the other side of its split; empty if there are none.
    `contents` are equal for copies. Shapes: `(num_items,)`."""
    item_sides = _sides_of(groups, sizes, division)
    sides_by_content: DefaultDict[Hashable, Set[Hashable]] = defaultdict(set)
    for side, content in zip(item_sides, contents, strict=True):
        sides_by_content[content].add(side)
    indices_of_copies = [index for index, content in enumerate(contents) if len(sides_by_content[content]) > 1]
    if not indices_of_copies:
        return ""
    where, ending = "that a split may put into another set", f", or {remedy}." if remedy else "."
    if division.is_official:
        where, ending = "in the training set", "."
        indices_of_copies = [index for index in indices_of_copies if not item_sides[index]]
    return f"{len(indices_of_copies)} of {len(contents)} records have an exact copy {where}. Remove the copies{ending}"


def first_group_key(keys: Iterable[Optional[str]]) -> Optional[str]:
    """Return the first group key that is given; None if that is `none`, or no key is given."""
    key = next((key for key in keys if key is not None), None)
    return None if key == "none" else key


def build_pool(
    groups: Sequence[Hashable],
    sizes: Mapping[str, int],
    *,
    contents: Sequence[Hashable],
    group_by: Optional[str],
    division: Division,
    regroup_advice: str = "keep them together by --group-by with a metadata key that they share",
    **fields: Any,
) -> Pool:
    """Return the pool of items with these groups and contents, in parts of these sizes. Refuse one that cannot
    be split. `regroup_advice` is the remedy for copies in several groups."""
    targets = dict(sizes)
    if not division.is_official:
        targets = target_sizes(sizes, ratios=division.ratios, set_names=division.set_names)
        _check_groups(groups, targets, group_by)
        split_pool(groups, targets, seed=0)
    copies_note = note_on_copies(groups, contents, sizes, division, remedy=regroup_advice)
    all_notes = (copies_note,) if copies_note else ()
    return Pool(sizes, targets, num_groups=len(set(groups)), group_by=group_by, notes=all_notes, **fields)


def _check_groups(groups: Sequence[Hashable], targets: Mapping[str, int], group_by: Optional[str]) -> None:
    """Refuse a group that fills a whole part: splits could not keep the official sizes."""
    (group, size), *_ = Counter(groups).most_common(1)
    smallest = min((name for name in targets if name != "train"), key=lambda name: targets[name])
    if group_by is not None and size > targets[smallest]:
        raise DataError(
            f"the group {group_by} = {group!r} has {size} instances, but the {smallest} set holds only "
            f"{targets[smallest]}. Use a different --group-by, or none."
        )


def check_same_pool(pools: Mapping[str, Pool]) -> None:
    """Refuse candidates that would be scored on different data."""
    (first_name, first), *further = pools.items()
    for name, pool in further:
        difference = _first_difference(first, pool)
        if difference is not None:
            raise ConfigError(f"candidates '{first_name}' and '{name}' do not read the same data: {difference}")


COMPARED_FIELDS = {
    "official": "number of instances",
    "group_by": "group key",
    "num_groups": "number of groups",
    "data": "content of the data files (fingerprint)",
    "fingerprint": "groups or labels of the instances (fingerprint)",
}


def _first_difference(first: Pool, second: Pool) -> Optional[str]:
    """Return the first difference of two pools, with the remedy; None if they are equal.

    Only the config's reader knows what it makes of an item. An AllenNLP config and a program therefore have the same
    items if groups and labels are equal at equal positions.
    """
    if bool(first.official) != bool(second.official):
        return "one of them is a program that splits its data itself. Add 'data' to its config."
    if set(first.targets) != set(second.targets):
        return f"the sets are {_text(list(first.targets))} in one and {_text(list(second.targets))} in the other."
    for name, description in COMPARED_FIELDS.items():
        first_value, second_value = getattr(first, name), getattr(second, name)
        if name == "fingerprint" and first.is_of_program != second.is_of_program:
            return _UNPAIRED_MESSAGE if set(first.pairing).isdisjoint(second.pairing) else None
        if first_value != second_value:
            remedy = "Set --group-by for all candidates." if name == "group_by" else _SAME_DATA_ADVICE
            return f"the {description} is {_text(first_value)} in one and {_text(second_value)} in the other. {remedy}"
    return None


def _text(value: Any) -> str:
    listed = [f"{set_name} {size}" for set_name, size in value.items()] if isinstance(value, Mapping) else value
    return ", ".join(listed) if isinstance(listed, list) else str(value)


_SAME_DATA_ADVICE = "Both must read the same files and turn them into the same instances."
_UNPAIRED_MESSAGE = (
    "groups or labels of the config's instances and the program's records differ. Make the reader yield one instance "
    "for each record, in the order of the file, with a label that is a field of the record."
)


def encode_values(values: Iterable[Hashable]) -> List[int]:
    """Return each value as the number of distinct values before it: equal for values that are only renamed."""
    codes: Dict[Hashable, int] = {}
    return [codes.setdefault(value, len(codes)) for value in values]


def pairing_digests(groups: Sequence[Hashable], fields: Mapping[str, Sequence[Hashable]]) -> Tuple[str, ...]:
    """Return a digest of the groups in order, and one with each field that tells items apart, sorted. Shapes:
    `(num_items,)`.

    A field says something about the order if its values repeat but are not all equal. Two candidates with a digest in
    common have items with equal groups and, apart from names, equal labels at equal positions.
    """
    group_codes = encode_values(groups)
    informative_codes = [codes for codes in map(encode_values, fields.values()) if 1 < len(set(codes)) < len(codes)]
    return tuple(sorted({_digest(group_codes, codes) for codes in ([], *informative_codes)}))


def label_digests(groups: Sequence[Hashable], fields: Mapping[str, Sequence[Hashable]]) -> Tuple[str, ...]:
    """Return the digests that include a field; if no field tells items apart, the digest of the groups."""
    alone = pairing_digests(groups, {})
    return tuple(digest for digest in pairing_digests(groups, fields) if digest not in alone) or alone


def _digest(groups: List[int], labels: List[int]) -> str:
    return hashlib.sha256(json.dumps([groups, labels]).encode("ascii")).hexdigest()
