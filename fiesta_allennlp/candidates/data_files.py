"""The files behind the data paths of a config, and whether they have changed."""

import glob
import hashlib
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from fiesta_allennlp.candidates.pool import SET_NAMES
from fiesta_allennlp.core.errors import DataChangedError
from fiesta_allennlp.core.files import file_digest, file_stamp


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
    matches = ([path] if os.path.exists(path) else sorted(glob.glob(path)) for path in _path_strings(data_path))
    return [file for paths in matches for path in paths for file in _files_in(Path(path))]


def _path_strings(data_path: Any) -> List[str]:
    if isinstance(data_path, Mapping):
        data_path = [data_path[key] for key in sorted(data_path)]
    if isinstance(data_path, (list, tuple)):
        return [text for path in data_path for text in _path_strings(path)]
    return [data_path] if isinstance(data_path, str) else []


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
    return replace(snapshot, files=tuple(map(_check_same_content, snapshot.files)))


def _check_same_content(file: FileSnapshot) -> FileSnapshot:
    path = Path(file.path)
    stamp = file_stamp(path)
    if stamp != file.stamp and (stamp[0] != file.stamp[0] or file_digest(path) != file.digest):
        old_size, new_size = file.stamp[0], stamp[0]
        change = f" ({old_size} bytes then, {new_size} now)" if old_size != new_size else ""
        raise DataChangedError(f"{file.path} has changed since the selection began{change}")
    return replace(file, stamp=stamp)
