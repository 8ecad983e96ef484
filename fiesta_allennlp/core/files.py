"""Files: digests, writing in one step, deleting, JSONL, cells of CSV, and Jsonnet as AllenNLP has it."""

import copy
import glob
import hashlib
import json
import os
import re
import secrets
import shlex
import shutil
import stat
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from fiesta_allennlp.core import errors
from fiesta_allennlp.version import __version__

CHUNK_BYTES = 2**20

PART_SUFFIX = ".part"
"""The end of the name of a file that is being written."""

LEFTOVER_SECONDS = 3600.0
"""The age at which a file that is being written counts as left by a process that was killed."""

OWN_DIRECTORY_MODE = 0o755
"""The mode of directories that others may read, but not write, whatever the umask."""

MODE_OF_OTHER_WRITERS = stat.S_IWGRP | stat.S_IWOTH

CUT_MARKER = b"\n... %d bytes of output were cut here ...\n"

FORMULA_STARTS = ("=", "+", "-", "@")
"""The beginnings of a cell that a spreadsheet runs. A tab or a carriage return is written as an escape."""


def file_digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def file_stamp(file: Path) -> Tuple[int, int, int]:
    """Return what tells without reading that a file has changed: its size in bytes, and the nanoseconds of the last
    changes of content and file."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield a new, empty file next to `path`, which replaces it at the end, so that a reader never sees half a
    file."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{PART_SUFFIX}*"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > LEFTOVER_SECONDS:
                leftover.unlink()
    temporary_path = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART_SUFFIX}")
    try:
        os.close(os.open(temporary_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        yield temporary_path
        os.replace(temporary_path, path)
    except OSError as error:
        if error.errno and error.filename is None:  # of a write, as on a full disk
            error.filename = str(path)
        raise
    finally:
        temporary_path.unlink(missing_ok=True)


def check_private(root: Path) -> None:
    """Refuse a directory that belongs to another user, or that others can write: what lies in it names the programs
    that will run."""
    status = root.stat()
    if status.st_uid != os.getuid():
        raise errors.StoreError(f"{root} belongs to user ID {status.st_uid}. Copy it and continue in the copy.")
    if status.st_mode & MODE_OF_OTHER_WRITERS:
        raise errors.StoreError(
            f"other users can write to {root}, so their code could run under your account. Check its content, then "
            f"forbid this (on vfat or WSL's /mnt/c, copy it to a file system with permissions): chmod go-w "
            f"{shlex.quote(str(root))}"
        )


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raise a `ValueError` if it is not JSON, or nested too deeply to be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply") from error


def write_json_file(path: Path, content: Any, **options: Any) -> None:
    """Write plain data as JSON, in one step. `options` are those of `json.dumps`."""
    with atomic_replacement(path) as temporary_path:
        temporary_path.write_text(json.dumps(content, **options) + "\n", encoding="utf-8")


def shorten_log(path: Path) -> None:
    """Keep the first and the last MiB of a log that is longer, with a line between them. Delete an empty one."""
    with path.open("r+b") as log:
        size = os.fstat(log.fileno()).st_size
        if not size:
            path.unlink()
        if size <= 2 * CHUNK_BYTES + len(CUT_MARKER):
            return
        log.seek(-CHUNK_BYTES, os.SEEK_END)
        log_end = log.read()
        log.seek(CHUNK_BYTES)
        log.write(CUT_MARKER % (size - 2 * CHUNK_BYTES) + log_end)
        log.truncate()


def check_format(path: Path, number: Any, expected: int, *, version: Any) -> None:
    """Refuse a file whose format is not the `expected` one. It says itself which `version` wrote it, or None."""
    if number != expected:
        raise errors.StoreError(
            f"{path} has format {shorten(number)}, but fiesta_allennlp {__version__} reads format {expected}. Use the "
            f"version that wrote it: {shorten(version or 'unknown')}. For a directory of 1.x: "
            "pip install 'fiesta-allennlp<2'."
        )


def delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def last_line(log: Path) -> str:
    """Return the last line of a log that is not blank; empty if its last MiB has none, or there is no log."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - CHUNK_BYTES))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ""


def read_jsonl(path: Path) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers from 1, skipping empty lines. Refuse an object with a
    repeated key, of which JSON takes the last value. Raise a `DataError` with the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise errors.DataError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise errors.DataError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8."
        ) from error
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = json.loads(content, parse_constant=refuse_constant, object_pairs_hook=refuse_repeated_keys)
            json.dumps(record, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError) as error:
            reason = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
            raise errors.DataError(f"{path}, line {line}: not valid JSON: {reason}.") from error
        if not isinstance(record, dict):
            raise errors.DataError(f"{path}, line {line}: expected a JSON object but found {shown_value(record)}.")
        yield line, record


