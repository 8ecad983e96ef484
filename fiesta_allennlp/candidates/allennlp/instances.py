"""The instances of an AllenNLP config: the pool that its readers make of the official sets, and the reader that splits
this pool again for each run."""

import hashlib
import json
from collections import defaultdict
from contextlib import suppress
from itertools import chain, islice
from typing import Any, DefaultDict, Dict, Hashable, Iterable, List, Mapping, Optional, Sequence, Tuple

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import LabelField, MetadataField

from fiesta_allennlp.candidates import splits
from fiesta_allennlp.candidates.config import READER_KEYS, Config, files_behind, official_paths, readers_of
from fiesta_allennlp.core import errors
from fiesta_allennlp.core.files import shorten

Sets = Dict[str, List[Instance]]
WordCounts = DefaultDict[str, DefaultDict[str, int]]


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

    Raises:
        ConfigurationError: if a set is unknown.
        DataError: if an instance lacks the key. Also if the pool is too small, or `ratios` are not shares of the sets.
    """

    def __init__(
        self,
        reader: DatasetReader,
        paths: Dict[str, Any],
        split_seed: int,
        group_by: Optional[str] = None,
        ratios: Optional[List[float]] = None,
        has_test: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not {"train"} <= set(paths) <= set(splits.SET_NAMES):
            raise ConfigurationError(f"resplit: 'paths' needs 'train' and 'validation' or 'test' but is {list(paths)}.")
        self._reader, self._paths = reader, paths
        self._split_seed, self._group_by = split_seed, group_by
        self._set_names: Tuple[str, ...] = splits.SET_NAMES if has_test else splits.SET_NAMES[:2]
        self._ratios = tuple(ratios or ())
        self._sets: Optional[Sets] = None

    def _read(self, file_path: Any) -> Iterable[Instance]:
        if file_path not in splits.SET_NAMES:
            yield from self._reader._read(file_path)
            return
        if file_path not in self._set_names:
            raise ConfigurationError(f"resplit: data paths must be one of {self._set_names} but got '{file_path}'.")
        self._sets = self._sets or self._draw_sets()
        yield from self._sets[file_path]

    def _draw_sets(self) -> Sets:
        official_sets = read_official_sets(self._reader, self._paths)
        instances = list(chain.from_iterable(official_sets.values()))
        sizes = {set_name: len(official) for set_name, official in official_sets.items()}
        targets = splits.target_sizes(sizes, ratios=self._ratios, set_names=self._set_names)
        split = splits.split_pool(groups_of(instances, self._group_by), targets, seed=self._split_seed)
        return {set_name: [instances[index] for index in indices] for set_name, indices in split.items()}

    def text_to_instance(self, *inputs: Any, **kwargs: Any) -> Instance:
        return self._reader.text_to_instance(*inputs, **kwargs)

    def apply_token_indexers(self, instance: Instance) -> None:
        self._reader.apply_token_indexers(instance)

    def __getattr__(self, name: str) -> Any:
        # Predictors look at attributes of their reader, such as its tokenizer.
        if name.startswith("__") or name == "_reader":
            raise AttributeError(name)
        return getattr(self._reader, name)


def read_official_sets(reader: DatasetReader, paths: Mapping[str, Any]) -> Sets:
    """Return the instances of each official set, without token indexers, in the order train, validation, test. Any
    error of the reader becomes a `ReaderError` with the path. Errors of the machine, such as a missing file, and this
    package's own errors pass unchanged."""
    return {name: _read_instances(reader, paths[name]) for name in splits.SET_NAMES if paths.get(name) is not None}


