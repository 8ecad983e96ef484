"""The pool of an AllenNLP config, read by its own readers, of several tasks too, and the checks of these readers."""

import hashlib
import inspect
import itertools
from collections import defaultdict
from itertools import chain
from typing import Any, DefaultDict, Dict, FrozenSet, Hashable, Iterator, List, Mapping, Optional, Sequence, Tuple

from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader, Field, Instance
from allennlp.data.data_loaders import MultiTaskDataLoader
from allennlp.data.dataset_readers.multitask import MultiTaskDatasetReader
from allennlp.data.fields import (
    LabelField,
    ListField,
    MultiLabelField,
    SequenceLabelField,
    SpanField,
    TextField,
)
from allennlp.data.vocabulary import DEFAULT_OOV_TOKEN, DEFAULT_PADDING_TOKEN

from fiesta_allennlp.candidates.allennlp.resplit import groups_of, read_official_sets
from fiesta_allennlp.candidates.config import Config, official_paths, readers_of
from fiesta_allennlp.candidates.pool import (
    FileContent,
    Pool,
    build_pool,
    encode_values,
    first_group_key,
    label_digests,
)
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.core.errors import ConfigError, DataError, join_some
from fiesta_allennlp.core.files import shown_value

Identity = Tuple[Hashable, List[Any]]
"""The group of an instance, or its position without groups, and its labels."""

MATCH_ADVICE = "A random split cannot match them: use --group-by with an id in the files, or --splits official."


def check_readers_match(
    training_identities: Sequence[Identity], validation_identities: Sequence[Identity], group_by: Optional[str]
) -> None:
    """Refuse two readers whose instances a random split cannot match with each other.

    Without a group key, both readers must yield the same labels in the same order. With one, the validation reader must
    yield every group that the training reader yields, which may skip groups, and skip or add instances of a group.
    """
    if not training_identities:
        raise ConfigError("'dataset_reader' reads no instances, so no run could learn.")
    if group_by is None:
        if training_identities != validation_identities:
            num_training, num_validation = len(training_identities), len(validation_identities)
            numbers = f"{num_training} and {num_validation} instances"
            text = "the same number of instances, but other labels" if num_training == num_validation else numbers
            raise ConfigError(f"the two readers read {text}. {MATCH_ADVICE}")
        return
    evaluated_groups = {group for group, _ in validation_identities}
    for group, _ in training_identities:
        if group not in evaluated_groups:
            reason = f"'validation_dataset_reader' reads no instances with {group_by} = {group!r}"
            raise ConfigError(f"{reason}. {MATCH_ADVICE}")


LABEL_FIELDS = (LabelField, SequenceLabelField, MultiLabelField, SpanField)
MAX_REREAD_INSTANCES = 200  # instances


def check_reader_is_deterministic(
    reader: DatasetReader, path: Any, instances: Sequence[Instance], *, key: str = "dataset_reader"
) -> None:
    """Read the first instances of a set again with a fresh reader, and refuse other labels and spans, or other texts
    without them. A reader that only varies its texts, as for augmentation, passes. `reader` must be new, so that its
    own random generator starts as before."""
    reread = itertools.islice(reader._read(path), min(MAX_REREAD_INSTANCES, len(instances)))
    pairs = itertools.zip_longest(instances[:MAX_REREAD_INSTANCES], reread)
    for number, (first, second) in enumerate(pairs, start=1):
        if second is None or _labels_or_texts(first) != _labels_or_texts(second):
            raise ConfigError(
                f"'{key}' ({type(reader).__name__}) is not deterministic: instance {number} of {path} differs when "
                "read again. Use a generator with a fixed seed, such as random.Random(0)."
            )


Records = Dict[int, Tuple[Instance, Dict[str, int]]]
"""The arguments of `text_to_instance` as hashes by name, with their instance, by the `id` of that."""


def record_arguments(reader: DatasetReader) -> Records:
    """Return a mapping that keeps what the reader makes its instances of, while it reads."""
    make_instance, records = reader.text_to_instance, {}
    signature = inspect.signature(make_instance)

    def text_to_instance(*args: Any, **kwargs: Any) -> Instance:
        instance = make_instance(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs).arguments
        records[id(instance)] = instance, {name: hash(repr(value)) for name, value in arguments.items()}
        return instance

    reader.text_to_instance = text_to_instance
    return records


