"""The files behind the data paths of a config: which there are, and whether two paths name the same data."""

import glob
import hashlib
import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.errors import DataError, describe

CHUNK = 2**20


def files_behind(data_path: Any) -> List[Path]:
    """The files that a data path names, in a fixed order: the file itself, all files of a directory but hidden ones,
    those that a glob matches, all of these for a list or an object of paths. None for a URL."""
    if isinstance(data_path, Mapping):
        data_path = [data_path[key] for key in sorted(data_path)]
    if isinstance(data_path, (list, tuple)):
        return [file for path in data_path for file in files_behind(path)]
    if not isinstance(data_path, str):
        return []
    found = [data_path] if os.path.exists(data_path) else sorted(glob.glob(data_path))
    return [file for path in found for file in _files_in(Path(path))]


def _files_in(path: Path) -> List[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    files = [Path(above) / name for above, _, names in os.walk(path) for name in names]
    return sorted(file for file in files if file.is_file() and not _is_hidden(file.relative_to(path)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def digest_of(file: Path) -> str:
    """The SHA-256 of a file's content.

    # Raises

    `DataError` : where it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while chunk := content.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {describe(error)}. Mend that, or give another file.") from error
    return digest.hexdigest()


def shared_files(first: Sequence[Path], second: Sequence[Path]) -> Optional[Tuple[Path, Path]]:
    """A file of each that are one and the same, or equal in content where all of one side stand on the other, so that a
    licence beside both does not count. None where there are none."""
    by_place = {file.resolve(): file for file in first}
    for file in second:
        if file.resolve() in by_place:
            return by_place[file.resolve()], file
    pair = _first_of_all_inside(first, second)
    if pair is not None:
        return pair
    pair = _first_of_all_inside(second, first)
    return None if pair is None else (pair[1], pair[0])


def _first_of_all_inside(few: Sequence[Path], many: Sequence[Path]) -> Optional[Tuple[Path, Path]]:
    """The first of `few` with its equal in `many`, where each of `few` has one. Only files of equal size are read."""
    sizes = {file.stat().st_size for file in few}
    alike = [file for file in many if file.stat().st_size in sizes]
    if not few or not sizes <= {file.stat().st_size for file in alike}:
        return None
    by_digest = {digest_of(file): file for file in alike}
    digests = [digest_of(file) for file in few]
    return (few[0], by_digest[digests[0]]) if all(digest in by_digest for digest in digests) else None
