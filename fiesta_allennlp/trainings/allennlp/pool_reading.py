"""The pool of an AllenNLP config, read by its own readers, of several tasks too."""

import hashlib
import itertools
import json
from collections import defaultdict
from typing import (
    Any,
    DefaultDict,
    Dict,
    FrozenSet,
    Hashable,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
)

from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Instance
from allennlp.data.data_loaders import MultiTaskDataLoader
from allennlp.data.dataset_readers.multitask import MultiTaskDatasetReader
from allennlp.data.fields import LabelField, SequenceLabelField
from allennlp.data.vocabulary import DEFAULT_OOV_TOKEN, DEFAULT_PADDING_TOKEN

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division, group_targets
from fiesta_allennlp.trainings.allennlp.pool_checks import check_match, check_reads_alike, check_same_fields
from fiesta_allennlp.trainings.allennlp.resplit import groups_of, read_parts
from fiesta_allennlp.trainings.config import Config, official_paths, own_group_by, readers_of, unwrapped
from fiesta_allennlp.trainings.pool import Pool, check_groups, first_said, untrained_labels, with_labels


def check_one_task(key: str, reader: DatasetReader) -> None:
    """Refuse a reader of several tasks where random splits are drawn."""
    if isinstance(reader, MultiTaskDatasetReader):
        raise ConfigError(
            f"'{key}' is a multitask reader for the tasks {', '.join(reader.readers)}, but random splits are drawn "
            "from the data of one task. Use --splits official, or use the reader of one task."
        )


def by_task(key: str, reader: DatasetReader, paths: Mapping[str, Any]) -> List[Tuple[DatasetReader, Dict[str, Any]]]:
    """Return the reader of each task with its data paths by part; any other reader is returned itself with its
    paths."""
    if not isinstance(reader, MultiTaskDatasetReader):
        return [(reader, dict(paths))]
    for part, path in paths.items():
        if not isinstance(path, Mapping) or set(path) != set(reader.readers):
            raise ConfigError(
                f"'{part}_data_path' is {json.dumps(path)} but '{key}' reads the tasks {', '.join(reader.readers)}. "
                "Write an object with one path for each task."
            )
    return [(shim.inner, {part: path[task] for part, path in paths.items()}) for task, shim in reader.readers.items()]


