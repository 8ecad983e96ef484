"""How numbers, names and whole files become text: what the records of a report and everything that shows them share."""

import re
from collections import Counter
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple

from rich.table import Table

from fiesta_allennlp.errors import LAYOUT, visible
from fiesta_allennlp.listeners.steady_console import SteadyConsole
from fiesta_allennlp.selection.summary import number_text

if TYPE_CHECKING:
    from jinja2 import Environment

Interval = Tuple[float, float]
"""Lower and upper end."""

MISSING = "-"

WIDTH = 100
"""Of a result's text, in characters."""

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


def interval_text(interval: Optional[Interval]) -> str:
    return MISSING if interval is None else f"{number_text(interval[0])} to {number_text(interval[1])}"


def p_value_text(value: Optional[float]) -> str:
    """Three decimals, but never a rounded 0."""
    return MISSING if value is None else "< 0.001" if value < 0.0005 else f"{value:.3f}"


def share_text(value: Optional[float]) -> str:
    return MISSING if value is None else f"{value:.1%}"


def shown_names(
    names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool] = str.isprintable
) -> Dict[str, str]:
    """Names of at most `length` characters, cut in the middle, because long ones often differ at the ends only.

    Names that would look the same are told apart by their place, as in `#3 bert…base`. Characters without a glyph are
    shown as a box.

    Args:
        has_glyph: whether one character can be drawn.
    """
    clean = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    shown = {name: _cut(text, length) for name, text in clean.items()}
    often = Counter(shown.values())
    for place, name in enumerate(names, start=1):
        if often[shown[name]] > 1:
            lead = f"#{place} "
            shown[name] = lead + _cut(clean[name], length - len(lead))
    return shown


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]


def one_line(text: str) -> str:
    """Text without line ends, with its other invisible characters written as escapes."""
    return visible(" ".join(text.split()))


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    return SPECIAL_IN_MARKDOWN.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(SPECIAL_IN_LATEX.get(character, character) for character in one_line(text))


def as_text(table: Table, lines: Sequence[str]) -> str:
    """The table, and the lines below it, as plain text."""
    shown = StringIO()
    console = SteadyConsole(file=shown, width=WIDTH, color_system=None, force_jupyter=False)
    console.print(table)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    return shown.getvalue().strip("\n")


def render(template: str, **values: Any) -> str:
    """A file of `templates`, filled in. Those that end with `.html.j2` escape every value; in the others `markdown`
    and `latex` are filters that do. Invisible characters are written as escapes."""
    return visible(_environment().get_template(template).render(**values), keep=LAYOUT)


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fiesta_allennlp.reports", "templates"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"markdown": escape_markdown, "latex": escape_latex, "oneline": one_line}
    environment.filters.update(filters, number=number_text)
    return environment
