"""Checks the config of a candidate, and makes the config of one run from it."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterator, Mapping, Optional, Tuple

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.settings.jsonnet import apply_overrides
from fiesta_allennlp.core.settings.metrics import Metric

Config = Dict[str, Any]

REFUSED_READERS = {
    "resplit": "is a resplit reader, but the selection draws the splits itself. Use its 'reader', its 'paths' as "
    "'train_data_path' and so on, and --group-by.",
    "multitask": "reads several tasks. Let a program train on all of them, and report the mean.",
}

READER_KEYS = ("dataset_reader", "validation_dataset_reader")

REQUIRED_KEYS = ("dataset_reader", "model", "data_loader", "trainer")

SEED_KEYS = ("random_seed", "numpy_seed", "pytorch_seed")


def readers_of(config: Config) -> Dict[str, Any]:
    """Return the readers of the config, by key. AllenNLP ignores a `validation_dataset_reader` that is null."""
    return {key: config[key] for key in READER_KEYS if config.get(key) is not None}


def official_paths(config: Config) -> Dict[str, Any]:
    """Return the data paths that an AllenNLP config names, by part, with absolute files."""
    return absolute_paths({set_name: config.get(f"{set_name}_data_path") for set_name in SET_NAMES})


def absolute_paths(data: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the paths of the sets that are not None, with absolute files."""
    return {name: _absolute(data[name]) for name in SET_NAMES if data.get(name) is not None}


def with_absolute_paths(config: Config) -> Config:
    """Return an AllenNLP config with the files of its official parts named so that they are found from any current
    directory."""
    result = json.loads(json.dumps(config))
    result.update({f"{set_name}_data_path": path for set_name, path in official_paths(config).items()})
    return result


