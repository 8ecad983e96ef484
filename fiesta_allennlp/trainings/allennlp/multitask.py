"""AllenNLP's `multitask` readers and data loaders: several tasks in one config, each with data files of its own."""

import itertools
import json
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from allennlp.data import DataLoader, DatasetReader
from allennlp.data.data_loaders import MultiTaskDataLoader
from allennlp.data.dataset_readers.multitask import MultiTaskDatasetReader

from fiesta_allennlp.errors import ConfigError


def check_one_task(key: str, reader: DatasetReader) -> None:
    """Refuse a reader of several tasks where random splits are drawn.

    Raises:
        ConfigError: with `key`, the reader's in the config.
    """
    if isinstance(reader, MultiTaskDatasetReader):
        raise ConfigError(
            f"'{key}' is a multitask reader for the tasks {', '.join(reader.readers)}, but random splits are drawn "
            "from the data of one task. Give --splits official, or use the reader of one task."
        )


def by_task(key: str, reader: DatasetReader, paths: Mapping[str, Any]) -> List[Tuple[DatasetReader, Dict[str, Any]]]:
    """The reader of each task with its data paths by part; of any other reader, the reader itself with its paths.

    Raises:
        ConfigError: where a multitask reader, under `key` in the config, does not have one path for each task.
    """
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
    """The first batch; of a multitask loader, the batches until every task has been in one, because a multitask model
    reports the metrics of those tasks alone that it has seen.

    Raises:
        ConfigError: where there is none.
    """
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ConfigError(
            "'data_loader' makes no batch of the training set, so no run could learn. Set a smaller 'batch_size', or "
            "remove 'drop_last'."
        )
    unseen = set(loader.readers) if isinstance(loader, MultiTaskDataLoader) else set()
    for batch in itertools.chain([first], batches):
        yield batch
        unseen -= set(batch["task"] if unseen else ())
        if not unseen:
            return