def record_contents(instances: Sequence[Instance], records: Records, groups: Sequence[Hashable]) -> List[Hashable]:
    """Return what is equal for copies: what the reader made an instance of, and `contents_of`, where the model may miss
    a difference. The one argument that tells records apart as `groups` do is their id, which does not count. Shapes:
    `(num_instances,)`."""
    contents = contents_of(instances)
    arguments = [records[id(instance)][1] for instance in instances if id(instance) in records]
    if len(arguments) < len(instances):  # a reader that does not use it
        return contents
    columns = {name: [of_record.get(name) for of_record in arguments] for name in dict.fromkeys(chain(*arguments))}
    ids = [name for name, column in columns.items() if encode_values(column) == encode_values(groups)]
    counted = [column for name, column in columns.items() if len(ids) != 1 or name not in ids]
    return list(zip(contents, *counted, strict=True))


def contents_of(instances: Sequence[Instance]) -> List[Hashable]:
    """Return hashes of all texts and labels, equal for copies; the position of an instance without text. Metadata, such
    as an id, do not count. Shape: `(num_instances,)`."""
    contents: List[Hashable] = []
    for number, instance in enumerate(instances):
        leaves = [(name, leaf) for name in sorted(instance.fields) for leaf in _leaves(instance.fields[name])]
        texts = [(name, [t.text for t in leaf.tokens]) for name, leaf in leaves if isinstance(leaf, TextField)]
        labels = [(name, _label(leaf)) for name, leaf in leaves if isinstance(leaf, LABEL_FIELDS)]
        contents.append(hash(repr((texts, labels))) if any(words for _, words in texts) else (number,))
    return contents


def _labels_or_texts(instance: Instance) -> List[Any]:
    leaves = [leaf for name in sorted(instance.fields) for leaf in _leaves(instance.fields[name])]
    labels = [_label(leaf) for leaf in leaves if isinstance(leaf, LABEL_FIELDS)]
    return labels or [[token.text for token in leaf.tokens] for leaf in leaves if isinstance(leaf, TextField)]


def _leaves(field: Field) -> List[Field]:
    return [leaf for child in field for leaf in _leaves(child)] if isinstance(field, ListField) else [field]


def _label(field: Any) -> Any:
    if isinstance(field, LabelField):
        return field.label
    return (field.span_start, field.span_end) if isinstance(field, SpanField) else list(field.labels)


def split_by_task(
    key: str, reader: DatasetReader, paths: Mapping[str, Any]
) -> List[Tuple[DatasetReader, Dict[str, Any]]]:
    """Return the reader of each task with its data paths by part, or any other reader with its paths."""
    if not isinstance(reader, MultiTaskDatasetReader):
        return [(reader, dict(paths))]
    for set_name, path in paths.items():
        if not isinstance(path, Mapping) or set(path) != set(reader.readers):
            raise ConfigError(
                f"'{set_name}_data_path' must be an object with a path for each task of '{key}', "
                f"{join_some(reader.readers)}, but is {shown_value(path)}."
            )
    shims = reader.readers.items()
    return [(shim.inner, {set_name: path[task] for set_name, path in paths.items()}) for task, shim in shims]


def first_batches(loader: DataLoader) -> Iterator[Any]:
    """Yield the first batch; for a multitask loader, batches until each task has had one, because a multitask model
    reports only the metrics of tasks that it has seen."""
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ConfigError("'data_loader' makes no batches. Set a smaller 'batch_size', or remove 'drop_last'.")
    unseen = set(loader.readers) if isinstance(loader, MultiTaskDataLoader) else set()
    for batch in itertools.chain([first], batches):
        yield batch
        unseen -= set(batch["task"] if unseen else ())
        if not unseen:
            return


