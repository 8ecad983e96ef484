"""The refusal of a table: an error that ends with complete commands, each the user's own with corrected options;
and the patterns in these options, such as `results/{candidate}/seed{seed}/x.json`."""

import re
import shlex
from functools import cache
from itertools import pairwise
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import MAX_CHOICES, TYPED_WORDS, DataError, escape_invisible, full_command, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.options import flag, option_words
from fiesta_allennlp.core.texts import join_names

MAX_COMMAND_CHARACTERS = 2000
"""The length of the longest command in a message, which is complete or left out."""

MAX_CELL = 40
"""The most characters of a cell, or of the name of a column, in a message."""

REPEATED_OPTIONS = ("where", "parse", "allow")
"""The options that are typed once for each value."""

NAMING_FLAGS = frozenset(map(flag, ("columns", "score", "where", "wide", "parse", "ignore")))
"""The options whose values name columns."""

PATTERN_PIECE = re.compile(r"(\{[^{}]+\}|\*\*/|\*)")
"""The pieces of a pattern that are not texts."""

Change = Mapping[str, Any]
"""What to change in a command: the values of options, which are added to the user's where these are tuples or mappings.
Two keys are not options: `files` replaces the files, and `rename` is a name in the user's options with the right one.
"""


class TableError(DataError):
    """A table that is refused, with the changes of the command that may be right."""

    def __init__(self, problem: str, *changes: Change) -> None:
        super().__init__(problem)
        self.changes = [change for change in changes if change]

    def with_commands(self, settings: Any) -> DataError:
        """Return the error whose message ends with the commands that the changes make of the user's own."""
        commands = dict.fromkeys(_corrected_command(settings, change) for change in self.changes)
        complete = [command for command in commands if 0 < len(command) < MAX_COMMAND_CHARACTERS]
        return DataError("\n    ".join([str(self), *complete]))


def shown_cell(text: str) -> str:
    """Return a cell, or the name of a column, as a message shows it."""
    return shorten(escape_invisible(text), MAX_CELL)


def shown_cells(texts: Iterable[str], limit: int = MAX_CHOICES) -> str:
    """Return the first of several cells, or names of columns, as a message shows them."""
    return join_some(list(map(shown_cell, texts)), limit=limit)


def keep_rows(column: str, values: Iterable[str]) -> Change:
    """Return the change that leaves out the rows with other values of a column."""
    return {"where": (f"{column}={join_names(values)}",)}


def _corrected_command(settings: Any, change: Change) -> str:
    """Return the user's command with this change, or the settings of a call from Python."""
    options = {
        name: _added(getattr(settings, name), value)
        for name, value in change.items()
        if name not in ("files", "rename")
    }
    words = TYPED_WORDS.get()
    if not words:
        return ", ".join(f"{name}={value!r}" for name, value in options.items())
    paths = [getattr(settings, "scores", "") or getattr(settings, "source", ""), *settings.files]
    if words[0] == "select" and "allow" in change:
        return f"{full_command(words[0])} {shlex.join([*words[1:], *_typed_words('allow', options['allow'])])}"
    if words[0] == "select":  # it takes tables in our own columns only
        words = ("next", *paths, "--output", "next-runs.csv")
    flags = set(map(flag, options))
    kept: List[str] = []
    for before, word in pairwise(words):
        options_of_word = {before, word.partition("=")[0]}
        if word not in paths and flags.isdisjoint(options_of_word):
            if "rename" in change and not NAMING_FLAGS.isdisjoint(options_of_word):
                name, right_name = change["rename"]
                word = re.sub(rf"(?<!\w)(?<!--){re.escape(name)}(?!\w)", right_name.replace("\\", r"\\"), word)
            kept.append(word)
    typed = [word for name, value in options.items() for word in _typed_words(name, value)]
    return f"{full_command(words[0])} {shlex.join([*change.get('files', paths), *kept, *typed])}"


def _added(own: Any, value: Any) -> Any:
    """Return the new value of an option whose values are added to the user's own."""
    if isinstance(value, dict):
        return {**(own or {}), **value}
    return (*own, *value) if isinstance(value, tuple) else value


def _typed_words(name: str, value: Any) -> List[str]:
    if isinstance(value, dict):
        value = tuple(f"{role}={header}" for role, header in value.items())
    is_joined = isinstance(value, tuple) and name not in REPEATED_OPTIONS
    return option_words(name, join_names(value) if is_joined else value)


def match_pattern(pattern: str, text: str, character: str = ".") -> Optional[Dict[str, str]]:
    """Return what stands at the names of a pattern, None if the text does not match. `{name}` is one or more of the
    characters, `*` none or more, and `**/` any folders. Refuse a text that matches in two ways."""
    greedy, lazy = (_compile_pattern(pattern, character, mode).fullmatch(text) for mode in ("", "?"))
    if greedy is None or lazy is None:
        return None
    names = dict.fromkeys(piece[1:-1] for piece in PATTERN_PIECE.findall(pattern) if piece[0] == "{")
    parts, others = (dict(zip(names, match.groups(), strict=True)) for match in (greedy, lazy))
    if parts != others:
        ways = "; or ".join(", ".join(f"{name} = {part}" for name, part in way.items()) for way in (parts, others))
        raise DataError(f"'{text}' matches {pattern} in two ways: {ways}. Add more of the text between the names.")
    return parts


@cache
def _compile_pattern(pattern: str, character: str, mode: str) -> "re.Pattern[str]":
    """Return the expression of a pattern that takes as much, or with the mode `?` as little, as it can for each name in
    turn."""
    names: List[str] = []
    regex = ""
    for number, piece in enumerate(PATTERN_PIECE.split(pattern)):
        if number % 2 == 0:
            regex += re.escape(piece)
        elif piece in names:
            regex += f"(?:\\{names.index(piece) + 1})"
        elif piece[0] == "{":
            names.append(piece)
            regex += f"({character}+{mode})"
        else:
            regex += f"(?:[^/]+/)*{mode}" if piece == "**/" else f"{character}*{mode}"
    return re.compile(regex, re.DOTALL)


def propose_pattern(paths: Sequence[str]) -> str:
    """Return a pattern of these paths, in which folders that differ are the candidate or, by their number, the seed;
    empty if there is none."""
    parts = [path.split("/") for path in paths]
    if len({len(each) for each in parts}) > 1:
        return ""
    pattern: List[str] = []
    for names in zip(*parts, strict=True):
        matches = [re.fullmatch(r"(.*?)([\W_]?[^\W\d_]*)(\d+)", name) for name in names]
        stems = {match and match[1] for match in matches}
        ends = {match and match[2] for match in matches}
        is_numbered = None not in matches and len(ends) == 1 and len(stems) < len(set(names))
        if len(set(names)) == 1:
            pattern.append(names[0])
        elif is_numbered:
            pattern.append(f"{(stems.pop() or '') if len(stems) == 1 else '{candidate}'}{ends.pop()}{{seed}}")
        else:
            pattern.append("{candidate}" if "{candidate}" not in pattern else "{split}")
    text = "/".join(pattern)
    try:
        return text if "{candidate}" in text and all(match_pattern(text, path, "[^/]") for path in paths) else ""
    except DataError:  # of a path that matches in two ways
        return ""
