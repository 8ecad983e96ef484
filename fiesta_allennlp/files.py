"""What is done with files in more than one place: digests, writing in one step, Jsonnet, and `NAME=PATH`."""

import hashlib
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator

from fiesta_allennlp.errors import ConfigError

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


def read_jsonnet(path: Path, *, overrides: str = "", where: str) -> Any:
    """The content of a Jsonnet file as plain data. `where` is what a message calls it.

    # Raises

    `ConfigError` : where it is not valid Jsonnet.
    """
    from allennlp.common import Params
    from allennlp.common.checks import ConfigurationError

    try:
        return Params.from_file(str(path), overrides).as_dict(quiet=True)
    except (RuntimeError, ValueError, ConfigurationError) as error:
        raise ConfigError(f"{where}: cannot be read as Jsonnet: {str(error).strip()}") from error


def named_places(
    texts: Iterable[str], *, what: str, stem: Callable[[str], str], least: int, remedy: str
) -> Dict[str, str]:
    """Names and places, in the order given, of what was typed as `NAME=PLACE` or as a place alone.

    # Parameters

    what : what a message calls one of them.
    stem : the name of a place that has none.
    least : how many there are at least; where there are fewer, the message ends with `remedy`.

    # Raises

    `ConfigError` : where a name is there twice, is empty, or has a character that no file name has everywhere.
    """
    named: Dict[str, str] = {}
    for text in texts:
        name, separator, place = text.partition("=")
        if not separator:
            name, place = stem(text), text
        if not name or not set(name).isdisjoint(NOT_IN_NAMES):
            raise ConfigError(f"{what} '{text}': a name must not be empty nor contain any of {' '.join(NOT_IN_NAMES)}.")
        if name in named:
            raise ConfigError(
                f"two {what}s are named '{name}': {named[name]} and {place}. Name one of them anew with NAME={place}."
            )
        named[name] = place
    if len(named) < least:
        raise ConfigError(
            f"a selection needs at least 2 {what}s but got {len(named)}: {', '.join(named) or 'none'}. {remedy}"
        )
    return named
