"""Refuses what AllenNLP accepts in a config although it would silently give a wrong score."""

import json
from itertools import combinations
from typing import Any, Dict, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError, describe
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, PARTS, Division
from fiesta_allennlp.trainings.config import (
    Config,
    is_resplit,
    official_paths,
    own_group_by,
    part_key,
    readers_of,
    set_keys,
    unwrapped,
)
from fiesta_allennlp.trainings.data_files import files_behind, shared_files
from fiesta_allennlp.trainings.programs.config import check_program, division_for, is_program

SHORTENING = ("batches_per_epoch", "instances_per_epoch", "drop_last")
"""Keys of data loaders and what is in them that leave instances out of an epoch."""

RESPLIT_KEYS = {"type", "reader", "paths", "split_seed", "group_by", "ratios", "has_test", "split_reader"}


def check_config(
    config: Config, *, metric: Metric, group_by: Optional[str] = None, division: Division = AT_OFFICIAL_RATIOS
) -> None:
    """Refuse what can be known of a candidate without building it.

    Args:
        metric: what `--metric` says, or its default.
        group_by: what `--group-by` says.
        division: what `--splits`, `--split-ratios` and `--score` say.

    Raises:
        ConfigError: with the keys, the values and the remedy.
    """
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
    """Refuse data that do not give every run its sets. The parameters are those of `check_config`.

    Raises:
        ConfigError: with the keys and the options.
    """
    if division.is_official:
        check_official(config, division)
    else:
        check_readers(config)
        check_drawn(config, division)
        check_group_by(config, group_by)
    check_parts(config, division)


def check_official(config: Config, division: Division) -> None:
    """Refuse a config that does not name every set that a run on official splits needs.

    Raises:
        ConfigError: with the key and the other ways.
    """
    _check_objects(config)
    for key, reader in readers_of(config).items():
        if is_resplit(reader):
            raise ConfigError(
                f"'{key}' is a resplit reader, which draws a random split. For --splits official write its 'reader' as "
                f"'{key}' and its 'paths' as 'train_data_path' and so on; or give --splits shared."
            )
    paths = official_paths(config)
    for part in division.parts:
        if part not in paths:
            hidden = "; or give --score validation, where the labels of the test set are hidden" * (part == "test")
            raise ConfigError(
                f"'{part_key(config, part)}' is missing, but --splits official takes every set from the config. "
                f"Name the file{hidden}; or give --splits shared for random splits."
            )


def check_drawn(config: Config, division: Division) -> None:
    """Refuse a config that does not tell how large the sets of a random split are, or tells otherwise than the options.

    Raises:
        ConfigError: with the key and the option to give.
    """
    for key, reader in readers_of(config).items():
        if is_resplit(reader):
            _check_same_division(key, reader, division)
    if division.ratios or len(division.used(official_paths(config))) > 1:
        return
    if "test" not in division.parts:
        raise ConfigError(
            f"'{part_key(config, 'validation')}' is missing, and with --score validation the test set stays out of "
            "random splits, so that their sizes are not known. Name the file, or give the sizes, for example "
            "--split-ratios 0.8,0.2 for training and validation."
        )
    raise ConfigError(
        f"the config names neither '{part_key(config, 'validation')}' nor '{part_key(config, 'test')}', so the sizes "
        "of random splits are not known. Name one of them; or, where the data come as one file, give the sizes: "
        f"--split-ratios {','.join(division.parts).upper()}, for example "
        f"{'0.64,0.16,0.2' if division.has_validation else '0.8,0.2'}."
    )


def _check_same_division(key: str, reader: Mapping[str, Any], division: Division) -> None:
    ratios = reader.get("ratios")
    if ratios is not None and ratios != list(division.ratios):
        given = ",".join(f"{ratio:g}" for ratio in division.ratios) or "not given"
        raise ConfigError(
            f"'{key}.ratios' is {json.dumps(ratios)} but --split-ratios is {given}. Give the option these numbers, or "
            "take the key out."
        )
    if not reader.get("has_test", True) and "test" in division.parts:
        raise ConfigError(
            f"'{key}.has_test' is false, but --score is test. Give --score validation, or take the key out."
        )


def check_readers(config: Config) -> None:
    """Refuse what a candidate's own resplit reader says and its evaluations would not heed.

    Raises:
        ConfigError: with the key.
    """
    paths = official_paths(config)
    _check_objects(config)
    for key, reader in readers_of(config).items():
        if is_resplit(reader):
            _check_resplit(key, reader, {**config, "dataset_reader": reader}, paths)
    if is_resplit(config.get("dataset_reader")):
        _check_data_paths(config)
        _check_split_reader(config)


def _check_objects(config: Config) -> None:
    for key, reader in readers_of(config).items():
        if not isinstance(reader, dict):
            raise ConfigError(f"'{key}' must be an object such as {{\"type\": ...}} but is {json.dumps(reader)}.")


def _check_resplit(key: str, reader: Mapping[str, Any], alone: Config, paths: Dict[str, Any]) -> None:
    inner = reader.get("reader")
    if not isinstance(inner, dict) or is_resplit(inner):
        raise ConfigError(f"'{key}.reader' must be the reader of the data files but is {json.dumps(inner)}.")
    for other in sorted(set(reader) - RESPLIT_KEYS):
        raise ConfigError(
            f"'{key}.{other}' would have no effect: a selection takes {', '.join(sorted(RESPLIT_KEYS))} of a resplit "
            f"reader. Move it into '{key}.reader', or remove it."
        )
    if reader.get("paths") and official_paths(alone) != paths:
        raise ConfigError(
            f"'{key}.paths' is {json.dumps(reader['paths'])} but the parts of the candidate are {json.dumps(paths)}. "
            "All its readers must read the same files: make them equal, or leave the paths of the second reader out."
        )


