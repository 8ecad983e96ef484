"""Checks of readers: they read the same instances every time, and both readers of a config the same ones."""

import inspect
import itertools
from collections import defaultdict
from typing import Any, DefaultDict, Dict, Hashable, List, Mapping, Optional, Sequence, Set, Tuple

from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import LabelField, ListField, MultiLabelField, SequenceLabelField, SpanField, TextField

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.splits import PARTS

Identity = Tuple[Hashable, List[Any]]
"""The group of an instance, which is its position where there are no groups, and its labels."""

OTHER_WAY = "or use --splits official, where each set is read by its own reader alone"


def check_match(training: Sequence[Identity], evaluated: Sequence[Identity], group_by: Optional[str]) -> None:
    """Refuse two readers whose instances a random split could not match with each other.

    With a group key, instances of equal groups belong together: the validation reader has to give every group that the
    training reader gives, with a label in common. The training reader may leave out groups, and instances of a group,
    or add some. Without a key, instances at equal positions belong together, so both readers have to give the same
    number of instances with the same labels.
    """
    if training == evaluated:
        return
    if not training:
        raise ConfigError("'dataset_reader' reads no instances from the data files, so no run could learn.")
    if group_by is None:
        raise ConfigError(_by_position(training, evaluated))
    of_evaluated = _labels_by_group(evaluated)
    for group, labels in _labels_by_group(training).items():
        known = of_evaluated.get(group)
        if known is None:
            raise ConfigError(
                f"'dataset_reader' reads instances with {group_by} = {group!r} from the data files, but "
                f"'validation_dataset_reader' reads none. Random splits are drawn over the {group_by} that the "
                "validation reader gives: make it read all of them, use a --group-by KEY that both readers take from "
                f"the files, {OTHER_WAY}."
            )
        if labels and known and labels.isdisjoint(known):
            raise ConfigError(
                f"{group_by} = {group!r} has the label {_named(labels)} from 'dataset_reader' but {_named(known)} "
                "from 'validation_dataset_reader', so it does not name the same item for both. Use a --group-by "
                f"KEY that both readers take from the files, not a sequence number, {OTHER_WAY}."
            )


def _by_position(training: Sequence[Identity], evaluated: Sequence[Identity]) -> str:
    sizes = len(evaluated), len(training)
    if sizes[0] != sizes[1]:
        what = f"reads {sizes[0]} instances from the data files and 'dataset_reader' reads {sizes[1]}"
    else:
        pairs = enumerate(zip(evaluated, training, strict=True), start=1)
        number, (other, one) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
        what = (
            f"gives instance {number} of the {sizes[0]} in the data files the label {_named({tuple(other[1])})} and "
            f"'dataset_reader' gives it {_named({tuple(one[1])})}"
        )
    return (
        f"'validation_dataset_reader' {what}, so a random split cannot tell which instances belong together. Give "
        f"--group-by KEY, a metadata key that both readers take from the files; {OTHER_WAY}."
    )


def _labels_by_group(read: Sequence[Identity]) -> Dict[Hashable, Set[Tuple[Any, ...]]]:
    found: DefaultDict[Hashable, Set[Tuple[Any, ...]]] = defaultdict(set)
    for group, labels in read:
        found[group].update({tuple(labels)} if labels else ())
    return found


def _named(labels: Set[Tuple[Any, ...]]) -> str:
    return " or ".join(sorted(", ".join(map(repr, each)) or "none" for each in labels))


def check_same_fields(parts: Mapping[str, Sequence[Instance]], paths: Mapping[str, Any], *, key: str) -> None:
    """Refuse instances with different fields: splits mix them, and no batch can hold both."""
    numbered = [(part, number, one) for part, given in parts.items() for number, one in enumerate(given, 1)]
    for other in numbered[1:]:
        for has, lacks in ((numbered[0], other), (other, numbered[0])):
            missing = sorted(set(has[2].fields) - set(lacks[2].fields))
            if missing:
                raise DataError(
                    f"'{key}': {paths[lacks[0]]}: instance {lacks[1]} has no field '{missing[0]}', but instance "
                    f"{has[1]} of {paths[has[0]]} has one. Give every record the keys that the reader looks for."
                )


MOST_READ_AGAIN = 200
"""Instances, from the first on."""

MOST_READ_AT_ONCE = 10_000
"""A reader that gives no instance before it has read all is not asked again for more than these."""


def check_reads_alike(
    reader: DatasetReader, paths: Mapping[str, Any], by_part: Dict[str, List[Instance]], *, key: str = "dataset_reader"
) -> None:
    """Read the first instances again with a fresh reader, and refuse other labels and spans, or other texts where there
    are none. A reader that only varies its texts, as for augmentation, passes. `reader` must be fresh, so that its own
    generator is where it was before the first reading."""
    if not inspect.isgeneratorfunction(reader._read) and sum(map(len, by_part.values())) > MOST_READ_AT_ONCE:
        return
    left = MOST_READ_AGAIN
    for part in (part for part in PARTS if part in by_part):
        before = by_part[part][:left]
        most = left if reader.max_instances is None else min(left, reader.max_instances)
        again = list(itertools.islice(reader._read(paths[part]), most))
        for number, (one, other) in enumerate(itertools.zip_longest(before, again), start=1):
            if one is None or other is None or _told_apart(one) != _told_apart(other):
                raise ConfigError(
                    f"'{key}' ({type(reader).__name__}) reads different instances from {paths[part]} each time: "
                    f"instance {number} differs when read again. Splits are drawn by position, so every run would be "
                    "tested on different data. Make the reader deterministic, or give it its own generator with a "
                    "fixed seed, such as random.Random(0)."
                )
        left -= len(before)


def _told_apart(instance: Instance) -> List[Any]:
    fields = [instance.fields[name] for name in sorted(instance.fields)]
    labels = [value for field in fields for value in _labels(field)]
    return labels or [value for field in fields for value in _texts(field)]


def _labels(field: Field) -> List[Any]:
    if isinstance(field, LabelField):
        return [field.label]
    if isinstance(field, (SequenceLabelField, MultiLabelField)):
        return [list(field.labels)]
    if isinstance(field, SpanField):
        return [(field.span_start, field.span_end)]
    return [value for child in field for value in _labels(child)] if isinstance(field, ListField) else []


def _texts(field: Field) -> List[Any]:
    if isinstance(field, TextField):
        return [[token.text for token in field.tokens]]
    return [value for child in field for value in _texts(child)] if isinstance(field, ListField) else []
