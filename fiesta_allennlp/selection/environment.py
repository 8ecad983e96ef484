"""The sessions of a selection: where the command worked, and the code that its runs executed."""

import hashlib
import os
import platform
import shlex
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.files import file_digest, file_stamp


def describe_environment(packages: Iterable[str] = (), files: Iterable[str] = ()) -> Dict[str, Any]:
    """Describe this session as plain data: `host` and `directory` (the current one) of the command, and `code` (SHA-256
    of each file, and of all source files of each top-level module that can be found). `packages` are modules that runs
    import, `files` are programs. An `Origin` describes the machine of each run."""
    modules = sorted({package.partition(".")[0] for package in packages})
    code = {**{file: _digest(Path(file)) for file in files}, **_source_digests(modules)}
    return {"host": platform.node(), "directory": os.getcwd(), "code": code}


def append_environment(environments: Sequence[Dict[str, Any]], current: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the sessions of a selection, and this one if it differs from the last."""
    return [*environments] if current in environments[-1:] else [*environments, current]


def changed_code(environments: Sequence[Mapping[str, Any]], current: Mapping[str, Any]) -> List[str]:
    """Return the files, and the modules with source files, that have changed since the selection last ran."""
    digests_before = environments[-1].get("code", {}) if environments else {}
    return [name for name, digest in current["code"].items() if digests_before.get(name, digest) != digest]


def check_current_directory(environments: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to continue a selection in another directory than it began in, where relative paths name other files. A
    directory that does not exist any more, or on another machine, has been moved."""
    first_directory = next((environment["directory"] for environment in environments if "directory" in environment), "")
    if os.path.isdir(first_directory) and not os.path.samefile(first_directory, os.getcwd()):
        here, there = os.getcwd(), shlex.quote(first_directory)
        raise StoreError(f"the selection began in another directory than {here}. Continue there: cd {there}")


def _digest(file: Path) -> str:
    """Return the digest of a file, which is read again only if it has changed: it may be the image of a container."""
    return _digest_by_stamp(file.absolute(), file_stamp(file))


@lru_cache(maxsize=10_000)
def _digest_by_stamp(file: Path, stamp: Tuple[int, int, int]) -> str:
    return file_digest(file)


def _source_digests(modules: Iterable[str]) -> Dict[str, str]:
    digests = {}
    for name in modules:
        digest = hashlib.sha256()
        source_files = _source_files(name)
        for file in source_files:
            digest.update(f"{file.name} {_digest(file)}".encode())
        if source_files:
            digests[name] = digest.hexdigest()
    return digests


def _source_files(module: str) -> List[Path]:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    directories = spec.submodule_search_locations
    if directories is not None:
        return sorted(path for directory in directories for path in Path(directory).rglob("*.py"))
    return [Path(spec.origin)] if spec.origin is not None and Path(spec.origin).is_file() else []