def _check_data_paths(config: Config) -> None:
    for part in PARTS:
        path = config.get(f"{part}_data_path")
        if path not in (None, part):
            raise ConfigError(
                f"'{part}_data_path' is {json.dumps(path)} beside a resplit reader, which has its files in "
                f"'dataset_reader.paths'. Write '{part}', or leave it out."
            )


def _check_split_reader(config: Config) -> None:
    """Refuse another reader to draw the splits over than the one that they are drawn over."""
    given = config["dataset_reader"].get("split_reader")
    drawn_over = unwrapped(readers_of(config).get("validation_dataset_reader"))
    if given is not None and given != drawn_over:
        raise ConfigError(
            f"'dataset_reader.split_reader' is {json.dumps(given)} but 'validation_dataset_reader' reads the data "
            f"files by {json.dumps(drawn_over)}. Splits are drawn over what the validation reader reads: make them "
            "equal, or leave 'split_reader' out."
        )


def check_group_by(config: Config, group_by: Optional[str]) -> None:
    """Refuse a resplit reader that keeps other instances together than the option or the other reader.

    Raises:
        ConfigError: with both.
    """
    own = own_group_by(config)
    said = {**({} if group_by is None else {"--group-by": group_by}), **own}
    for key, value in own.items():
        if not isinstance(value, str) or value == "none":
            raise ConfigError(
                f"'{key}' must be a metadata key but is {json.dumps(value)}. Leave it out, and give --group-by none "
                "for splits that keep nothing whole."
            )
        for other, another in said.items():
            if another != value:
                raise ConfigError(
                    f"'{key}' is '{value}' but {other} is '{another}'. All splits of a selection keep the same "
                    "instances together: make them equal, or leave one of them out."
                )


def check_parts(config: Config, division: Division = AT_OFFICIAL_RATIOS) -> None:
    """Refuse data that are given as two parts: a run would be scored on what it was trained on, or chose its epoch by.

    Raises:
        ConfigError: with the two keys.
    """
    paths = official_paths(config)
    given = [part for part in division.parts if part in paths]
    files = {part: files_behind(paths[part]) for part in given}
    for pair in combinations(given, 2):
        one, other = pair
        try:
            shared = shared_files(files[one], files[other])
        except OSError as error:
            raise ConfigError(f"the data of '{part_key(config, one)}' cannot be read: {describe(error)}.") from error
        if shared is not None or paths[one] == paths[other]:
            named = (paths[one], paths[other]) if shared is None else shared
            raise ConfigError(_twice(config, pair, *map(str, named), division=division))


def _twice(config: Config, pair: Tuple[str, str], one: str, other: str, *, division: Division) -> str:
    keys = [part_key(config, part) for part in pair]
    what = f"are the same data, {one}" if one == other else f"have equal contents, {one} and {other}"
    which = f"'{keys[1]}'" if "train" in pair else "one of them"
    if division.is_official:
        without = "" if "train" in pair else ", or leave 'test_data_path' out and give --score validation"
        return (
            f"'{keys[0]}' and '{keys[1]}' {what}. Every run would be scored on what it was fitted to. Give another "
            f"file{without}."
        )
    return (
        f"'{keys[0]}' and '{keys[1]}' {what}. The pool would hold them twice, and a random split would train on what "
        f"it tests. Leave {which} out: that part is then drawn from the pool, as large as the other of validation and "
        "test; or give another file."
    )


def check_test_loader(config: Config) -> None:
    """Refuse a data loader that would leave some of the test part out: AllenNLP scores it by the loader for validation,
    or else by that for training.

    Raises:
        ConfigError: with the key.
    """
    loader = "data_loader" if config.get("validation_data_loader") is None else "validation_data_loader"
    for key, value in set_keys(config[loader], loader):
        if key.rpartition(".")[2] in SHORTENING:
            remedy = (
                "Give a 'validation_data_loader' without it, such as {\"batch_size\": 64}, which is for both."
                if loader == "data_loader"
                else "Remove it."
            )
            raise ConfigError(
                f"'{key}' is {json.dumps(value)}, and the validation and test parts are read by '{loader}': scores "
                f"would be of a fraction of the test part. {remedy}"
            )


def check_direction(config: Config, metric: Metric) -> None:
    """Refuse a metric of which the trainer wants the opposite: the worst candidate would win.

    Raises:
        ConfigError: with both.
    """
    wanted = config.get("trainer", {}).get("validation_metric")
    opposite = ("+" if metric.minimise else "-") + metric.name
    if opposite in (wanted if isinstance(wanted, list) else [wanted]):
        better, end = ("more", "lowest") if metric.minimise else ("less", "highest")
        raise ConfigError(
            f"'trainer.validation_metric' is {json.dumps(wanted)}, so {better} of '{metric.name}' is better, but "
            f"--metric={metric.typed} names the candidate with the {end} mean. Write --metric={opposite}, or correct "
            "'trainer.validation_metric'."
        )
