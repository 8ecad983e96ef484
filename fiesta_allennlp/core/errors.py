"""The errors that this package raises on purpose, and plain words for what other libraries say of a wrong config. Each
message names the rule, the value and the remedy."""

import difflib
import re
import sys
import sysconfig
import traceback
import unicodedata
from contextvars import ContextVar
from itertools import islice
from pathlib import Path
from typing import Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

from fiesta_allennlp.version import ALLENNLP

ALLENNLP_MISSING_MESSAGE = "AllenNLP is not installed. In a clone of fiesta_allennlp, run: pip install '.[allennlp]'"
if sys.version_info >= (3, 11):  # where the pins of AllenNLP itself have no solution
    ALLENNLP_MISSING_MESSAGE += f" && pip install --no-deps allennlp=={ALLENNLP}"

COMMAND_PREFIX: ContextVar[str] = ContextVar("PREFIX", default="fiesta ")
"""The words before the name of a command, as the user typed them. Python calls have the default."""


TYPED_WORDS: ContextVar[Tuple[str, ...]] = ContextVar("WORDS", default=())
"""The name of the command and the words after it, as the user typed them. Python calls have none."""


def full_command(name: str) -> str:
    """Return a command as the user types it: `fiesta select`, or `allennlp fiesta-select`."""
    return COMMAND_PREFIX.get() + name


received_signals: List[int] = []
"""The ending signals since the command began. Python drops what a handler raises in a callback, such as that of a fork
or a `__del__`, so the loop of a selection asks again."""


class FiestaError(Exception):
    """Base class of the errors that a user can fix. The command line prints the message and exits with status 2.
    `kind` is the kind of failure of a run that ends with this error."""

    kind = "error"


class ConfigError(FiestaError):
    """A candidate's config or an option is wrong. The message names the file, the key and the value."""


class OptionError(ConfigError):
    """An option of a strategy has a value that its `rule` does not allow."""

    def __init__(self, option: str, rule: str) -> None:
        super().__init__(option, rule)
        self.option, self.rule = option, rule

    def __str__(self) -> str:
        return f"{self.option} {self.rule}"


class DataError(FiestaError):
    """A data file is wrong. The message names the file, the line and the record."""


class PackageError(ConfigError):
    """A package of `--include-package`, or a plugin, cannot be imported. The message names it and the reason."""


class ForeignError(FiestaError):
    """An error of another package in another process, as text: this process may not have the package."""


class ReaderError(DataError):
    """A candidate's own reader raised an error while reading. The message names the data path, the number of instances
    read before, and the reader's own message. Its traceback is in the log."""


class ModelError(FiestaError):
    """A candidate's model raised an error on its first batch. The message names the part of the model, and has the
    error's own message. Its traceback is in the log."""


class DataChangedError(FiestaError):
    """The data have changed since the selection began. The message names the file and the change."""

    kind = "data"


class ProgramError(FiestaError):
    """A program ended with an error. The message has its exit status and the end of its output."""


class ProgramKilledError(FiestaError):
    """A signal ended a program. The message names the signal."""

    kind = "killed"


class MetricError(FiestaError):
    """A run ended without the metric that it is scored by. The message has the names of those that it reported."""

    kind = "metric"


class StoreError(FiestaError):
    """The run directory or its store cannot be used as requested."""


class ScoreError(FiestaError):
    """The chosen model of the scores cannot use a score, for example because it needs the logit of a score above 1."""


INVISIBLE_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's categories of control and format characters, halves of surrogate pairs, ends of lines and paragraphs."""

LAYOUT_CHARACTERS = "\n\t"
"""The invisible characters that a text of several lines consists of."""

NOT_PRINTABLE_ASCII = re.compile(r"[^ -~]")


def escape_invisible(text: str, *, keep: str = "") -> str:
    r"""Return a text with invisible characters as escapes, such as `\x1b` and `\u202e`, except those in `keep`. A
    terminal obeys some of them, a reader sees none of them, and no file can contain half of a surrogate pair."""
    return NOT_PRINTABLE_ASCII.sub(lambda match: match[0] if match[0] in keep else _escape_character(match[0]), text)


def _escape_character(character: str) -> str:
    is_invisible = unicodedata.category(character) in INVISIBLE_CATEGORIES
    return character.encode("unicode_escape").decode("ascii") if is_invisible else character


MAX_ERROR_CHARACTERS = 1000
"""The length of the longest error to keep and to show. The log of a run has the whole."""

MAX_SHOWN, MAX_CHOICES = 8, 40
"""How many of several names, or of several reasons, a message has; and how many of which the user must choose one."""