def _absolute(value: Any) -> Any:
    """Return a data path, or an object or list of them, with absolute files."""
    if isinstance(value, dict):
        return {key: _absolute(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_absolute(child) for child in value]
    return str(Path(value).resolve()) if isinstance(value, str) and os.path.exists(value) else value


def evaluation_config(
    config: Config,
    request: Request,
    *,
    group_by: Optional[str] = None,
    vectors: Optional[Mapping[str, str]] = None,
    free_device: bool = False,
    division: Division = OFFICIAL_RATIOS_DIVISION,
) -> Config:
    """Return the complete config of one run: plain `allennlp train` on it repeats the run.

    The seeds are written out. The readers are wrapped to draw the split, except for official splits, and the test part
    is evaluated after training if it is scored. `group_by` wins over the config's own reader. `vectors` replace the
    word-vector files that the config names. `free_device` drops `cuda_device`, because the executor gives each worker a
    device.
    """
    result = with_absolute_paths(config)
    if not division.is_official:
        _wrap_readers(result, request.split_seed, group_by, division)
    result["evaluate_on_test"] = division.scored == "test"
    result.update({key: getattr(request, key) for key in SEED_KEYS})
    if result["trainer"].get("type", "gradient_descent") == "gradient_descent":
        # An interrupted run starts over, so the states of single epochs are never read.
        result["trainer"].setdefault("checkpointer", {"save_completed_epochs": False})
    if free_device:
        result["trainer"].pop("cuda_device", None)
    return apply_overrides(
        result, {path: (vectors or {}).get(file, file) for path, file in vector_files(result).items()}
    )


def _wrap_readers(config: Config, split_seed: int, group_by: Optional[str], division: Division) -> None:
    split_options: Config = {"paths": division.used_paths(official_paths(config)), "split_seed": split_seed}
    if group_by is not None:
        split_options["group_by"] = group_by
    if division.ratios:
        split_options["ratios"] = list(division.ratios)
    if "test" not in division.set_names:
        split_options["has_test"] = False
    readers = readers_of(config)
    config.update({key: {"type": "resplit", "reader": reader, **split_options} for key, reader in readers.items()})
    config.pop("test_data_path", None)
    config.update({f"{set_name}_data_path": set_name for set_name in division.set_names})


def vector_files(config: Config) -> Dict[str, str]:
    """Return every text file of word vectors that a config names, by the path of its key. Return none if the vocabulary
    does not come from the data alone: words outside of the pool would then need their vectors too."""
    vocabulary = config.get("vocabulary") or {}
    if vocabulary.get("type", "from_instances") != "from_instances" or vocabulary.get("min_pretrained_embeddings"):
        return {}
    named = {key: file for key, file in leaves_of(config["model"], "model") if key.endswith(".pretrained_file")}
    named.update(leaves_of(vocabulary.get("pretrained_files") or {}, "vocabulary.pretrained_files"))
    return {key: file for key, file in named.items() if isinstance(file, str) and not file.endswith((".h5", ".hdf5"))}


def leaves_of(value: Any, key: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield what a config holds below `key` that is neither an object nor a list, or is an empty one, by its path."""
    if isinstance(value, (dict, list)) and value:
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves_of(child, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def first_difference(old: Any, new: Any) -> Optional[str]:
    """Describe the first key whose values differ in two configs; return None if they are equal."""
    old_values, new_values = dict(leaves_of(old)), dict(leaves_of(new))
    for key in sorted(old_values.keys() | new_values.keys()):
        if key not in old_values or key not in new_values:
            return f"'{key}' was {'added' if key not in old_values else 'removed'}"
        if old_values[key] != new_values[key]:
            return f"'{key}' was {json.dumps(old_values[key])} and is now {json.dumps(new_values[key])}"
    return None


# What AllenNLP accepts although it would silently give a wrong score.

INSTANCE_SKIPPING_KEYS = ("batches_per_epoch", "instances_per_epoch", "drop_last")
"""Keys of data loaders that skip instances."""


def check_sets(paths: Mapping[str, Any], division: Division, data_key: str) -> None:
    """Refuse data paths that lack a set which runs on official splits need, or that leave the sizes of the sets of a
    random split open. `data_key` is the key of the config for a set."""
    missing_sets = [name for name in division.set_names if name not in paths and division.is_official]
    if missing_sets:
        hidden = ", --score validation if the test labels are hidden" * (missing_sets[0] == "test")
        key = data_key.format(missing_sets[0])
        raise ConfigError(f"--splits official needs '{key}', which is missing. Add it{hidden}, or use --splits shared.")
    if not division.is_official and not division.ratios and len(division.used_paths(paths)) < 2:
        keys = " or ".join(f"'{data_key.format(set_name)}'" for set_name in division.set_names[1:])
        ratios = "0.64,0.16,0.2" if len(division.set_names) == len(SET_NAMES) else "0.8,0.2"
        raise ConfigError(f"without {keys}, set the sizes of random splits, for example with --split-ratios {ratios}.")


class AllenNLPConfig:
    """A complete config for `allennlp train`, and what can be wrong with it."""

    config: Config
    data_key: ClassVar[str]

    def _check_keys(self) -> None:
        """Refuse an AllenNLP config that lacks a key, or has one that the selection sets."""
        for key in (*REQUIRED_KEYS, "train_data_path"):
            if self.config.get(key) is None:
                program = ' For a program, set "type": "program".' if "command" in self.config else ""
                raise ConfigError(f"'{key}' is missing. A candidate is a complete `allennlp train` config.{program}")
        for key in (*REQUIRED_KEYS, "validation_dataset_reader"):
            if not isinstance(self.config.get(key) or {}, dict):
                found = json.dumps(self.config[key])
                raise ConfigError(f"'{key}' must be an object such as {{\"type\": ...}} but is {found}.")
        for key, reader in readers_of(self.config).items():
            if reader.get("type") in REFUSED_READERS:
                raise ConfigError(f"'{key}' {REFUSED_READERS[reader['type']]}")
        if self.config.get("distributed") is not None:
            # AllenNLP 2.10 evaluates the test set in the first process alone, where metrics wait for all.
            raise ConfigError(
                "'distributed' is not supported, because AllenNLP cannot score the test set of a distributed run. "
                "Remove it, and use --cuda-devices to train several models in parallel."
            )

    def check(self, settings: Settings) -> None:
        self._check_keys()
        division = settings.division
        if not division.has_validation:
            raise ConfigError("AllenNLP configs need a validation set: use three numbers in --split-ratios.")
        check_sets(self.data_paths, division, self.data_key)
        self._check_test_loader()
        self._check_metric(settings.scored_by)

    def notes(self, division: Division) -> Iterator[str]:
        is_evaluated = division.scored == "test"
        keys = [key for key in SEED_KEYS if self.config.get(key) is not None]
        if bool(self.config.get("evaluate_on_test", is_evaluated)) != is_evaluated:
            keys.append("evaluate_on_test")
        for key in keys:
            yield f"each run sets {key} itself, so {json.dumps(self.config[key])} in the config is not used."

    def _check_test_loader(self) -> None:
        """Refuse a data loader that would skip some of the test set: AllenNLP scores it with the loader for
        validation, or else with the loader for training."""
        loader = "data_loader" if self.config.get("validation_data_loader") is None else "validation_data_loader"
        for key, value in leaves_of(self.config[loader], loader):
            if key.rpartition(".")[2] in INSTANCE_SKIPPING_KEYS and value is not None and value is not False:
                raise ConfigError(
                    f"'{key}' is {json.dumps(value)}, so scores would cover only part of the test set. Remove it, or "
                    "add a 'validation_data_loader' without it."
                )

    def _check_metric(self, metric: Metric) -> None:
        """Refuse a metric that the trainer optimises in the opposite direction: the worst candidate would win."""
        tracked_metric = self.config.get("trainer", {}).get("validation_metric")
        opposite = ("+" if metric.minimise else "-") + metric.name
        if opposite in (tracked_metric if isinstance(tracked_metric, list) else [tracked_metric]):
            raise ConfigError(
                f"'trainer.validation_metric' is {json.dumps(tracked_metric)}, which contradicts --metric="
                f"{metric.option_text}. Use --metric={opposite}, or correct 'trainer.validation_metric'."
            )

    @property
    def data_paths(self) -> Dict[str, Any]:
        return official_paths(self.config)

    def absolute(self) -> Config:
        return with_absolute_paths(self.config)
