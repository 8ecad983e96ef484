"""The names of candidates and systems, which become parts of paths, cells of tables and words in logs."""

import unicodedata
from typing import Dict, Iterable, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import ConfigError, escape_invisible

FORBIDDEN_CHARACTERS = '/\\:*?"<>|'
"""The characters that a file name cannot contain on every system."""


def split_name(text: str) -> Tuple[Optional[str], str]:
    """Split `NAME=SOURCE`; a source alone has no name. Anything after a `?` belongs to the source."""
    if "=" not in text.partition("?")[0]:
        return None, text
    name, _, source = text.partition("=")
    return name, source


NUMBERED_PREFIX = "#"
"""The beginning of the name of a search's point, whose source has its values."""


def values_text(source: str) -> str:
    return source.partition("?")[2]


def numbered_legend(values: Mapping[str, str]) -> Tuple[str, ...]:
    """Return the values that numbered candidates stand for. Other names speak for themselves."""
    return tuple(f"{name}: {text}" for name, text in values.items() if name.startswith(NUMBERED_PREFIX))


def check_names(named_sources: Iterable[Tuple[str, str]], *, noun: str, min_count: int, remedy: str) -> None:
    """Check the names of candidates or systems, each with its source. Messages call one of them `noun`. If there are
    fewer than `min_count`, the message ends with `remedy`."""
    source_by_name: Dict[str, str] = {}
    for name, source in named_sources:
        _check_name(name, f"{noun} '{escape_invisible(f'{name}={source}')}'")
        if name in source_by_name:
            raise ConfigError(
                f"two {noun}s are named '{name}': {source_by_name[name]} and {source}. Remove one, or rename it: "
                f"NAME={source}."
            )
        source_by_name[name] = source
    check_no_similar_names(source_by_name, noun=noun)
    if len(source_by_name) < min_count:
        raise ConfigError(
            f"a selection needs at least 2 {noun}s but got {len(source_by_name)}: "
            f"{', '.join(source_by_name) or 'none'}. {remedy}"
        )


def comparison_key(name: str) -> str:
    """Return what is equal for names that look alike: they differ only in case, in blanks, in invisible characters or
    in how accents are encoded."""
    if not name.isascii():
        categories = ((character, unicodedata.category(character)) for character in unicodedata.normalize("NFC", name))
        name = "".join(" " if category == "Zs" else character for character, category in categories if category != "Cf")
    return " ".join(name.split()).casefold()


def first_similar_pair(names: Iterable[str]) -> Optional[Tuple[str, str]]:
    """Return the first two different names that look alike; None if there are none."""
    name_by_key: Dict[str, str] = {}
    return next(
        ((earlier, name) for name in names if (earlier := name_by_key.setdefault(comparison_key(name), name)) != name),
        None,
    )


def check_no_similar_names(names: Iterable[str], *, noun: str) -> None:
    """Refuse names that look alike, because some systems give them one directory."""
    pair = first_similar_pair(names)
    if pair is not None:
        raise ConfigError(
            f"the names of the {noun}s '{escape_invisible(pair[0])}' and '{escape_invisible(pair[1])}' differ only in "
            "case, in blanks or in how accents are encoded, and some file systems cannot tell them apart. Rename one "
            "of them."
        )


def _check_name(name: str, subject: str) -> None:
    has_visible_text = escape_invisible(name) == name.strip() == name and name not in ("", ".", "..")
    if not has_visible_text or not set(name).isdisjoint(FORBIDDEN_CHARACTERS):
        raise ConfigError(
            f"{subject}: a name must not be empty, '.' or '..', contain any of {' '.join(FORBIDDEN_CHARACTERS)} or "
            "invisible characters such as line breaks, or begin or end with a space. Rename it with NAME=PATH."
        )
