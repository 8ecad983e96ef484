"""The names of candidates and systems, which become parts of paths, cells of tables and words in logs."""

import unicodedata
from typing import Dict, Iterable, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import ConfigError, visible

NOT_IN_NAMES = '/\\:*?"<>|'
"""The characters that a file name cannot contain on every system."""


def split_name(text: str) -> Tuple[Optional[str], str]:
    """Split `NAME=SOURCE`; a source alone has no name. Anything after a `?` belongs to the source."""
    if "=" not in text.partition("?")[0]:
        return None, text
    name, _, source = text.partition("=")
    return name, source


NUMBER = "#"
"""The beginning of the name of a search's point, whose source has its values."""


def values_in(source: str) -> str:
    return source.partition("?")[2]


def legend(values: Mapping[str, str]) -> Tuple[str, ...]:
    """Return the values that numbered candidates stand for. Other names speak for themselves."""
    return tuple(f"{name}: {text}" for name, text in values.items() if name.startswith(NUMBER))


def check_names(named_sources: Iterable[Tuple[str, str]], *, what: str, least: int, remedy: str) -> None:
    """Check the names of candidates or systems, each with its source. Messages call one of them `what`. If there are
    fewer than `least`, the message ends with `remedy`."""
    seen: Dict[str, str] = {}
    for name, source in named_sources:
        _check_name(name, f"{what} '{visible(f'{name}={source}')}'")
        if name in seen:
            raise ConfigError(
                f"two {what}s are named '{name}': {seen[name]} and {source}. Remove one, or rename it: NAME={source}."
            )
        seen[name] = source
    check_distinct(seen, what=what)
    if len(seen) < least:
        raise ConfigError(
            f"a selection needs at least 2 {what}s but got {len(seen)}: {', '.join(seen) or 'none'}. {remedy}"
        )


def look(name: str) -> str:
    """Return what is equal for names that look alike: they differ only in case, in blanks, in invisible characters or
    in how accents are encoded."""
    if not name.isascii():
        categories = ((character, unicodedata.category(character)) for character in unicodedata.normalize("NFC", name))
        name = "".join(" " if kind == "Zs" else character for character, kind in categories if kind != "Cf")
    return " ".join(name.split()).casefold()


def alike(names: Iterable[str]) -> Optional[Tuple[str, str]]:
    """Return the first two different names that look alike; None if there are none."""
    by_look: Dict[str, str] = {}
    return next(((earlier, name) for name in names if (earlier := by_look.setdefault(look(name), name)) != name), None)


def check_distinct(names: Iterable[str], *, what: str) -> None:
    """Refuse names that look alike, because some systems give them one directory."""
    pair = alike(names)
    if pair is not None:
        raise ConfigError(
            f"the names of the {what}s '{visible(pair[0])}' and '{visible(pair[1])}' differ only in case, in blanks "
            "or in how accents are encoded, and some file systems cannot tell them apart. Rename one of them."
        )


def _check_name(name: str, subject: str) -> None:
    is_clear = visible(name) == name.strip() == name and name not in ("", ".", "..")
    if not is_clear or not set(name).isdisjoint(NOT_IN_NAMES):
        raise ConfigError(
            f"{subject}: a name must not be empty, '.' or '..', contain any of {' '.join(NOT_IN_NAMES)} or invisible "
            "characters such as line breaks, or begin or end with a space. Rename it with NAME=PATH."
        )
