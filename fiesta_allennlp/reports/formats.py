"""Formats numbers, names and whole files as text, for the records of a report and everything that shows them."""

import re
from collections import Counter
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from rich.table import Table

from fiesta_allennlp.core.errors import LAYOUT_CHARACTERS, escape_invisible
from fiesta_allennlp.selection.console import PipeSafeConsole
from fiesta_allennlp.selection.result import num_decimals
from fiesta_allennlp.selection.summary import (
    MIN_DECIMALS,
    count_text,
    duration_text,
    number_text,
    probability_text,
)
from fiesta_allennlp.strategies.base import Margin

if TYPE_CHECKING:
    from jinja2 import Environment

Interval = Tuple[float, float]
"""Lower and upper end."""

LEVEL = 0.95
"""The probability of every interval in a report."""

MISSING = "-"

TEMPLATES = Path(__file__).parent / "templates"

WIDTH = 100
"""Characters in a line of a result's text."""

SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")

SPECIAL_IN_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def interval_text(interval: Optional[Interval], digits: int = MIN_DECIMALS) -> str:
    return MISSING if interval is None else " to ".join(number_text(end, digits) for end in interval)


def share_text(value: Optional[float]) -> str:
    return MISSING if value is None else f"{value:.1%}"


def join_pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def shown_names(names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool]) -> Dict[str, str]:
    """Return names cut in the middle to `length` characters. Those that would look the same get their place in front,
    and characters that cannot be drawn become a box."""
    drawable = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    shown_by_name = {name: _cut(text, length) for name, text in drawable.items()}
    num_uses = Counter(shown_by_name.values())
    for position, name in enumerate(names, start=1):
        if num_uses[shown_by_name[name]] > 1:
            position_prefix = f"#{position} "
            shown_by_name[name] = position_prefix + _cut(drawable[name], length - len(position_prefix))
    return shown_by_name


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    num_tail = (length - 1) // 2
    return text[: length - 1 - num_tail] + "…" + text[len(text) - num_tail :]


def one_line(text: str) -> str:
    """Return text without line ends, with its other invisible characters written as escapes."""
    return escape_invisible(" ".join(text.split()))


def escape_markdown(text: str) -> str:
    return SPECIAL_IN_MARKDOWN.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    return "".join(SPECIAL_IN_LATEX.get(character, character) for character in one_line(text))


Lines = Sequence[Union[Table, str]]
"""Tables and sentences, in the order in which they are shown."""


class Shown:
    """A result that shows itself as text, on a terminal and in a notebook."""

    def shown(self) -> Lines:
        """Return its table and the sentences below it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        text = StringIO()
        console = PipeSafeConsole(file=text, width=WIDTH, color_system=None, force_jupyter=False)
        console.print(*self.shown())
        return text.getvalue().strip("\n")


def render(template: str, **values: Any) -> str:
    """Fill in a file of `templates`; those that end with `.html.j2` escape every value."""
    return escape_invisible(_environment().get_template(template).render(**values), keep=LAYOUT_CHARACTERS)


def prose(name: str, *args: Any, **values: Any) -> str:
    """Return a paragraph of `prose.j2`, by the name of its macro, as one line."""
    macro = getattr(_environment().get_template("prose.j2").module, name)
    return one_line(macro(*args, **values))


def render_paragraphs(template: str, **values: Any) -> List[str]:
    """Fill in a file of `templates`, and return each paragraph as one line. Invisible characters in values become
    escapes."""
    plain = _environment().overlay(finalize=lambda value: escape_invisible(str(value)))
    paragraphs = re.split(r"\n{2,}", plain.get_template(template).render(**values).strip())
    return [" ".join(paragraph.split("\n")) for paragraph in paragraphs]


def render_rows(template: str, **values: Any) -> Tuple[Tuple[str, str], ...]:
    """Fill in a file of `templates` whose paragraphs are each a key, a colon and a value."""
    from jinja2 import UndefinedError

    try:
        rows = [paragraph.partition(":") for paragraph in render_paragraphs(template, **values)]
    except UndefinedError as error:
        raise LookupError(str(error)) from error
    return tuple((key, value.strip()) for key, _, value in rows)


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(prose=prose, join=join_pairs)
    environment.filters.update(markdown=escape_markdown, latex=escape_latex, oneline=one_line, decimals=num_decimals)
    environment.filters.update(number=number_text, probability=probability_text, interval=interval_text)
    environment.filters.update(counted=count_text, duration=duration_text, share=share_text)
    environment.filters.update(margin=lambda margin: Margin.of(margin).text.replace("=", " = "))
    return environment
