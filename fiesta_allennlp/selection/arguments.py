"""Messages about options, for those who gave them as arguments of a Python call."""

import re
from contextlib import contextmanager
from functools import partial
from typing import Any, Dict, Iterator, Tuple

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.selection.options import allowed_by, flag, options_of

DIRECTORY = "directory"
"""The argument that is typed as `-s`."""

TYPED = re.compile(r"(?<![\w-])(?:-s\b|(?P<flag>--[a-z][a-z-]*)(?:(?P<gap>[ =])(?P<value>(?!-)\S*[^\s.,;:`)]|-\w+))?)")
"""An option in a message, with the word that follows it."""

VALUE = re.compile(r"[+-]?[A-Z\d][A-Z\d.,_]*|none")
"""A word that is a value after any option: a number, numbers with commas, a place such as `NAME`, or `none`."""


@contextmanager
def told_as_arguments(settings: Any, *, switches: Tuple[str, ...] = ()) -> Iterator[None]:
    """Let a `FiestaError` name the arguments of a Python call instead of options. `switches` are arguments besides the
    settings, each True or False."""
    try:
        yield
    except FiestaError as error:
        error.args = (as_arguments(str(error), settings, switches=switches), *error.args[1:])
        raise


def as_arguments(message: str, settings: Any, *, switches: Tuple[str, ...] = ()) -> str:
    """The message with each option as an argument: `splits="official"` instead of `--splits official`."""
    kinds = allowed_by(settings)
    flags = {flag(name): name for name in kinds}
    switched = {flag(name): f"{name}=True" for name in switches}
    for name, kind in kinds.items():
        if kind.types == (bool,):
            switched.update({flag(name): f"{name}=True", f"--no-{flag(name)[2:]}": f"{name}=False"})
    return TYPED.sub(partial(_argument, flags=flags, switched=switched, settings=settings), message)


def _argument(found: "re.Match[str]", *, flags: Dict[str, str], switched: Dict[str, str], settings: Any) -> str:
    typed, gap, value = found["flag"], found["gap"] or "", found["value"] or ""
    if typed is None:
        return DIRECTORY
    if typed in switched:
        return switched[typed] + gap + value
    if typed not in flags:
        return found[0]
    name = typed[2:].replace("-", "_")
    is_value = gap == "=" or VALUE.fullmatch(value) or value in dict(options_of(settings))[flags[typed]].choices
    return f"{name}={_as_python(value)}" if value and is_value else name + gap + value


def _as_python(value: str) -> str:
    if re.fullmatch(r"[\d.]+(,[\d.]+)+", value):
        return f"[{value.replace(',', ', ')}]"
    return value if re.fullmatch(r"[\d.]+|[A-Z]+", value) else f'"{value}"'