def read_pool(
    config: Config, group_by: Optional[str], *, data: str = "", division: Division = OFFICIAL_RATIOS_DIVISION
) -> Pool:
    """Read all parts of a candidate with its own readers. Random splits are drawn over the instances of the last one.

    `group_by` is a metadata key, `none` for no groups, or None for the class attribute `group_by` of the candidate's
    readers. `data` is the fingerprint of the data files, empty if pools are not compared. Official sets are each read
    by their own reader, without groups.
    """
    paths = division.used_paths(official_paths(config))
    readers = {name: _build_reader(config, name) for name in readers_of(config)}
    key = None
    if division.is_official:
        first, last = next(iter(readers)), next(reversed(readers))
        evaluated_paths = {set_name: path for set_name, path in paths.items() if set_name != "train"}
        training_sources = split_by_task(first, readers[first], {"train": paths["train"]})
        views = [_PoolView(training_sources + split_by_task(last, readers[last], evaluated_paths))]
    else:
        key = first_group_key([group_by, *(getattr(reader, "group_by", None) for reader in readers.values())])
        views = [_random_view(config, name, reader, paths, key) for name, reader in readers.items()]
    for set_name, size in views[-1].sizes.items():
        if not size:
            raise DataError(f"'{set_name}_data_path': no instances were read. Check {paths[set_name]} and its reader.")
    check_readers_match(views[0].identities, views[-1].identities, key)
    for view in views:
        _check_labels(view, paths)
    labels, fields = _label_fields(views[-1].pool), tuple(views[-1].pool[0].fields)
    return build_pool(
        views[-1].groups,
        views[-1].sizes,
        contents=record_contents(views[-1].pool, views[-1].records, views[-1].groups),
        group_by=key,
        division=division,
        data=data,
        fingerprint=hashlib.sha256(repr(views[-1].identities).encode("utf-8")).hexdigest(),
        pairing=label_digests(views[-1].groups, labels),
        words=frozenset().union(*(names for view in views for names in view.counts.values()))
        | _vocabulary_words(config),
        counts=views[0].counts,
        contents_read=tuple(
            FileContent(path if isinstance(path, str) else set_name, views[-1].sizes[set_name], "instances", fields)
            for set_name, path in paths.items()
        ),
    )


def _check_labels(view: "_PoolView", paths: Dict[str, Any]) -> None:
    """Refuse data with a single label: all candidates would be equally right."""
    labels = [labels for _, labels in view.identities]
    if labels[0] and all(values == labels[0] for values in labels):
        files, label = (join_some(list(map(str, values))) for values in (paths.values(), map(repr, labels[0])))
        raise DataError(f"all {len(labels)} instances of {files} have the label {label}: there is nothing to learn.")


def _random_view(
    config: Config, key: str, reader: DatasetReader, paths: Dict[str, Any], group_by: Optional[str]
) -> "_PoolView":
    """Read all parts with one reader of the config, and check that random splits can mix them."""
    if isinstance(reader, MultiTaskDatasetReader):
        raise ConfigError(f"'{key}' reads several tasks, which random splits cannot mix. Use --splits official.")
    view = _PoolView([(reader, paths)])
    set_name, instances = next(iter(view.instances_by_set.items()))
    check_reader_is_deterministic(_build_reader(config, key), paths[set_name], instances, key=key)
    try:
        view.groups = groups_of(view.pool, group_by)
    except DataError as error:
        raise DataError(f"'{key}': {error}") from error
    return view


class _PoolView:
    """The pool as one reader sees it, or several that each read some of the parts. Each instance is its own group until
    `groups` are set."""

    def __init__(self, sources: List[Tuple[DatasetReader, Dict[str, Any]]]) -> None:
        self.instances_by_set: DefaultDict[str, List[Instance]] = defaultdict(list)
        counter: DefaultDict[str, DefaultDict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.records: Records = {}
        for reader, paths in sources:
            records = record_arguments(reader)
            for set_name, instances in read_official_sets(reader, paths).items():
                self.instances_by_set[set_name] += instances
                for instance in instances:
                    reader.apply_token_indexers(instance)
                    instance.count_vocab_items(counter)
            self.records.update(records)
        self.pool = list(itertools.chain.from_iterable(self.instances_by_set.values()))
        self.sizes = {set_name: len(instances) for set_name, instances in self.instances_by_set.items()}
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


def _build_reader(config: Config, key: str) -> DatasetReader:
    return DatasetReader.from_params(Params(config[key], history=f"{key}.").duplicate())


def _vocabulary_words(config: Config) -> FrozenSet[str]:
    """Return the words of the vocabulary that are not in the data: added words, padding and the unknown word."""
    vocabulary = config.get("vocabulary") or {}
    special = {vocabulary.get("padding_token", DEFAULT_PADDING_TOKEN), vocabulary.get("oov_token", DEFAULT_OOV_TOKEN)}
    return frozenset(special).union(*(vocabulary.get("tokens_to_add") or {}).values())