MAX_NAME_CHARACTERS = 200
"""The length of the longest of several names in a message."""


def cut_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} ..."


def join_some(texts: Collection[str], separator: str = ", ", *, limit: int = MAX_SHOWN) -> str:
    """Join names that users chose, or what is said about them: the first `limit`, each cut if long, and the number of
    the others."""
    shown = [cut_text(text, MAX_NAME_CHARACTERS) for text in islice(texts, limit)]
    num_more = len(texts) - len(shown)
    return separator.join([*shown, f"and {num_more} more"] if num_more else shown)


def describe(error: BaseException) -> str:
    """Format an error as one line for tables: its message, after its type unless the message is clear by itself. A
    traceback at the end of another package's message is left out. Invisible characters are written as escapes."""
    is_ours, text = isinstance(error, FiestaError), str(error)
    message = escape_invisible(" ".join((text if is_ours else text.partition("Traceback ")[0] or text).split()))
    message = cut_text(message, MAX_ERROR_CHARACTERS)
    name = type(error).__name__
    has_clear_message = is_ours or name == "ConfigurationError"
    return message if has_clear_message and message else f"{name}: {message}".rstrip(": ")


def near_names(name: str, names: Iterable[str], *, max_names: int = 1) -> List[str]:
    """Return the names that are most like this one, in any case; none for one that is too long to compare with
    thousands."""
    if len(name) > MAX_NAME_CHARACTERS:
        return []
    folded_names: Dict[str, List[str]] = {}
    for other in names:
        folded_names.setdefault(other.casefold(), []).append(other)
    close_names = difflib.get_close_matches(name.casefold(), folded_names, n=max_names)
    return [other for close_name in close_names for other in folded_names[close_name]][:max_names]


def did_you_mean(name: str, names: Iterable[str], *, max_names: int = 1) -> str:
    """Return a question with the nearest names for the end of a sentence; empty if there is none."""
    close_names = near_names(name, names, max_names=max_names)
    return f" Did you mean {' or '.join(map(repr, close_names))}?" if close_names else ""


def check_known_keys(keys: Iterable[str], owner: str, valid_keys: Sequence[str]) -> None:
    """Refuse a key that its owner does not have, with the nearest of the `valid_keys`."""
    for key in keys:
        if key not in valid_keys:
            remedy = did_you_mean(key, valid_keys) or " Correct its name, or remove it."
            raise ConfigError(f"'{key}' is not a key of {owner}.{remedy}")


PYTHON_DIRECTORIES = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
LIBRARY_DIRECTORIES = (*PYTHON_DIRECTORIES, str(Path(__file__).parents[1]))
"""Directories of installed code, with this package."""


def code_line_of(error: BaseException) -> str:
    """Return the line of the user's own code that raised an error, for the end of a sentence. If none did, return the
    line that raised an error without a message, and nothing for other errors."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if not frame.filename.startswith((*LIBRARY_DIRECTORIES, "<"))]
    if own_frames:
        return f" ({own_frames[-1].filename}, line {own_frames[-1].lineno})"
    if str(error) or not frames:
        return ""
    return f" ({frames[-1].filename}, line {frames[-1].lineno}: {frames[-1].line})"


def describe_with_line(error: BaseException) -> str:
    """Describe an error in one line, with its line of code unless its message is clear by itself."""
    return describe(error) if isinstance(error, FiestaError) else f"{describe(error)}{code_line_of(error)}"


def combined_error(reasons: Mapping[str, str], *, noun: str) -> ConfigError:
    """Combine the reasons of several candidates, by label: the one there is, or their number and at most
    `MAX_SHOWN` lines. Candidates of one reason share a line."""
    if len(reasons) == 1:
        ((label, reason),) = reasons.items()
        return ConfigError(f"{label}: {reason}")
    labels_by_reason: Dict[str, List[str]] = {}
    for label, reason in reasons.items():
        labels_by_reason.setdefault(reason, []).append(label)
    lines = [f"\n  {join_some(labels)}: {reason}" for reason, labels in labels_by_reason.items()]
    num_more = len(lines) - MAX_SHOWN
    more = f"\n  and {num_more} more" if num_more > 0 else ""
    return ConfigError(f"{len(reasons)} {noun}:{''.join(lines[:MAX_SHOWN])}{more}")


def describe_as_sentence(error: BaseException) -> str:
    """Describe an error in one line that ends with a full stop."""
    text = describe(error)
    return text if text.endswith((".", "!", "?")) else f"{text}."