def _read_instances(reader: DatasetReader, path: Any) -> List[Instance]:
    instances: List[Instance] = []
    try:
        for instance in islice(reader._read(path), reader.max_instances):
            instances.append(instance)
    except (errors.FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        path_text = json.dumps(path).strip('"')
        reason = f"{errors.describe_as_sentence(error).rstrip('.')}{errors.code_line_of(error)}"
        raise errors.ReaderError(f"{path_text}, after {len(instances)} instances: {reason}.") from error
    return instances


def groups_of(instances: Sequence[Instance], group_by: Optional[str]) -> List[Hashable]:
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
    raise errors.DataError(f"--group-by {group_by}: {shorten(value)} cannot be compared. Use another key, or none.")


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
    names = errors.join_some(sorted(map(str, keys)), limit=errors.MAX_CHOICES) or "none"
    raise errors.DataError(
        f"--group-by {group_by}: an instance has no such metadata. Its keys are {names}. Use one, or none."
    )


# The pool.


def read_pool(
    config: Config, group_by: Optional[str], *, division: splits.Division = splits.OFFICIAL_RATIOS_DIVISION
) -> Tuple[splits.Pool, WordCounts]:
    """Read all sets of a candidate with its own readers, and check that random splits can mix them. Return the pool,
    and how often each word occurs, by vocabulary namespace.

    `group_by` is a metadata key, `none` for no groups, or None for the class attribute `group_by` of the candidate's
    readers. Official sets are each read by their own reader, without groups.
    """
    paths = division.used_paths(official_paths(config))
    readers = {
        key: DatasetReader.from_params(Params(reader, history=f"{key}.").duplicate())
        for key, reader in readers_of(config).items()
    }
    counts: WordCounts = defaultdict(lambda: defaultdict(int))
    sets_by_reader: Dict[str, Sets] = {}
    for key, reader in readers.items():
        is_one_of_two = division.is_official and len(readers) == 2
        own_names = [name for name in paths if not is_one_of_two or (name == "train") == (key == READER_KEYS[0])]
        sets_by_reader[key] = _read_existing_sets(reader, {name: paths[name] for name in own_names})
        for instance in chain(*sets_by_reader[key].values()):
            reader.apply_token_indexers(instance)
            instance.count_vocab_items(counts)
    sets = {name: instances for sets in sets_by_reader.values() for name, instances in sets.items()}
    instances = list(chain(*sets.values()))
    group_key = None
    if not division.is_official:
        own_keys = [getattr(reader, "group_by", None) for reader in readers.values()]
        group_key = splits.first_group_key([group_by, *own_keys])
        _check_mixable(sets_by_reader, group_key)
    _check_sets(sets, paths)
    built_pool = splits.build_pool(
        groups_of(instances, group_key),
        {name: len(instances) for name, instances in sets.items()},
        contents=list(map(_content_of, instances)),
        group_by=group_key,
        division=division,
        fingerprint=hashlib.sha256(repr(_identities(instances, group_key)).encode("utf-8")).hexdigest(),
        contents_read=tuple(
            splits.content_text(
                path if isinstance(path, str) else name, len(sets[name]), "instances", instances[0].fields
            )
            for name, path in paths.items()
        ),
    )
    return built_pool, counts


def _read_existing_sets(reader: DatasetReader, paths: Mapping[str, Any]) -> Sets:
    """Return the instances of each official set. Raise a `DataError` with the keys of the files that do not exist."""
    try:
        return read_official_sets(reader, paths)
    except FileNotFoundError as error:
        local = {name: path for name, path in paths.items() if "://" not in str(path)}
        absent = [f"'{name}_data_path' is {path}" for name, path in local.items() if not files_behind(path)]
        if not absent:  # a reader may open other files
            raise
        raise errors.DataError(f"{errors.join_some(absent)}, which does not exist. Correct the path.") from error


def _check_mixable(sets_by_reader: Mapping[str, Sets], group_key: Optional[str]) -> None:
    """Refuse two readers that read different instances, which a random split would mix."""
    identities = [_identities(list(chain(*sets.values())), group_key) for sets in sets_by_reader.values()]
    if identities[0] != identities[-1]:
        raise errors.ConfigError(
            f"the two readers read different groups or labels ({len(identities[0])} and {len(identities[-1])} "
            "instances), which a random split cannot mix. Use --splits official."
        )


def _check_sets(sets: Sets, paths: Mapping[str, Any]) -> None:
    """Refuse an empty set, and data with a single label: all candidates would be equally right."""
    for name, instances in sets.items():
        if not instances:
            raise errors.DataError(f"'{name}_data_path': no instances were read. Check {paths[name]} and its reader.")
    labels = [_labels_of(instance) for instance in chain(*sets.values())]
    if labels[0] and labels.count(labels[0]) == len(labels):
        files, label = (errors.join_some(list(map(str, values))) for values in (paths.values(), map(repr, labels[0])))
        raise errors.DataError(
            f"all {len(labels)} instances of {files} have the label {label}: there is nothing to learn."
        )


def _labels_of(instance: Instance) -> List[Any]:
    """Return the labels of an instance, which identify it whatever the tokenizer."""
    return [field.label for field in instance.fields.values() if isinstance(field, LabelField)]


def _identities(instances: Sequence[Instance], group_key: Optional[str]) -> List[Tuple[Hashable, List[Any]]]:
    """Return the group, or else the position, and the labels of each instance."""
    return list(zip(groups_of(instances, group_key), map(_labels_of, instances), strict=True))


def _content_of(instance: Instance) -> Hashable:
    """Return what is equal for copies: a hash of the fields and metadata that are not ids. Fields of a user's own class
    may have no representation, and do not count."""
    contents: Dict[str, Any] = {}
    for name, field in instance.fields.items():
        with suppress(NotImplementedError):
            content = field.human_readable_repr()
            is_of_keys = isinstance(field, MetadataField) and isinstance(content, dict)
            contents.update(content if is_of_keys else {name: content})
    return hash(repr([(name, content) for name, content in contents.items() if not splits.is_id(str(name))]))
