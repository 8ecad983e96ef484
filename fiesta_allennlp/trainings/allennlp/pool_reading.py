"""The pool of an AllenNLP config, read by its own readers, of several tasks too."""

import hashlib
import itertools
import json
from collections import defaultdict
from typing import Any, DefaultDict, Dict, FrozenSet, Hashable, Iterator, List, Mapping, Optional, Sequence, Tuple

from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Instance
from allennlp.data.data_loaders import MultiTaskDataLoader
from allennlp.data.dataset_readers.multitask import MultiTaskDatasetReader
from allennlp.data.fields import LabelField, SequenceLabelField
from allennlp.data.vocabulary import DEFAULT_OOV_TOKEN, DEFAULT_PADDING_TOKEN

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.allennlp.pool_checks import (
    Identity,
    check_match,
    check_reads_alike,
    check_same_fields,
    contents_of,
)
from fiesta_allennlp.trainings.allennlp.resplit import groups_of, read_parts
from fiesta_allennlp.trainings.config import Config, official_paths, readers_of
from fiesta_allennlp.trainings.pool import Pool, first_group_key, new_pool, with_labels


def by_task(key: str, reader: DatasetReader, paths: Mapping[str, Any]) -> List[Tuple[DatasetReader, Dict[str, Any]]]:
    """Return the reader of each task with its data paths by part, or any other reader with its paths."""
    if not isinstance(reader, MultiTaskDatasetReader):
        return [(reader, dict(paths))]
    for part, path in paths.items():
        if not isinstance(path, Mapping) or set(path) != set(reader.readers):
            raise ConfigError(
                f"'{part}_data_path' must be an object with a path for each task of '{key}', "
                f"{', '.join(reader.readers)}, but is {json.dumps(path)}."
            )
    return [(shim.inner, {part: path[task] for part, path in paths.items()}) for task, shim in reader.readers.items()]


def first_batches(loader: DataLoader) -> Iterator[Any]:
    """Yield the first batch; for a multitask loader, batches until each task has had one, because a multitask model
    reports only the metrics of tasks that it has seen."""
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ConfigError(
            "'data_loader' makes no batches from the training set. Set a smaller 'batch_size', or remove 'drop_last'."
        )
    unseen = set(loader.readers) if isinstance(loader, MultiTaskDataLoader) else set()
    for batch in itertools.chain([first], batches):
        yield batch
        unseen -= set(batch["task"] if unseen else ())
        if not unseen:
            return


def read_pool(
    config: Config, group_by: Optional[str], *, data: str = "", division: Division = AT_OFFICIAL_RATIOS
) -> Pool:
    """Read all parts of a candidate with its own readers. Random splits are drawn over the instances of the last one.

    `group_by` is a metadata key, `none` for no groups, or None for the class attribute `group_by` of the candidate's
    readers. `data` is the fingerprint of the data files, empty if pools are not compared. Official sets are each read
    by their own reader, without groups.
    """
    paths = division.used(official_paths(config))
    readers = {name: _reader(config, name) for name in readers_of(config)}
    key = None
    if division.is_official:
        first, last = next(iter(readers)), next(reversed(readers))
        evaluated = {part: path for part, path in paths.items() if part != "train"}
        trained = by_task(first, readers[first], {"train": paths["train"]})
        views = [_View(trained + by_task(last, readers[last], evaluated))]
        for part, size in views[0].sizes.items():
            if not size:
                raise DataError(f"'{part}_data_path': {paths[part]} contains no instances.")
    else:
        key = first_group_key([group_by, *(getattr(reader, "group_by", None) for reader in readers.values())])
        views = [_random_view(config, name, reader, paths, key) for name, reader in readers.items()]
        check_match(views[0].identities, views[-1].identities, key)
    for view in views:
        _check_labels(view, paths)
    labels = _label_fields(views[-1].pool)
    return new_pool(
        views[-1].groups,
        views[-1].sizes,
        labels,
        contents=contents_of(views[-1].pool),
        group_by=key,
        division=division,
        data=data,
        fingerprint=hashlib.sha256(repr(views[-1].identities).encode("utf-8")).hexdigest(),
        pairing=with_labels(views[-1].groups, labels),
        words=frozenset().union(*(names for view in views for names in view.counts.values())) | _added_words(config),
        counts=views[0].counts,
    )


