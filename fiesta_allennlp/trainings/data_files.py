"""The files behind the data paths of a config, and whether they have changed."""

import glob
import hashlib
import logging
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import DataChangedError
from fiesta_allennlp.core.files import CHUNK_BYTES, file_digest, file_stamp
from fiesta_allennlp.trainings.config import replace_paths

logger = logging.getLogger(__name__)

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def files_behind(data_path: Any) -> List[Path]:
    """Return the files that a data path names, in a fixed order: a file, all files of a directory except hidden ones,
    the matches of a glob, or all of these for a list or an object of paths; none for a URL or `archive!member`."""
    return [file for path in _path_strings(data_path) for file in _match_files(path)]


def _path_strings(data_path: Any) -> List[str]:
    if isinstance(data_path, Mapping):
        data_path = [data_path[key] for key in sorted(data_path)]
    if isinstance(data_path, (list, tuple)):
        return [text for path in data_path for text in _path_strings(path)]
    return [data_path] if isinstance(data_path, str) else []


def _match_files(path: str) -> List[Path]:
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path))
    return [file for match in paths for file in _files_in(Path(match))]


def _sources_of(path: str) -> List[str]:
    """Return the files that one path names; or else the URL; or the archive, a file or URL, of which it names a
    member."""
    files = [str(file) for file in _match_files(path)]
    if files:
        return files
    archive, _, member = path.partition("!")
    return [archive] if URL.match(archive) or (member and os.path.isfile(archive)) else []


def _find_local_file(source: str) -> Optional[Path]:
    """Find the file that a reader gets here for a path or a URL, after AllenNLP has fetched the newest version of a
    URL. Return None if it cannot be fetched, or the URL is that of a whole repository."""
    if not URL.match(source):
        return Path(source)
    try:
        from allennlp.common import file_utils

        file = Path(file_utils.cached_path(source))
    except Exception as error:  # of the libraries behind the schemes, and the reader may need none of them
        logger.warning("cannot fetch %s, so changes to its content go unnoticed: %s", source, error)
        return None
    return file if file.is_file() else None


def _files_in(path: Path) -> List[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    files = [Path(above) / name for above, _, names in os.walk(path) for name in names]
    hidden = {file for file in files if any(name.startswith(".") for name in file.relative_to(path).parts)}
    return sorted(file for file in files if file.is_file() and file not in hidden)


@dataclass(frozen=True)
class FileSnapshot:
    """Identifies a file or the content of a URL: `stamp` is its size in bytes and the nanoseconds of the last changes
    of content and file, `digest` the SHA-256 of the content, which counts if the stamp differs."""

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
    """Mark the data paths, by part, as they are now, reading each file once.

    URLs are fetched into AllenNLP's cache, as readers do; if a URL cannot be fetched, its name counts. Of an archive
    with a member, the whole content counts.
    """
    fingerprint = hashlib.sha256()
    snapshots: List[FileSnapshot] = []
    for set_name, path in sorted(paths.items()):
        fingerprint.update(set_name.encode("utf-8"))
        sources = [(text, source) for text in _path_strings(path) for source in _sources_of(text)]
        local_sources = [(text, source, file) for text, source in sources if (file := _find_local_file(source))]
        if not local_sources:
            fingerprint.update(repr(path).encode("utf-8"))
        for text, source, file in local_sources:
            if Path(source) == Path(str(path)):
                snapshots.append(_take_file_snapshot(source, file, fingerprint))
            else:
                snapshots.append(_take_file_snapshot(source, file))
                member = text[len(source) :] if text.startswith(f"{source}!") else ""
                fingerprint.update(f"{Path(source).name} {snapshots[-1].digest}{member}".encode())
    return DataSnapshot(tuple(paths.values()), tuple(snapshots), fingerprint.hexdigest())


def _take_file_snapshot(source: str, file: Path, *digests: Any) -> FileSnapshot:
    """Mark a file, and add its content to `digests` too. The stamp is taken first, so that no change is missed."""
    stamp, content_digest = file_stamp(file), hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            for digest in (content_digest, *digests):
                digest.update(chunk)
    return FileSnapshot(source, stamp, content_digest.hexdigest())


@contextmanager
def checking_unchanged(snapshot: DataSnapshot, new_paths: Mapping[str, str]) -> Iterator[None]:
    """Check the data before the work and after it, even if the work fails: it may have read them half written.

    Raise a `DataChangedError` for the first file that has changed or is new. Raise a `FileNotFoundError` if a file is
    missing before the work; it may return later. A file that is missing after the work is ignored.
    """
    local_mark = _check_files(snapshot, new_paths)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            _check_files(local_mark, {})


def _check_files(snapshot: DataSnapshot, new_paths: Mapping[str, str]) -> DataSnapshot:
    """Return the mark with the places and the stamps of this machine. Raise the errors of `checking_unchanged`."""
    data_paths = replace_paths(list(snapshot.data_paths), new_paths)
    files_by_path = {new_paths.get(file.path, file.path): file for file in snapshot.files}
    new_files = sorted({str(file) for file in files_behind(data_paths)} - set(files_by_path))
    if new_files:
        raise DataChangedError(f"{new_files[0]} is a new data file that did not exist when the selection began")
    files = tuple(_check_same_content(file, source) for source, file in files_by_path.items())
    return replace(snapshot, data_paths=tuple(data_paths), files=files)


def _check_same_content(file: FileSnapshot, source: str) -> FileSnapshot:
    local_file = _find_local_file(source)
    if local_file is None:
        return file
    stamp = file_stamp(local_file)
    if stamp != file.stamp and (stamp[0] != file.stamp[0] or file_digest(local_file) != file.digest):
        old_size, new_size = file.stamp[0], stamp[0]
        change = f" ({old_size} bytes then, {new_size} now)" if old_size != new_size else ""
        raise DataChangedError(f"{file.path} has changed since the selection began{change}")
    return FileSnapshot(source, stamp, file.digest)
