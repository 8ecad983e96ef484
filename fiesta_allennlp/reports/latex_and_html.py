"""Formats numbers, names and whole files as text, for the records of a report and everything that shows them."""

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import LAYOUT_CHARACTERS, escape_invisible
from fiesta_allennlp.core.texts import count_text, duration_text, number_text, probability_text
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, FailedRun
from fiesta_allennlp.selecting.results.candidate_table import Table
from fiesta_allennlp.selecting.results.result import Result

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


def reason_text(failed_run: FailedRun, result: Result) -> str:
    """Give the reason of a failure, with its machine if there are several."""
    is_unclear = failed_run.machine and len(result.machines) > 1
    return f"{f'on {failed_run.machine}: ' if is_unclear else ''}{failed_run.kind}: {failed_run.error}"


def withdrawn_text(candidate: CandidateResult) -> str:
    """Give the reason for which a candidate does not take part."""
    num_missed, num_runs = candidate.num_missed, candidate.num_missed + candidate.num_evaluations
    failures = count_text(candidate.num_counted_failures, "failure")
    return {
        None: "you removed it with --allow removed; its runs are kept but do not count",
        "unfit": "its runs lack memory or another resource that the runs of other candidates have",
        "min_score": f"{num_missed} of {num_runs} runs missed --min-score",
        "max_failures": f"{failures}, as many as --max-failures allows",
    }[candidate.failed_because]


def shorten_names(names: Sequence[str], length: int, *, has_glyph: Callable[[str], bool]) -> Dict[str, str]:
    """Return names cut in the middle to `length` characters. Those that would look the same get their place in front,
    and characters that cannot be drawn become a box."""
    drawable_names = {name: "".join(c if has_glyph(c) else "□" for c in name) for name in names}
    short_names = {name: _cut_middle(text, length) for name, text in drawable_names.items()}
    num_uses = Counter(short_names.values())
    for position, name in enumerate(names, start=1):
        if num_uses[short_names[name]] > 1:
            position_prefix = f"#{position} "
            short_names[name] = position_prefix + _cut_middle(drawable_names[name], length - len(position_prefix))
    return short_names


def _cut_middle(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    tail_length = (length - 1) // 2
    return text[: length - 1 - tail_length] + "…" + text[len(text) - tail_length :]


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
    environment.filters.update(withdrawn=withdrawn_text, reason=reason_text)
    environment.filters.update(counted=count_text, duration=duration_text, share=share_text)
    return environment