def first_batches(loader: DataLoader) -> Iterator[Any]:
    """Yield the first batch; of a multitask loader, batches until every task has been in one, because a multitask model
    reports the metrics of the tasks that it has seen."""
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ConfigError(
            "'data_loader' makes no batches from the training set, so no run could learn. Set a smaller "
            "'batch_size', or remove 'drop_last'."
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
    """Read all parts of a candidate with its own readers. Random splits are drawn over what the last reader gives.

    `group_by` is a metadata key, `none` for no groups, or None for the candidate's own choice: the key `group_by` of
    its resplit reader, or else the class attribute `group_by` of its readers. `data` is the fingerprint of the data
    files, empty where pools are not compared. Official sets are each read by their own reader, and nothing is kept
    whole.
    """
    paths = division.used(official_paths(config))
    given = readers_of(config)
    readers = [_reader(params) for params in given.values()]
    key = None if division.is_official else _group_key(config, group_by, readers)
    if division.is_official:
        views = [_official_view(list(zip(given, readers, strict=True)), paths)]
        targets = _official_targets(views[0].sizes, paths)
    else:
        for name, reader in zip(given, readers, strict=True):
            check_one_task(name, reader)
        fresh = [(name, _reader(params)) for name, params in given.items()]
        is_batched = config.get("data_loader", {}).get("batch_size") != 1
        views = [
            _View([(reader, paths)], key, fresh=[again], is_batched=is_batched)
            for reader, again in zip(readers, fresh, strict=True)
        ]
        check_match(views[0].identities, views[-1].identities, key)
        targets = group_targets(views[-1].sizes, ratios=division.ratios, parts=division.parts)
    for view in views:
        _check_labels(view, paths)
    check_groups(views[-1].groups, targets, key)
    return Pool(
        official=views[-1].sizes,
        targets=targets,
        num_groups=len(set(views[-1].groups)),
        group_by=key,
        data=data,
        fingerprint=hashlib.sha256(repr(views[-1].identities).encode("utf-8")).hexdigest(),
        pairing=views[-1].pairing,
        words=frozenset().union(*(names for view in views for names in view.counts.values())) | _added_words(config),
        counts=views[0].counts,
        untrained=untrained_labels(views[-1].groups, views[-1].labels, views[-1].sizes, division),
    )


def _group_key(config: Config, group_by: Optional[str], readers: Sequence[DatasetReader]) -> Optional[str]:
    return first_said(
        [group_by, *own_group_by(config).values(), *(getattr(reader, "group_by", None) for reader in readers)]
    )


def _official_view(readers: Sequence[Tuple[str, DatasetReader]], paths: Mapping[str, Any]) -> "_View":
    """Read the training set with the first reader and the other sets with the last one."""
    evaluated = {part: path for part, path in paths.items() if part != "train"}
    return _View(by_task(*readers[0], {"train": paths["train"]}) + by_task(*readers[-1], evaluated), None)


def _official_targets(sizes: Mapping[str, int], paths: Mapping[str, Any]) -> Dict[str, int]:
    for part, size in sizes.items():
        if not size:
            raise DataError(f"'{part}_data_path': {paths[part]} has no instances. Give a file with instances.")
    return dict(sizes)


def _check_labels(view: "_View", paths: Dict[str, Any]) -> None:
    """Refuse data in which every instance is labelled alike: all candidates would be equally right."""
    labels = [labels for _, labels in view.identities]
    if labels[0] and all(other == labels[0] for other in labels):
        raise DataError(
            f"all {len(labels)} instances of {', '.join(map(str, paths.values()))} have the label "
            f"{', '.join(map(repr, labels[0]))}, so there is nothing to learn. Give data with two labels or more."
        )


class _View:
    """The pool as one reader sees it, or several that each read some of the parts."""

    def __init__(
        self,
        paths_of: List[Tuple[DatasetReader, Dict[str, Any]]],
        group_by: Optional[str],
        *,
        fresh: Sequence[Tuple[str, DatasetReader]] = (),
        is_batched: bool = True,
    ) -> None:
        read = [(reader, read_parts(reader, paths)) for reader, paths in paths_of]
        for (name, again), (_, paths), (_, parts) in zip(fresh, paths_of, read, strict=False):
            if is_batched:
                check_same_fields(parts, paths, key=name)
            check_reads_alike(again, paths, parts, key=name)
        by_part: Dict[str, List[Instance]] = {}
        for _, parts in read:
            for part, instances in parts.items():
                by_part.setdefault(part, []).extend(instances)
        pool = list(itertools.chain.from_iterable(by_part.values()))
        self.sizes = {part: len(instances) for part, instances in by_part.items()}
        try:
            self.groups = groups_of(pool, group_by)
        except DataError as error:
            raise DataError(f"'{fresh[0][0]}': {error}") from error
        self.identities = [(group, _labels(instance)) for group, instance in zip(self.groups, pool, strict=True)]
        self.labels = _label_fields(pool)
        self.pairing = with_labels(self.groups, self.labels)
        self.counts = _counts([(reader, itertools.chain.from_iterable(parts.values())) for reader, parts in read])


def _labels(instance: Instance) -> List[Any]:
    """Return the labels of an instance, which tell instances apart whatever the tokenizer."""
    return [field.label for field in instance.fields.values() if isinstance(field, LabelField)]


def _label_fields(pool: Sequence[Instance]) -> Dict[str, List[Hashable]]:
    """Return the labels of each field that labels every instance, or every token of it."""
    kinds = (LabelField, SequenceLabelField)
    first = pool[0].fields if pool else {}
    names = [name for name in first if all(isinstance(one.fields.get(name), kinds) for one in pool)]
    return {name: [_labels_in(one.fields[name]) for one in pool] for name in names}


def _labels_in(field: Any) -> Hashable:
    return tuple(field.labels) if isinstance(field, SequenceLabelField) else field.label


def _reader(params: Config) -> DatasetReader:
    return DatasetReader.from_params(Params(unwrapped(params)).duplicate())


def _counts(read: List[Tuple[DatasetReader, Iterable[Instance]]]) -> Dict[str, Dict[str, int]]:
    """Count each word, by vocabulary namespace, in the instances of every reader."""
    counter: DefaultDict[str, DefaultDict[str, int]] = defaultdict(lambda: defaultdict(int))
    for reader, instances in read:
        for instance in instances:
            reader.apply_token_indexers(instance)
            instance.count_vocab_items(counter)
    return {namespace: dict(words) for namespace, words in counter.items()}


def _added_words(config: Config) -> FrozenSet[str]:
    """Return the words of the vocabulary that are not in the data: added words, padding and the unknown word."""
    vocabulary = config.get("vocabulary") or {}
    special = {vocabulary.get("padding_token", DEFAULT_PADDING_TOKEN), vocabulary.get("oov_token", DEFAULT_OOV_TOKEN)}
    return frozenset(special).union(*(vocabulary.get("tokens_to_add") or {}).values())
