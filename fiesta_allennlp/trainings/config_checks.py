"""Refuses what AllenNLP accepts in a config although it would silently give a wrong score."""

import json
from itertools import combinations
from typing import Any, Callable, Mapping, Optional

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.splits import SET_NAMES, Division
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.trainings.config import Config, leaves_of
from fiesta_allennlp.trainings.data_files import DataSnapshot, files_behind

INSTANCE_SKIPPING_KEYS = ("batches_per_epoch", "instances_per_epoch", "drop_last")
"""Keys of data loaders that skip instances."""


def check_sets(paths: Mapping[str, Any], division: Division, key_of: Callable[[str], str]) -> None:
    """Refuse data paths that lack a set which runs on official splits need, or that leave the sizes of the sets of a
    random split open. `key_of` returns the key of the config for a set."""
    missing_sets = [name for name in division.set_names if name not in paths and division.is_official]
    if missing_sets:
        hidden = ", --score validation if the test labels are hidden" * (missing_sets[0] == "test")
        key = key_of(missing_sets[0])
        raise ConfigError(f"--splits official needs '{key}', which is missing. Add it{hidden}, or use --splits shared.")
    if not division.is_official and not division.ratios and len(division.used_paths(paths)) < 2:
        keys = " or ".join(f"'{key_of(set_name)}'" for set_name in division.set_names[1:])
        ratios = "0.64,0.16,0.2" if len(division.set_names) == len(SET_NAMES) else "0.8,0.2"
        raise ConfigError(f"without {keys}, set the sizes of random splits, for example with --split-ratios {ratios}.")


def check_group_by(config: Config, group_by: Optional[str]) -> None:
    """Refuse a group key of a program's own that is not the key of the option."""
    key = config["data"].get("group_by")
    if key is not None and (not isinstance(key, str) or key == "none"):
        raise ConfigError(f"'data.group_by' must be a key but is {json.dumps(key)}. For no groups: --group-by none.")
    if key is not None and group_by not in (None, key):
        raise ConfigError(f"'data.group_by' is '{key}' but --group-by is '{group_by}'. Remove one.")


def check_distinct_sets(
    paths: Mapping[str, Any], division: Division, snapshot: DataSnapshot, key_of: Callable[[str], str]
) -> None:
    """Refuse the same data in two sets: runs would be scored on data that they were trained on or chose their epoch by.

    Two sets are the same if they share a file, or if the contents of one are all among the contents of the other.
    """
    digests = {file.path: file.digest for file in snapshot.files}
    for first_set, second_set in combinations([set_name for set_name in division.set_names if set_name in paths], 2):
        file_lists = (files_behind(paths[set_name]) for set_name in (first_set, second_set))
        first_files, second_files = ({file.resolve(): digests[str(file)] for file in files} for files in file_lists)
        contents, others = set(first_files.values()), set(second_files.values())
        is_copy = bool(contents and others) and (contents <= others or others <= contents)
        if paths[first_set] == paths[second_set] or first_files.keys() & second_files.keys() or is_copy:
            keys = [key_of(set_name) for set_name in (first_set, second_set)]
            remedy = f"; or remove '{keys[1]}', and random splits draw that set from the rest"
            if division.is_official:
                remedy = "; or remove 'test_data_path' and use --score validation" * (first_set != "train")
            raise ConfigError(
                f"'{keys[0]}' ({paths[first_set]}) and '{keys[1]}' ({paths[second_set]}) contain the same data. Use a "
                f"different file{remedy}."
            )


def check_test_loader(config: Config) -> None:
    """Refuse a data loader that would skip some of the test set: AllenNLP scores it with the loader for validation, or
    else with the loader for training."""
    loader = "data_loader" if config.get("validation_data_loader") is None else "validation_data_loader"
    for key, value in leaves_of(config[loader], loader):
        if key.rpartition(".")[2] in INSTANCE_SKIPPING_KEYS and value is not None and value is not False:
            raise ConfigError(
                f"'{key}' is {json.dumps(value)}, so scores would cover only part of the test set. Remove it, or add a "
                "'validation_data_loader' without it."
            )


def check_direction(config: Config, metric: Metric) -> None:
    """Refuse a metric that the trainer optimises in the opposite direction: the worst candidate would win."""
    tracked_metric = config.get("trainer", {}).get("validation_metric")
    opposite = ("+" if metric.minimise else "-") + metric.name
    if opposite in (tracked_metric if isinstance(tracked_metric, list) else [tracked_metric]):
        raise ConfigError(
            f"'trainer.validation_metric' is {json.dumps(tracked_metric)}, which contradicts --metric="
            f"{metric.option_text}. Use --metric={opposite}, or correct 'trainer.validation_metric'."
        )
