"""Whether a reader reads the same instances every time. Splits are drawn by position, so they are shared only then."""

import inspect
import itertools
from typing import Any, Dict, List, Mapping

from allennlp.data import DatasetReader, Field, Instance
from allennlp.data.fields import LabelField, ListField, MultiLabelField, SequenceLabelField, SpanField, TextField

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.splits import PARTS

MOST_READ_AGAIN = 200
"""Instances, from the first on."""

MOST_READ_AT_ONCE = 10_000
"""A reader that gives no instance before it has read all is not asked again for more than these."""


def check_reads_alike(
    reader: DatasetReader, paths: Mapping[str, Any], by_part: Dict[str, List[Instance]], *, key: str = "dataset_reader"
) -> None:
    """Read the first instances again with a fresh reader, and compare their labels and spans; of instances without any,
    their texts. A reader that only varies its texts, as for augmentation, passes.

    Args:
        reader: a fresh one: its own generator, if it has one, is where it was before the first reading.
        paths: the official files by part.
        by_part: what was read of them before.
        key: the reader's in the config.

    Raises:
        ConfigError: with the first instance that is another one.
    """
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
                    f"'{key}' ({type(reader).__name__}) reads other instances from {paths[part]} each time: "
                    f"instance {number} differs when it is read again. Splits are drawn by position, so every run "
                    "would be tested on other data. Draw from a generator of the reader's own with a fixed seed, such "
                    "as random.Random(0), or read without chance."
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
