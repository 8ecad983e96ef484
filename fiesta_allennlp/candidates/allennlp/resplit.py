import itertools
import json
from typing import Any, Dict, Hashable, Iterable, List, Optional, Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import LabelField, MetadataField

from fiesta_allennlp.candidates.splits import SET_NAMES, check_ratios, split_pool, target_sizes
from fiesta_allennlp.core.errors import (
    MAX_CHOICES,
    DataError,
    FiestaError,
    ReaderError,
    code_line_of,
    describe_as_sentence,
    join_some,
)
from fiesta_allennlp.core.files import shorten


@DatasetReader.register("resplit")
class ResplitReader(DatasetReader):
    """Pools the official sets of a dataset and splits them again at random, at the official ratios or others.

    It wraps any reader. In a config, use it as `dataset_reader` with the wrapped reader inside, and write `"train"`,
    `"validation"` and `"test"` for the data paths::

        "dataset_reader": {"type": "resplit", "reader": {...}, "split_seed": 7,
                           "paths": {"train": "train.xml", "test": "test.xml"}},
        "train_data_path": "train", "validation_data_path": "validation", "test_data_path": "test"

    Any other path is read by the wrapped reader, so that `allennlp evaluate` of a kept model takes files.

    Args:
        reader: the reader of the original files.
        paths: the official files by set: `train` and at least one of `validation` and `test`. If one of these two is
            absent, its random set is as large as the other. With `ratios`, `train` is enough.
        split_seed: the same seed gives the same split, whatever the wrapped reader's tokenizer and indexers.
        group_by: a key of the instances' metadata, or the name of a label or metadata field. Instances with equal
            values stay on one side of the split. By default every instance is a group of its own.
        ratios: the shares of training, validation and test set in all instances, instead of the official ones.
        has_test: whether there is a test set. If false, the split is into training and validation set, and `ratios` are
            those two.
        split_reader: a reader whose groups define the split, instead of the groups of `reader`. Use it if `reader`
            skips or adds training instances but a `validation_dataset_reader` does not: both then have the same split.
            It needs `group_by`.

    Raises:
        ConfigurationError: if a set is unknown, or `split_reader` comes without `group_by`.
        DataError: if an instance lacks the key, or has a group that `split_reader` does not yield. Also if the pool is
            too small, or `ratios` are not shares of the sets.
    """

    def __init__(
        self,
        reader: DatasetReader,
        paths: Dict[str, Any],
        split_seed: int,
        group_by: Optional[str] = None,
        ratios: Optional[List[float]] = None,
        has_test: bool = True,
        split_reader: Optional[DatasetReader] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        unknown = sorted(set(paths) - set(SET_NAMES))
        if unknown or "train" not in paths:
            raise ConfigurationError(f"resplit: 'paths' needs 'train' and 'validation' or 'test' but is {list(paths)}.")
        if split_reader is not None and group_by is None:
            raise ConfigurationError("resplit: 'split_reader' needs 'group_by'.")
        self._reader = reader
        self._split_reader = split_reader
        self._paths = {set_name: path for set_name, path in paths.items() if path is not None}
        self._split_seed = split_seed
        self._group_by = group_by
        self._set_names: Tuple[str, ...] = SET_NAMES if has_test else SET_NAMES[:2]
        self._ratios = tuple(ratios or ())
        if self._ratios:
            check_ratios(self._ratios, self._set_names)
        self._sets: Optional[Dict[str, List[Instance]]] = None

    def _read(self, file_path: Any) -> Iterable[Instance]:
        if file_path not in SET_NAMES:
            yield from self._reader._read(file_path)
            return
        if file_path not in self._set_names:
            raise ConfigurationError(f"resplit: data paths must be one of {self._set_names} but got '{file_path}'.")
        if self._sets is None:
            self._sets = self._draw_sets()
        yield from self._sets[file_path]

    def _draw_sets(self) -> Dict[str, List[Instance]]:
        instances_by_set = read_official_sets(self._reader, self._paths)
        reader = self._split_reader
        split_instances = instances_by_set if reader is None else read_official_sets(reader, self._paths)
        sizes = {set_name: len(instances) for set_name, instances in split_instances.items()}
        targets = target_sizes(sizes, ratios=self._ratios, set_names=self._set_names)
        groups = groups_of(list(itertools.chain.from_iterable(split_instances.values())), self._group_by)
        split = split_pool(groups, targets, seed=self._split_seed)
        set_by_group = {groups[index]: set_name for set_name in self._set_names for index in split.indices_of(set_name)}
        pool = list(itertools.chain.from_iterable(instances_by_set.values()))
        sets: Dict[str, List[Instance]] = {set_name: [] for set_name in self._set_names}
        for group, instance in zip(groups_of(pool, self._group_by), pool, strict=True):
            if group not in set_by_group:
                raise DataError(f"resplit: 'split_reader' yields no instances with {self._group_by} = {group!r}.")
            sets[set_by_group[group]].append(instance)
        if not sets["train"]:
            raise DataError("resplit: the reader yields no instances for the training set of this split.")
        return sets

    def text_to_instance(self, *inputs: Any, **kwargs: Any) -> Instance:
        return self._reader.text_to_instance(*inputs, **kwargs)

    def apply_token_indexers(self, instance: Instance) -> None:
        self._reader.apply_token_indexers(instance)

    def __getattr__(self, name: str) -> Any:
        # Predictors look at attributes of their reader, such as its tokenizer.
        if name.startswith("__") or name == "_reader":
            raise AttributeError(name)
        return getattr(self._reader, name)


def read_official_sets(reader: DatasetReader, paths: Dict[str, Any]) -> Dict[str, List[Instance]]:
    """Return the instances of each official set, without token indexers, in the order train, validation, test. Any
    error of the reader becomes a `ReaderError` with the path. Errors of the machine, such as a missing file, and this
    package's own errors pass unchanged."""
    return {name: _read_instances(reader, paths[name]) for name in SET_NAMES if paths.get(name) is not None}


def _read_instances(reader: DatasetReader, path: Any) -> List[Instance]:
    instances: List[Instance] = []
    try:
        for instance in itertools.islice(reader._read(path), reader.max_instances):
            instances.append(instance)
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        path_text = json.dumps(path).strip('"')
        reason = f"{describe_as_sentence(error).rstrip('.')}{code_line_of(error)}"
        raise ReaderError(f"{path_text}, after {len(instances)} instances: {reason}.") from error
    return instances


def groups_of(instances: List[Instance], group_by: Optional[str]) -> List[Hashable]:
    """Return the group of each instance, `range(len(instances))` if `group_by` is None. Shape: `(num_instances,)`.
    Raise a `DataError` if an instance does not have the key, or its value cannot be compared with others."""
    if group_by is None:
        return list(range(len(instances)))
    return [_to_hashable(_group_value(instance, group_by), group_by) for instance in instances]


def _to_hashable(value: Any, group_by: str) -> Hashable:
    """Return a list, such as the words of a sentence, as a tuple."""
    if isinstance(value, (list, tuple)):
        return tuple(_to_hashable(item, group_by) for item in value)
    if isinstance(value, Hashable):
        return value
    raise DataError(f"--group-by {group_by}: {shorten(value)} cannot be compared. Use another key, or none.")


def _group_value(instance: Instance, group_by: str) -> Any:
    field = instance.fields.get(group_by)
    if isinstance(field, MetadataField):
        return field.metadata
    if isinstance(field, LabelField):
        return field.label
    keys: List[str] = []
    for field in instance.fields.values():
        if isinstance(field, MetadataField) and isinstance(field.metadata, dict):
            if group_by in field.metadata:
                return field.metadata[group_by]
            keys.extend(field.metadata)
    names = join_some(sorted(map(str, keys)), limit=MAX_CHOICES) or "none"
    raise DataError(f"--group-by {group_by}: an instance has no such metadata. Its keys are {names}. Use one, or none.")
