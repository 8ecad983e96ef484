"""What is done with files in more than one place: digests, writing in one step, deleting, Jsonnet, JSONL, and
`NAME=PLACE`."""

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError, DataError

CHUNK = 2**20

NOT_IN_NAMES = '/\\:*?"<>|'


def digest_of(file: Path) -> str:
    """The SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, which takes its place at the end: a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    yield part
    os.replace(part, path)


def delete(path: Path) -> None:
    """Delete a file, or a directory with all that it holds, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def read_jsonnet(path: Path, *, overrides: str = "", variables: Optional[Mapping[str, str]] = None, where: str) -> Any:
    """The content of a Jsonnet file as plain data.

    Args:
        variables: texts for `std.extVar`, above those of the environment.
        where: what a message calls the file.

    Raises:
        ConfigError: where it is not valid Jsonnet.
    """
    from allennlp.common import Params
    from allennlp.common.checks import ConfigurationError

    try:
        return Params.from_file(str(path), overrides, ext_vars=dict(variables or {})).as_dict(quiet=True)
    except (RuntimeError, ValueError, ConfigurationError) as error:
        raise ConfigError(f"{where}: cannot be read as Jsonnet: {str(error).strip()}") from error


def read_lines(path: Path, *, distinct_keys: bool = False) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers from 1; empty lines are passed over.

    Args:
        distinct_keys: refuse an object with a key twice, of which JSON takes the last one.

    Raises:
        DataError: where the file cannot be read, or a line is no JSON object.
    """
    pairs = _distinct if distinct_keys else None
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8.") from error
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = json.loads(content, parse_constant=no_constant, object_pairs_hook=pairs)
            json.dumps(record, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            half = error.object[error.start : error.end].encode("ascii", "backslashreplace").decode("ascii")
            raise DataError(
                f"{path}, line {line}: holds {half}, which is half of a character. Take it out, or write both halves."
            ) from error
        except json.JSONDecodeError as error:
            reason = f"{error.msg} at column {error.colno}"
            raise DataError(f"{path}, line {line}: is not valid JSON: {reason}.") from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {line}: is not valid JSON: {error}.") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {line}: must be a JSON object but is {shortened(record)}.")
        yield line, record


def no_constant(name: str) -> Any:
    """Has `json` refuse NaN and Infinity, which it reads by default."""
    raise ValueError(f"{name} is no JSON value")


def _distinct(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key '{next(name for name in names if names.count(name) > 1)}' appears twice")
    return found


def shortened(value: Any, limit: int = 120) -> str:
    """A value as JSON for a message, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]} ..."


def named_places(
    texts: Iterable[str], *, what: str, stem: Callable[[str], str], least: int, remedy: str
) -> Dict[str, str]:
    """Names and places, in the order given, of what was typed as `NAME=PLACE` or as a place alone. What follows a `?`
    belongs to the place.

    Args:
        what: what a message calls one of them.
        stem: the name of a place that has none.
        least: how many there are at least; where there are fewer, the message ends with `remedy`.

    Raises:
        ConfigError: where a name appears twice, is empty, or has a character that no file name has everywhere.
    """
    named: Dict[str, str] = {}
    for text in texts:
        name, place = text.split("=", 1) if "=" in text.partition("?")[0] else (stem(text), text)
        if not name or not set(name).isdisjoint(NOT_IN_NAMES):
            raise ConfigError(f"{what} '{text}': a name must not be empty nor contain any of {' '.join(NOT_IN_NAMES)}.")
        if named.get(name) == place:
            raise ConfigError(f"the {what} '{name}' is given twice, as {place}. Leave one of them out.")
        if name in named:
            raise ConfigError(
                f"two {what}s are named '{name}': {named[name]} and {place}. Rename one of them with NAME={place}."
            )
        named[name] = place
    if len(named) < least:
        raise ConfigError(
            f"a selection needs at least 2 {what}s but got {len(named)}: {', '.join(named) or 'none'}. {remedy}"
        )
    return named
