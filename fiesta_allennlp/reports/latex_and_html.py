"""Formats numbers, names and whole files as text, for the records of a report and everything that shows them."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import LAYOUT_CHARACTERS, escape_invisible
from fiesta_allennlp.core.texts import count_text, duration_text, number_text, probability_text
from fiesta_allennlp.selecting.results.candidate_table import Table

if TYPE_CHECKING:
    from jinja2 import Environment

MISSING_TEXT = "-"

TEMPLATES_DIRECTORY = Path(__file__).parent / "templates"

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


Columns = Mapping[str, Callable[[Any], str]]
"""By heading, the text of an entry."""


def make_table(columns: Columns, entries: Sequence[Any], *, wrapped: Tuple[str, ...] = ()) -> Table:
    """Return a table with a row for each entry."""
    rows = [[text(entry) for text in columns.values()] for entry in entries]
    return Table(tuple(columns), rows, wrapped=wrapped)


def share_text(value: Optional[float]) -> str:
    return MISSING_TEXT if value is None else f"{value:.1%}"


def join_pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def join_lines(text: str) -> str:
    """Return text without line ends, with its other invisible characters written as escapes."""
    return escape_invisible(" ".join(text.split()))


def escape_latex(text: str) -> str:
    """Escape the text of a cell. At the start of a row, a bracket or a star would belong to the row end before it."""
    escaped = "".join(SPECIAL_IN_LATEX.get(character, character) for character in join_lines(text))
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped.startswith(("[", "*")) else escaped


def render_file(template: str, **values: Any) -> str:
    """Fill in a file of `templates`; those that end with `.html.j2` escape every value."""
    return escape_invisible(_template_environment().get_template(template).render(**values), keep=LAYOUT_CHARACTERS)


def render_paragraphs(template: str, **values: Any) -> List[str]:
    """Fill in a file of `templates`, and return each paragraph as one line. Invisible characters in values become
    escapes."""
    environment = _template_environment().overlay(finalize=lambda value: escape_invisible(str(value)))
    paragraphs = re.split(r"\n{2,}", environment.get_template(template).render(**values).strip())
    return [" ".join(paragraph.split("\n")) for paragraph in paragraphs]


@lru_cache(maxsize=1)
def _template_environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_DIRECTORY),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(join=join_pairs)
    environment.filters.update(latex=escape_latex, oneline=join_lines)
    environment.filters.update(number=number_text, probability=probability_text)
    environment.filters.update(counted=count_text, duration=duration_text, share=share_text)
    return environment
