"""The files behind the data paths of a config, whether they have changed, and whether trained weights that the config
names have seen them."""

import glob
import hashlib
import json
import logging
import os
import re
import tarfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_LINE_CHARACTERS, DataChangedError, join_some
from fiesta_allennlp.core.files import CHUNK_BYTES, file_digest, file_stamp
from fiesta_allennlp.trainings.config import Config, absolute_paths, leaves_of, readers_of

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
    local_file = _find_local_file(file.path)
    if local_file is None:
        return file
    stamp = file_stamp(local_file)
    if stamp != file.stamp and (stamp[0] != file.stamp[0] or file_digest(local_file) != file.digest):
        old_size, new_size = file.stamp[0], stamp[0]
        change = f" ({old_size} bytes then, {new_size} now)" if old_size != new_size else ""
        raise DataChangedError(f"{file.path} has changed since the selection began{change}")
    return replace(file, stamp=stamp)


WEIGHT_KEYS = ("archive_file", "weights_file_path", "model_name")
"""Keys of AllenNLP for trained weights: of `from_archive` and `_pretrained`, of the initializer `pretrained`, and of
pretrained transformers."""

FITTED_SETS = ("train", "validation")
"""The sets that weights depend on: those of the training and of the choice of its epoch."""

MAX_CONFIG_BYTES = 2**20


@dataclass(frozen=True)
class StartingWeights:
    """Weights that a run starts from. `data` are the data files that they were trained on, none if that is unknown, and
    `pool_data` are those of them that the selection draws its sets from."""

    source: str
    data: Sequence[str] = ()
    pool_data: Sequence[str] = ()

    @property
    def description(self) -> str:
        if self.pool_data:
            return f"{self.source}, trained on {join_some(self.pool_data)}, which this selection splits"
        return f"{self.source}, trained on {join_some(self.data)}" if self.data else self.source


def find_starting_weights(config: Config, snapshot: DataSnapshot) -> Tuple[StartingWeights, ...]:
    """Return the weights that a config names. `snapshot` identifies the data of the selection."""
    sources = {
        value: None
        for key, value in leaves_of(config.get("model"))
        if key.rpartition(".")[2] in WEIGHT_KEYS and isinstance(value, str)
    }
    pool_digests = {file.digest for file in snapshot.files}
    weights = []
    for source in sources:
        files = [file for path in _fitted_paths(_config_beside(Path(source))).values() for file in files_behind(path)]
        names = tuple(dict.fromkeys(map(str, files)))
        pool_data = tuple(name for name in names if file_digest(Path(name)) in pool_digests)
        weights.append(StartingWeights(source, names, pool_data))
    return tuple(weights)


def seen_data_reasons(weights_by_candidate: Mapping[str, Sequence[StartingWeights]]) -> Iterator[str]:
    """Yield which weights were trained on data of which a random split may make its test set."""
    for name, weights in weights_by_candidate.items():
        for start in weights:
            if start.pool_data:
                yield (
                    f"candidate '{name}' starts from {start.description}, so its test sets would hold records that it "
                    "was trained on. Use --splits official or other weights"
                )


def describe_starting_weights(weights_by_candidate: Mapping[str, Sequence[StartingWeights]]) -> str:
    """Say which candidates start from which weights, without a full stop."""
    names_by_weights: Dict[str, List[str]] = {}
    for name, weights in weights_by_candidate.items():
        for start in weights:
            names_by_weights.setdefault(start.description, []).append(name)
    texts = [
        f"{join_some(names)} start{'s' * (len(names) == 1)} from {text}" for text, names in names_by_weights.items()
    ]
    return join_some(texts, "; ", max_characters=MAX_LINE_CHARACTERS)


def _config_beside(source: Path) -> Config:
    """Return the config in an archive, in a directory, or in the directory of a file of weights; empty if there is
    none that can be read."""
    with suppress(OSError, ValueError, tarfile.TarError, RecursionError, EOFError):
        if source.is_file() and tarfile.is_tarfile(source):
            with tarfile.open(source) as archive:
                member = archive.extractfile("config.json") if "config.json" in archive.getnames() else None
                content = b"{}" if member is None else member.read(MAX_CONFIG_BYTES)
        else:
            directory = source if source.is_dir() else source.parent
            content = (directory / "config.json").read_bytes()[:MAX_CONFIG_BYTES]
        config = json.loads(content)
        return config if isinstance(config, dict) else {}
    return {}


def _fitted_paths(config: Config) -> Dict[str, Any]:
    """Return the data paths that a training depended on. A run on random splits depended on all of its files."""
    readers = [reader for reader in readers_of(config).values() if isinstance(reader, dict)]
    split_paths = [reader.get("paths") for reader in readers if reader.get("type") == "resplit"]
    if split_paths and isinstance(split_paths[0], dict):
        return absolute_paths(split_paths[0])
    return absolute_paths({set_name: config.get(f"{set_name}_data_path") for set_name in FITTED_SETS})
