"""Checks of readers: they read the same instances every time, and both readers of a config the same ones."""

import inspect
import itertools
from collections import defaultdict
from typing import Any, DefaultDict, Dict, Hashable, List, Mapping, Optional, Sequence, Set, Tuple

from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import LabelField, ListField, MultiLabelField, SequenceLabelField, SpanField, TextField

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.splits import PARTS

Identity = Tuple[Hashable, List[Any]]
"""The group of an instance, or its position without groups, and its labels."""

REMEDY = (
    "Use --group-by with an id that both readers take from the files, not a sequence number; or use --splits official, "
    "where each set has its own reader."
)


def check_match(training: Sequence[Identity], evaluated: Sequence[Identity], group_by: Optional[str]) -> None:
    """Refuse two readers whose instances a random split cannot match with each other.

    With a group key, the validation reader must yield every group that the training reader yields, with a label in
    common. The training reader may skip groups, and skip or add instances of a group. Without a key, both readers must
    yield the same number of instances with the same labels.
    """
    if training == evaluated:
        return
    if not training:
        raise ConfigError("'dataset_reader' reads no instances, so no run could learn.")
    if group_by is None and len(training) != len(evaluated):
        raise ConfigError(
            f"'dataset_reader' reads {len(training)} instances and 'validation_dataset_reader' reads {len(evaluated)}, "
            f"so a random split cannot match them. {REMEDY}"
        )
    key = "instance" if group_by is None else group_by
    evaluated_labels = _labels_by_group(evaluated)
    for group, labels in _labels_by_group(training).items():
        their_labels = evaluated_labels.get(group)
        if their_labels is None:
            raise ConfigError(
                f"'dataset_reader' reads instances with {key} = {group!r}, but 'validation_dataset_reader' does not. "
                f"Make it read all of them. {REMEDY}"
            )
        if labels != their_labels if group_by is None else labels and their_labels and labels.isdisjoint(their_labels):
            raise ConfigError(
                f"{key} = {group!r} has the label {_text(labels)} in 'dataset_reader' but {_text(their_labels)} in "
                f"'validation_dataset_reader', so a random split cannot match them. {REMEDY}"
            )


def _labels_by_group(identities: Sequence[Identity]) -> Dict[Hashable, Set[Tuple[Any, ...]]]:
    by_group: DefaultDict[Hashable, Set[Tuple[Any, ...]]] = defaultdict(set)
    for group, labels in identities:
        by_group[group].update({tuple(labels)} if labels else ())
    return by_group


def _text(labels: Set[Tuple[Any, ...]]) -> str:
    return " or ".join(sorted(", ".join(map(repr, values)) for values in labels)) or "none"


def check_same_fields(by_part: Mapping[str, Sequence[Instance]], paths: Mapping[str, Any], *, key: str) -> None:
    """Refuse instances with different fields: splits mix them, and no batch can hold both."""
    numbered = [(part, number, item) for part, instances in by_part.items() for number, item in enumerate(instances, 1)]
    for entry in numbered[1:]:
        for has, lacks in ((numbered[0], entry), (entry, numbered[0])):
            missing = sorted(set(has[2].fields) - set(lacks[2].fields))
            if missing:
                raise DataError(
                    f"'{key}': instance {lacks[1]} of {paths[lacks[0]]} has no field '{missing[0]}', but instance "
                    f"{has[1]} of {paths[has[0]]} does. Every record needs the keys that the reader looks for."
                )


LABELS = (LabelField, SequenceLabelField, MultiLabelField, SpanField)
MOST_READ_AGAIN = 200  # instances
MOST_READ_AT_ONCE = 10_000  # by a reader that is no generator and always reads all


def check_reads_alike(
    reader: DatasetReader, paths: Mapping[str, Any], by_part: Dict[str, List[Instance]], *, key: str = "dataset_reader"
) -> None:
    """Read the first instances again with a fresh reader, and refuse other labels and spans, or other texts without
    them. A reader that only varies its texts, as for augmentation, passes. `reader` must be new, so that its own random
    generator starts as before."""
    if not inspect.isgeneratorfunction(reader._read) and sum(map(len, by_part.values())) > MOST_READ_AT_ONCE:
        return
    num_left = MOST_READ_AGAIN
    for part in (part for part in PARTS if part in by_part):
        instances = by_part[part][:num_left]
        most = num_left if reader.max_instances is None else min(num_left, reader.max_instances)
        reread = list(itertools.islice(reader._read(paths[part]), most))
        for number, (first, second) in enumerate(itertools.zip_longest(instances, reread), start=1):
            if first is None or second is None or _labels_or_texts(first) != _labels_or_texts(second):
                raise ConfigError(
                    f"'{key}' ({type(reader).__name__}) is not deterministic: instance {number} of {paths[part]} "
                    "differs when read again, so every run would be tested on different data. Fix the reader, or use "
                    "a generator with a fixed seed, such as random.Random(0)."
                )
        num_left -= len(instances)


def contents_of(instances: Sequence[Instance]) -> List[Hashable]:
    """Return hashes of all texts and labels, equal for copies; the position of an instance without text. Metadata, such
    as an id, do not count. Shape: `(num_instances,)`."""
    contents: List[Hashable] = []
    for number, instance in enumerate(instances):
        leaves = [(name, leaf) for name in sorted(instance.fields) for leaf in _leaves(instance.fields[name])]
        texts = [(name, [t.text for t in leaf.tokens]) for name, leaf in leaves if isinstance(leaf, TextField)]
        labels = [(name, _label(leaf)) for name, leaf in leaves if isinstance(leaf, LABELS)]
        contents.append(hash(repr((texts, labels))) if any(words for _, words in texts) else (number,))
    return contents


def _labels_or_texts(instance: Instance) -> List[Any]:
    leaves = [leaf for name in sorted(instance.fields) for leaf in _leaves(instance.fields[name])]
    labels = [_label(leaf) for leaf in leaves if isinstance(leaf, LABELS)]
    return labels or [[token.text for token in leaf.tokens] for leaf in leaves if isinstance(leaf, TextField)]


def _leaves(field: Field) -> List[Field]:
    return [leaf for child in field for leaf in _leaves(child)] if isinstance(field, ListField) else [field]


def _label(field: Any) -> Any:
    if isinstance(field, LabelField):
        return field.label
    return (field.span_start, field.span_end) if isinstance(field, SpanField) else list(field.labels)
