"""Refuses what AllenNLP accepts in a config although it would silently give a wrong score."""

import json
from itertools import combinations, product
from typing import Any, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, PARTS, Division
from fiesta_allennlp.trainings.config import (
    Config,
    is_resplit,
    leaves_of,
    official_paths,
    own_group_by,
    part_key,
    readers_of,
    unwrapped,
)
from fiesta_allennlp.trainings.data_files import DataMark, files_behind
from fiesta_allennlp.trainings.programs.config import check_program, division_for, is_program

SHORTENING = ("batches_per_epoch", "instances_per_epoch", "drop_last")
"""Keys of data loaders and what is in them that leave instances out of an epoch."""

REPLACED = {"type", "reader", "split_seed", "group_by"}
"""Keys of a resplit reader of which runs have their own, or which are checked apart."""

REMEDIES = {
    "paths": "All readers of a candidate read the same files: give this one those of 'dataset_reader'",
    "ratios": "Pass the numbers of the config to --split-ratios",
    "has_test": "Use --score validation",
    "split_reader": "Splits are drawn over what the validation reader reads: use its inner 'reader' here",
}
"""Remedies for a key that disagrees with the options or the other reader."""


def check_config(
    config: Config, *, metric: Metric, group_by: Optional[str] = None, division: Division = AT_OFFICIAL_RATIOS
) -> None:
    """Refuse what can be known to be wrong with a candidate without building it."""
    division = division_for(config, division)
    if not division.has_validation and not is_program(config):
        raise ConfigError(
            "--split-ratios of two numbers leaves no validation set, but an AllenNLP config needs one. Give three: "
            "TRAIN,VALIDATION,TEST, for example 0.64,0.16,0.2."
        )
    if official_paths(config):
        check_sets(config, group_by=group_by, division=division)
    if is_program(config):
        check_program(config, group_by=group_by, division=division)
    else:
        check_test_loader(config)
        check_direction(config, metric)


def check_sets(config: Config, *, group_by: Optional[str], division: Division) -> None:
    """Refuse data that do not give every run its sets."""
    if division.is_official:
        check_official(config, division)
    else:
        if not is_program(config):
            check_resplit(config, division)
        check_drawn(config, division)
        check_group_by(config, group_by)


def check_official(config: Config, division: Division) -> None:
    """Refuse a config that does not name every set that a run on official splits needs."""
    for key, reader in readers_of(config).items():
        if is_resplit(reader):
            raise ConfigError(
                f"'{key}' is a resplit reader, which draws a random split. For --splits official write its 'reader' as "
                f"'{key}' and its 'paths' as 'train_data_path' and so on; or use --splits shared."
            )
    paths = official_paths(config)
    for part in division.parts:
        if part not in paths:
            hidden = "; or, if the labels of the test set are hidden, use --score validation" * (part == "test")
            raise ConfigError(
                f"'{part_key(config, part)}' is missing, but --splits official takes every set from the config. "
                f"Name the file{hidden}; or use --splits shared for random splits."
            )


def check_drawn(config: Config, division: Division) -> None:
    """Refuse a config that does not tell how large the sets of a random split are."""
    if division.ratios or len(division.used(official_paths(config))) > 1:
        return
    if "test" not in division.parts:
        raise ConfigError(
            f"'{part_key(config, 'validation')}' is missing, and with --score validation the test set stays out of "
            "random splits, so their sizes are unknown. Name the file, or set the sizes, for example "
            "--split-ratios 0.8,0.2 for training and validation."
        )
    raise ConfigError(
        f"the config names neither '{part_key(config, 'validation')}' nor '{part_key(config, 'test')}', so the sizes "
        "of random splits are not known. Name one of them; or, where the data come as one file, set the sizes: "
        f"--split-ratios {','.join(division.parts).upper()}, for example "
        f"{'0.64,0.16,0.2' if division.has_validation else '0.8,0.2'}."
    )


def check_resplit(config: Config, division: Division) -> None:
    """Refuse a resplit reader of the candidate's own that contradicts what its runs would do."""
    readers = readers_of(config)
    made = {
        "paths": official_paths(config),
        "ratios": list(division.ratios) or None,
        "has_test": "test" in division.parts,
        "split_reader": unwrapped(readers.get("validation_dataset_reader")),
    }
    for key, reader in readers.items():
        if is_resplit(reader):
            _check_inner(key, reader)
            given = {name: value for name, value in reader.items() if name not in REPLACED}
            if given.get("paths"):
                given["paths"] = official_paths({**config, "dataset_reader": reader})
            _check_agrees(key, given, made)
    if is_resplit(config["dataset_reader"]):
        _check_data_paths(config)


def _check_inner(key: str, reader: Mapping[str, Any]) -> None:
    inner = reader.get("reader")
    if not isinstance(inner, dict) or is_resplit(inner):
        raise ConfigError(f"'{key}.reader' must be the reader of the data files but is {json.dumps(inner)}.")