def _check_labels(view: "_View", paths: Dict[str, Any]) -> None:
    """Refuse data with a single label: all candidates would be equally right."""
    labels = [labels for _, labels in view.identities]
    if labels[0] and all(values == labels[0] for values in labels):
        raise DataError(
            f"all {len(labels)} instances of {', '.join(map(str, paths.values()))} have the label "
            f"{', '.join(map(repr, labels[0]))}, so there is nothing to learn. Use data with at least two labels."
        )


def _random_view(
    config: Config, key: str, reader: DatasetReader, paths: Dict[str, Any], group_by: Optional[str]
) -> "_View":
    """Read all parts with one reader of the config, and check that random splits can mix them."""
    if isinstance(reader, MultiTaskDatasetReader):
        raise ConfigError(
            f"'{key}' is a multitask reader for the tasks {', '.join(reader.readers)}, but random splits are drawn "
            "from the data of one task. Use --splits official, or the reader of one task."
        )
    view = _View([(reader, paths)])
    if config.get("data_loader", {}).get("batch_size") != 1:
        check_same_fields(view.by_part, paths, key=key)
    check_reads_alike(_reader(config, key), paths, view.by_part, key=key)
    try:
        view.groups = groups_of(view.pool, group_by)
    except DataError as error:
        raise DataError(f"'{key}': {error}") from error
    return view


class _View:
    """The pool as one reader sees it, or several that each read some of the parts. Each instance is its own group until
    `groups` are set."""

    def __init__(self, sources: List[Tuple[DatasetReader, Dict[str, Any]]]) -> None:
        self.by_part: DefaultDict[str, List[Instance]] = defaultdict(list)
        counter: DefaultDict[str, DefaultDict[str, int]] = defaultdict(lambda: defaultdict(int))
        for reader, paths in sources:
            for part, instances in read_parts(reader, paths).items():
                self.by_part[part] += instances
                for instance in instances:
                    reader.apply_token_indexers(instance)
                    instance.count_vocab_items(counter)
        self.pool = list(itertools.chain.from_iterable(self.by_part.values()))
        self.sizes = {part: len(instances) for part, instances in self.by_part.items()}
        self.groups: List[Hashable] = list(range(len(self.pool)))
        self.counts = {namespace: dict(words) for namespace, words in counter.items()}

    @property
    def identities(self) -> List[Identity]:
        """The group and the labels of each instance, which identify it whatever the tokenizer."""
        labels = ([f.label for f in instance.fields.values() if isinstance(f, LabelField)] for instance in self.pool)
        return list(zip(self.groups, labels, strict=True))


def _label_fields(pool: Sequence[Instance]) -> Dict[str, List[Hashable]]:
    """Return the labels of each field that labels every instance, or every token of it."""
    kinds = (LabelField, SequenceLabelField)
    first = pool[0].fields if pool else {}
    names = [name for name in first if all(isinstance(instance.fields.get(name), kinds) for instance in pool)]
    fields: Dict[str, List[Any]] = {name: [instance.fields[name] for instance in pool] for name in names}
    return {
        name: [tuple(field.labels) if isinstance(field, SequenceLabelField) else field.label for field in column]
        for name, column in fields.items()
    }


def _reader(config: Config, key: str) -> DatasetReader:
    return DatasetReader.from_params(Params(config[key], history=f"{key}.").duplicate())


def _added_words(config: Config) -> FrozenSet[str]:
    """Return the words of the vocabulary that are not in the data: added words, padding and the unknown word."""
    vocabulary = config.get("vocabulary") or {}
    special = {vocabulary.get("padding_token", DEFAULT_PADDING_TOKEN), vocabulary.get("oov_token", DEFAULT_OOV_TOKEN)}
    return frozenset(special).union(*(vocabulary.get("tokens_to_add") or {}).values())