def refuse_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which `json` reads by default."""
    raise ValueError(f"{name} is not allowed in JSON")


def refuse_repeated_keys(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """Make an object of JSON, but refuse a repeated key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        ((repeated_key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key '{errors.cut_text(repeated_key, errors.MAX_NAME_CHARACTERS)}' appears twice")
    return mapping


def flatten(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield the values of nested mappings by their names, joined by dots. A list of objects that have different texts
    as `key`, or as `name`, counts as a mapping, as in the exports of MLflow."""
    for name, value in mapping.items():
        value = _named_entries(value) if isinstance(value, list) else value
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield errors.escape_invisible(f"{prefix}{name}"), value


def _named_entries(entries: List[Any]) -> Any:
    """Return the mapping that a list of named objects is, or else the list."""
    for field in ("key", "name"):
        names = [entry.get(field) if isinstance(entry, dict) else None for entry in entries]
        if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return {name: entry.get("value", entry) for name, entry in zip(names, entries, strict=True)}
    return entries


def shorten(value: Any, limit: int = 120) -> str:
    """Return a value as JSON for a message, cut if long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return errors.cut_text(text, limit)


def shown_value(value: Any) -> str:
    """Return a value that a user wrote as JSON for a message, a text in quotes, cut if long."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str))


def to_csv_cell(value: Any) -> Any:
    """Return the CSV cell of a value, which `from_csv_cell` reads back. A text that a spreadsheet would run gets an
    apostrophe in front, and invisible characters become escapes."""
    if not isinstance(value, str):
        return value
    text = errors.escape_invisible(value)
    return f"'{text}" if text.lstrip("'").startswith(FORMULA_STARTS) else text


def from_csv_cell(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_STARTS) else cell


SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which Jsonnet cannot read."""

VARIABLE_DEFAULTS = {
    "FIESTA_DATA": "data/semeval14",
    "FIESTA_TAGGING": "data/conll2003/eng.train,data/conll2003/eng.testa,data/conll2003/eng.testb",
    "FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt",
}
"""The places where shipped configs look for data and word vectors, relative to the current directory, unless the
environment says otherwise. In `FIESTA_TAGGING`, commas separate training, validation and test set; `%d` is the number
of dimensions."""


def set_default_variables() -> None:
    """Set each default whose variable is not in the environment, for AllenNLP's own commands."""
    for name, value in VARIABLE_DEFAULTS.items():
        os.environ.setdefault(name, value)


def read_jsonnet(
    source: Union[Path, str], *, overrides: str = "", variables: Optional[Mapping[str, str]] = None, label: str
) -> Any:
    """Return the content of a Jsonnet file or text as plain data. `overrides` is Jsonnet for `apply_overrides`;
    `variables` are texts for `std.extVar`, which win over the environment. Raise a `ConfigError` that calls the file
    `label`."""
    try:
        content = json.loads(_evaluate(source, variables or {}))
        changes = json.loads(_evaluate(overrides, variables or {})) if overrides else {}
        if isinstance(changes, dict) and "+" in overrides:
            values = {path: _value_at(content, path) for path in changes}
            containers = {path: value for path, value in values.items() if isinstance(value, (dict, list))}
            changes = json.loads(_evaluate(f"{json.dumps(containers)} + ({overrides})", variables or {}))  # for `+:`
    except (RuntimeError, ValueError) as error:
        reason, *trace = str(error).strip().splitlines()
        place = f" ({trace[0].split()[0]})" if trace else ""
        raise errors.ConfigError(f"{label} is not valid Jsonnet: {reason}{place}") from error
    if not isinstance(changes, dict):
        raise errors.ConfigError(f'{label}: overrides must be an object such as {{"trainer.num_epochs": 5}}.')
    try:
        return apply_overrides(content, changes)
    except errors.ConfigError as error:
        raise errors.ConfigError(f"{label}: {error}") from error


def _evaluate(source: Union[Path, str], variables: Mapping[str, str]) -> str:
    from _jsonnet import evaluate_file, evaluate_snippet

    readable = {name: value for name, value in os.environ.items() if not SURROGATE_PATTERN.search(name + value)}
    ext_vars = {**VARIABLE_DEFAULTS, **readable, **variables}
    is_text = isinstance(source, str)
    return evaluate_snippet("", source, ext_vars=ext_vars) if is_text else evaluate_file(str(source), ext_vars=ext_vars)


def apply_overrides(content: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a copy of a config with other values. A key with dots is a path into it, with positions for lists. Only
    the last step of a path may be a new key; raise a `ConfigError` if an earlier one does not exist."""
    result = copy.deepcopy(content)
    for path, value in overrides.items():
        container, rest = _follow(result, path)
        keys, key = _keys_by_text(container), rest.partition(".")[0]
        if rest in keys or (isinstance(container, dict) and rest == key):
            container[keys.get(rest, rest)] = copy.deepcopy(value)
        elif isinstance(container, (dict, list)):
            raise errors.ConfigError(
                f"cannot apply the override '{path}': no key '{key}'.{errors.did_you_mean(key, keys)}"
            )
        else:
            reason = f"'{path[: -len(rest) - 1]}' is {json.dumps(container)}, not an object. Override it as a whole"
            raise errors.ConfigError(f"cannot apply the override '{path}': {reason}.")
    return result


def _value_at(content: Any, path: str) -> Any:
    """Return the value at a path; None if it does not exist."""
    container, rest = _follow(content, path)
    keys = _keys_by_text(container)
    return container[keys[rest]] if rest in keys else None


def _follow(container: Any, path: str) -> Tuple[Any, str]:
    """Follow a path up to its last step that exists. Return what contains that step, and the rest of the path."""
    keys = _keys_by_text(container)
    prefix = None if path in keys else next((name for name in keys if path.startswith(f"{name}.")), None)
    return (container, path) if prefix is None else _follow(container[keys[prefix]], path[len(prefix) + 1 :])


def _keys_by_text(container: Any) -> Dict[str, Any]:
    """Return the keys of an object, or the positions of a list, by their text; empty for anything else."""
    if isinstance(container, (dict, list)):
        return {str(key): key for key in (container if isinstance(container, dict) else range(len(container)))}
    return {}
