"""Configs of candidates: the data files behind their paths, and whether these have changed; and of AllenNLP configs the
word vectors, the starting weights, and the config of one run."""

import glob
import hashlib
import json
import os
import tarfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division
from fiesta_allennlp.core.errors import DataChangedError
from fiesta_allennlp.core.files import apply_overrides, file_digest, file_stamp
from fiesta_allennlp.core.records import Request

Config = Dict[str, Any]


def absolute_paths(data: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the paths of the sets that are not None, with absolute files."""
    return {name: _absolute(data[name]) for name in SET_NAMES if data.get(name) is not None}


def _absolute(value: Any) -> Any:
    """Return a data path, or an object or list of them, with absolute files."""
    if isinstance(value, dict):
        return {key: _absolute(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_absolute(child) for child in value]
    return str(Path(value).resolve()) if isinstance(value, str) and os.path.exists(value) else value


def files_behind(data_path: Any) -> List[Path]:
    """Return the files that a data path names, in a fixed order: a file, all files of a directory except hidden ones,
    the matches of a glob, or all of these for a list or an object of paths; none for anything else, such as a URL."""
    if isinstance(data_path, Mapping):
        data_path = [data_path[key] for key in sorted(data_path)]
    if isinstance(data_path, (list, tuple)):
        return [file for path in data_path for file in files_behind(path)]
    if not isinstance(data_path, str):
        return []
    paths = [data_path] if os.path.exists(data_path) else sorted(glob.glob(data_path))
    return [file for path in paths for file in _files_in(Path(path))]


def _files_in(path: Path) -> List[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    files = [Path(above) / name for above, _, names in os.walk(path) for name in names]
    hidden = {file for file in files if any(name.startswith(".") for name in file.relative_to(path).parts)}
    return sorted(file for file in files if file.is_file() and file not in hidden)


@dataclass(frozen=True)
class FileSnapshot:
    """Identifies a file: `stamp` is its size in bytes and the nanoseconds of the last changes of content and file,
    `digest` the SHA-256 of the content, which counts if the stamp differs."""

    path: str
    stamp: Tuple[int, int, int]
    digest: str


@dataclass(frozen=True)
class DataSnapshot:
    """Identifies the data of a candidate. The fingerprint stays the same if the files are moved."""

    data_paths: Tuple[Any, ...] = ()
    files: Tuple[FileSnapshot, ...] = ()
    fingerprint: str = ""


def take_snapshot(paths: Mapping[str, Any]) -> DataSnapshot:
    """Mark the data paths, by set, as they are now. Of a path that names no file, such as a URL, the name counts."""
    fingerprint = hashlib.sha256()
    snapshots: List[FileSnapshot] = []
    for set_name, path in sorted(paths.items()):
        fingerprint.update(set_name.encode("utf-8"))
        files = files_behind(path)
        for file in files:
            stamp = file_stamp(file)  # first, so that no change is missed
            snapshots.append(FileSnapshot(str(file), stamp, file_digest(file)))
            fingerprint.update(snapshots[-1].digest.encode("ascii"))
        if not files:
            fingerprint.update(repr(path).encode("utf-8"))
    return DataSnapshot(tuple(paths.values()), tuple(snapshots), fingerprint.hexdigest())


@contextmanager
def checking_unchanged(snapshot: DataSnapshot) -> Iterator[None]:
    """Check the data before the work and after it, even if the work fails: it may have read them half written.

    Raise a `DataChangedError` for the first file that has changed or is new. Raise a `FileNotFoundError` if a file is
    missing before the work; it may return later. A file that is missing after the work is ignored.
    """
    local_mark = _check_files(snapshot)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            _check_files(local_mark)


def _check_files(snapshot: DataSnapshot) -> DataSnapshot:
    """Return the mark with the stamps of this machine. Raise the errors of `checking_unchanged`."""
    known_paths = {file.path for file in snapshot.files}
    new_files = sorted({str(file) for file in files_behind(list(snapshot.data_paths))} - known_paths)
    if new_files:
        raise DataChangedError(f"{new_files[0]} is a new data file that did not exist when the selection began")
    files: List[FileSnapshot] = []
    for file in snapshot.files:
        stamp = file_stamp(Path(file.path))
        old_size, new_size = file.stamp[0], stamp[0]
        if stamp != file.stamp and (new_size != old_size or file_digest(Path(file.path)) != file.digest):
            change = f" ({old_size} bytes then, {new_size} now)" if old_size != new_size else ""
            raise DataChangedError(f"{file.path} has changed since the selection began{change}")
        files.append(replace(file, stamp=stamp))
    return replace(snapshot, files=tuple(files))


# AllenNLP configs.

READER_KEYS = ("dataset_reader", "validation_dataset_reader")

SEED_KEYS = ("random_seed", "numpy_seed", "pytorch_seed")


def readers_of(config: Config) -> Dict[str, Any]:
    """Return the readers of the config, by key. AllenNLP ignores a `validation_dataset_reader` that is null."""
    return {key: config[key] for key in READER_KEYS if config.get(key) is not None}


def official_paths(config: Config) -> Dict[str, Any]:
    """Return the data paths that an AllenNLP config names, by part, with absolute files."""
    return absolute_paths({set_name: config.get(f"{set_name}_data_path") for set_name in SET_NAMES})


def evaluation_config(
    config: Config,
    request: Request,
    *,
    group_by: Optional[str] = None,
    vectors: Optional[Mapping[str, str]] = None,
    free_device: bool = False,
    division: Division = OFFICIAL_RATIOS_DIVISION,
) -> Config:
    """Return the complete config of one run: plain `allennlp train` on it repeats the run, in any current directory.

    The seeds are written out. The readers are wrapped to draw the split, except for official splits, and the test part
    is evaluated after training if it is scored. `group_by` wins over the config's own reader. `vectors` replace the
    word-vector files that the config names. `free_device` drops `cuda_device`, because the executor gives each worker a
    device.
    """
    result = json.loads(json.dumps(config))
    result.update({f"{set_name}_data_path": path for set_name, path in official_paths(config).items()})
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


ARCHIVE_KEY = "archive_file"
"""The key of AllenNLP for a trained model to start from, of `from_archive` and `_pretrained`."""

FITTED_SETS = ("train", "validation")
"""The sets that weights depend on: those of the training and of the choice of its epoch."""


def seen_data_reasons(config: Mapping[str, Any], snapshot: DataSnapshot) -> Iterator[str]:
    """Yield which archives, that a config starts from, were trained on data of which a random split may make its test
    set. `snapshot` identifies these data."""
    pool_digests = {file.digest for file in snapshot.files}
    leaves = leaves_of(config.get("model"))
    for archive in {value: None for key, value in leaves if key.rpartition(".")[2] == ARCHIVE_KEY}:
        for file in files_behind(list(_fitted_paths(archive).values())):
            if file_digest(file) in pool_digests:
                yield (
                    f"{archive}, which it starts from, was trained on {file}, so its test sets would hold records that "
                    "it was trained on. Use --splits official or other weights"
                )


def _fitted_paths(archive: Any) -> Dict[str, Any]:
    """Return the data paths that the training of an archive depended on, which on random splits are all of its files;
    none if there is no archive that can be read."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, tarfile.TarError, RecursionError, EOFError):
        with tarfile.open(archive) as members:
            config = json.loads(members.extractfile("config.json").read())  # type: ignore[union-attr]
        reader = config.get("dataset_reader", {})
        if reader.get("type") == "resplit":
            return absolute_paths(reader["paths"])
        return absolute_paths({set_name: config.get(f"{set_name}_data_path") for set_name in FITTED_SETS})
    return {}
