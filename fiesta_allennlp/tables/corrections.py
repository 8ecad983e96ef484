"""The refusal of a table: an error that ends with complete commands, each the user's own with corrected options."""

import re
import shlex
from itertools import pairwise
from typing import Any, Iterable, List, Mapping, Sequence

from fiesta_allennlp.core.errors import MAX_CHOICES, TYPED_WORDS, DataError, escape_invisible, full_command, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import join_names
from fiesta_allennlp.core.settings.options import flag, option_words

MAX_COMMAND_CHARACTERS = 2000
"""The length of the longest command in a message, which is complete or left out."""

MAX_CELL = 40
"""The most characters of a cell, or of the name of a column, in a message."""

REPEATED_OPTIONS = ("where", "parse", "allow")
"""The options that are typed once for each value."""

NAMING_FLAGS = frozenset(map(flag, ("columns", "score", "where", "wide", "parse", "ignore")))
"""The options whose values name columns."""

Change = Mapping[str, Any]
"""What to change in a command: the values of options, which are added to the user's where these are tuples or mappings.
Three keys are not options: `files` replaces the files, `pipe` is a command whose output is the table instead of a file,
with this file, and `rename` is a name in the user's options with the right one."""


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


def without_lines(file: str, numbers: Sequence[str]) -> Change:
    """Return the change that leaves out lines of a file, such as `line 4`; none for rows that are not lines."""
    return edit_lines("sed " + shlex.quote(";".join(f"{number[5:]}d" for number in numbers)), file, numbers)


def edit_lines(command: str, file: str, numbers: Sequence[str]) -> Change:
    """Return the change that passes a file through a command; none unless the rows with these numbers are lines."""
    is_text = all(number.startswith("line ") for number in numbers)
    return {"pipe": (f"{command} {shlex.quote(file)}", file)} if is_text else {}


def _corrected_command(settings: Any, change: Change) -> str:
    """Return the user's command with this change, or the settings of a call from Python; empty for a change of the text
    unless it is that of the only file."""
    names = [name for name in change if name not in ("files", "pipe", "rename")]
    options = {name: _added(getattr(settings, name), change[name]) for name in names}
    words = TYPED_WORDS.get()
    if not words:
        return ", ".join(f"{name}={value!r}" for name, value in options.items())
    paths = [getattr(settings, "scores", "") or getattr(settings, "source", ""), *settings.files]
    if words[0] == "select":  # it takes tables in our own columns only
        words = ("next", *paths, "--output", "runs.csv")
    flags = set(map(flag, names))
    kept: List[str] = []
    for before, word in pairwise(words):
        options_of_word = {before, word.partition("=")[0]}
        if word not in paths and flags.isdisjoint(options_of_word):
            is_naming = not NAMING_FLAGS.isdisjoint(options_of_word)
            kept.append(_renamed(word, *change["rename"]) if is_naming and "rename" in change else word)
    pipe, file = change.get("pipe", ("", ""))
    if pipe and paths != [file]:
        return ""
    files = ["-"] if pipe else change.get("files", paths)
    typed = [word for name, value in options.items() for word in _typed_words(name, value)]
    command = f"{full_command(words[0])} {shlex.join([*files, *kept, *typed])}"
    return f"{pipe} | {command}" if pipe else command


def _renamed(text: str, name: str, right_name: str) -> str:
    """Return a word of the user's command with the right name of a column."""
    return re.sub(rf"(?<!\w)(?<!--){re.escape(name)}(?!\w)", lambda _: right_name, text)


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