def _check_agrees(key: str, given: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """Refuse a key that a run does not take over, unless it says what the run has."""
    for name, value in given.items():
        if name not in made:
            raise ConfigError(
                f"'{key}.{name}' would have no effect: of the keys of a resplit reader, a selection uses only "
                f"{', '.join(sorted({*REPLACED, *made}))}. Move it into '{key}.reader', or remove it."
            )
        if value not in (None, {}) and value != made[name]:
            raise ConfigError(
                f"'{key}.{name}' is {json.dumps(value)}, but this selection would use {json.dumps(made[name])}. "
                f"{REMEDIES[name]}, or remove the key."
            )


def _check_data_paths(config: Config) -> None:
    for part in PARTS:
        path = config.get(f"{part}_data_path")
        if path not in (None, part):
            raise ConfigError(
                f"'{part}_data_path' is {json.dumps(path)} next to a resplit reader, which has its files in "
                f"'dataset_reader.paths'. Write '{part}', or leave it out."
            )


def check_group_by(config: Config, group_by: Optional[str]) -> None:
    """Refuse a resplit reader that keeps other instances together than the option or the other reader."""
    own = own_group_by(config)
    said = {**({} if group_by is None else {"--group-by": group_by}), **own}
    for key, value in own.items():
        if not isinstance(value, str) or value == "none":
            raise ConfigError(
                f"'{key}' must be a metadata key but is {json.dumps(value)}. Leave it out, and use --group-by none "
                "for splits without groups."
            )
        for other, another in said.items():
            if another != value:
                raise ConfigError(
                    f"'{key}' is '{value}' but {other} is '{another}'. All splits of a selection keep the same "
                    "instances together: make them equal, or leave one of them out."
                )


def check_parts(config: Config, division: Division, mark: DataMark) -> None:
    """Refuse data that are given as two parts: a run would be scored on what it was trained on, or chose its epoch by.

    Two parts are the same if they share a file, or if the contents of one are all among those of the other.
    """
    paths, digests = official_paths(config), {file.path: file.digest for file in mark.files}
    for one, other in combinations([part for part in division.parts if part in paths], 2):
        first, second = ({file.resolve(): digests[str(file)] for file in files_behind(paths[p])} for p in (one, other))
        contents, others = set(first.values()), set(second.values())
        if paths[one] == paths[other] or first.keys() & second.keys():
            shared = sorted(map(str, first.keys() & second.keys())) or [str(paths[one])]
            raise ConfigError(_twice(config, (one, other), f"are the same data, {shared[0]}", division=division))
        if first and second and (contents <= others or others <= contents):
            pair = next((mine, its) for mine, its in product(first, second) if first[mine] == second[its])
            raise ConfigError(
                _twice(config, (one, other), f"have equal contents, {pair[0]} and {pair[1]}", division=division)
            )


def _twice(config: Config, pair: Tuple[str, str], what: str, *, division: Division) -> str:
    keys = [part_key(config, part) for part in pair]
    which = f"'{keys[1]}'" if "train" in pair else "one of them"
    if division.is_official:
        without = "" if "train" in pair else ", or leave 'test_data_path' out and use --score validation"
        return (
            f"'{keys[0]}' and '{keys[1]}' {what}. Every run would be scored on what it was fitted to. Give another "
            f"file{without}."
        )
    return (
        f"'{keys[0]}' and '{keys[1]}' {what}. The pool would contain them twice, and a random split would train on "
        f"what it tests. Leave {which} out: that set is then drawn from the pool, as large as the other one; or give "
        "another file."
    )


def check_test_loader(config: Config) -> None:
    """Refuse a data loader that would leave out some of the test part: AllenNLP scores it with the loader for
    validation, or else with that for training."""
    loader = "data_loader" if config.get("validation_data_loader") is None else "validation_data_loader"
    for key, value in leaves_of(config[loader], loader):
        if key.rpartition(".")[2] in SHORTENING and value is not None and value is not False:
            remedy = (
                "Give a 'validation_data_loader' without it, such as {\"batch_size\": 64}, which is for both."
                if loader == "data_loader"
                else "Remove it."
            )
            raise ConfigError(
                f"'{key}' is {json.dumps(value)}, and '{loader}' reads the validation and test sets, so scores "
                f"would cover only part of the test set. {remedy}"
            )


def check_direction(config: Config, metric: Metric) -> None:
    """Refuse a metric that the trainer optimises in the opposite direction: the worst candidate would win."""
    wanted = config.get("trainer", {}).get("validation_metric")
    opposite = ("+" if metric.minimise else "-") + metric.name
    if opposite in (wanted if isinstance(wanted, list) else [wanted]):
        better, end = ("higher", "lowest") if metric.minimise else ("lower", "highest")
        raise ConfigError(
            f"'trainer.validation_metric' is {json.dumps(wanted)}, so a {better} '{metric.name}' is better there, "
            f"but --metric={metric.typed} selects the candidate with the {end} mean. Write --metric={opposite}, or "
            "correct 'trainer.validation_metric'."
        )
