"""The columns of every table of candidates, declared once for all outputs, and how results show themselves."""

import json
from dataclasses import dataclass
from functools import singledispatch
from io import StringIO
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from fiesta_allennlp.core.console import PipeSafeConsole
from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.texts import MIN_DECIMALS, cost_text, interval_text, number_text, probability_text
from fiesta_allennlp.selecting.results.candidate_result import failures_text

MAX_DECIMALS = 12


MIN_TEXT_WIDTH = 9
"""The characters of a name that a line of a terminal has at least."""

Columns = Mapping[str, Callable[[Any], str]]
"""By heading, the text of an entry."""


@dataclass(frozen=True)
class Table:
    """A table of texts, with names in the first column. A terminal shows it by `__rich__`, a page by its template.
    `wrapped` are the headings of columns with texts instead of numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: Optional[str] = None
    wrapped: Tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Columns, entries: Iterable[Any], *, wrapped: Tuple[str, ...] = ()) -> "Table":
        """Return a table with a row for each entry."""
        return cls(tuple(columns), [[text(entry) for text in columns.values()] for entry in entries], wrapped=wrapped)

    def __rich__(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
        for heading, *cells in zip(self.headings, *self.rows, strict=True):
            if heading == self.headings[0] or heading in self.wrapped:
                width = max(map(len, (heading, *cells)))
                table.add_column(heading, overflow="fold", min_width=min(width, MIN_TEXT_WIDTH))
            else:
                table.add_column(heading, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


TERMINAL, HTML, LATEX, CSV, JSON = "terminal", "html", "latex", "csv", "json"
DATA = frozenset({CSV, JSON})
PAGES = frozenset({HTML}) | DATA
EVERYWHERE = PAGES | {TERMINAL, LATEX}


@dataclass(frozen=True)
class Column:
    """A column of every table of candidates.

    Attributes:
        name: its key in JSON, and its heading in CSV.
        heading: its heading elsewhere, which may name `{candidate}`, `{metric}`, `{margin}` or `{pending}`.
        outputs: where it is shown.
        value: the value of a candidate, None if it has none. By default, it is the attribute `name`.
        text: the value as text, with these decimals.
        cell: a candidate as text, instead of the text of its value.
        of_documents: whether it is only about selections by documents, or only about others. None if about both.
        is_shown: whether a result with these values has anything to show in it. CSV and JSON have it always.
    """

    name: str
    heading: str
    outputs: FrozenSet[str] = EVERYWHERE
    value: Optional[Callable[[Any], Any]] = None
    text: Callable[[Any, int], str] = number_text
    cell: Optional[Callable[[Any], str]] = None
    of_documents: Optional[bool] = None
    is_shown: Callable[[Any, Sequence[Any]], bool] = lambda result, values: True

    def value_of(self, candidate: Any) -> Any:
        return getattr(candidate, self.name) if self.value is None else self.value(candidate)

    def text_of(self, candidate: Any, decimals: int) -> str:
        return self.text(self.value_of(candidate), decimals) if self.cell is None else self.cell(candidate)


def _plain(value: Any, decimals: int) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


def _standing_text(candidate: Any) -> str:
    """Return P(best), or `failed` or `removed`."""
    return candidate.state if candidate.withdrawn else probability_text(candidate.prob_best)


def _any_value(result: Any, values: Sequence[Any]) -> bool:
    return any(values)


def _has_margin(result: Any, values: Sequence[Any]) -> bool:
    return bool(result.margin > 0)


def _probability(value: Any, decimals: int) -> str:
    return probability_text(value)


def _seconds(value: Optional[float], decimals: int) -> str:
    return number_text(value, 1 if value is None or value >= 1 else 3)


def _unknown_text(system: Any) -> str:
    """Format the number of answers that are no gold label, and the commonest; empty if all are gold labels."""
    labels = [f"{json.dumps(name, ensure_ascii=False)} {number}" for name, number in system.unknown_labels.items()]
    return f"{system.num_unknown}: {join_some(labels)}" if system.num_unknown else ""


SCREENS, NO_LATEX = DATA | {TERMINAL}, EVERYWHERE - {LATEX}

COLUMNS: List[Column] = [
    Column("name", "{candidate}", text=_plain),
    Column("num_evaluations", "runs", text=_plain, of_documents=False),
    Column("num_brought", "brought", text=_plain, of_documents=False, is_shown=_any_value),
    Column("num_documents", "documents", text=_plain, of_documents=True),
    Column("num_pending", "{pending}", SCREENS, text=lambda value, decimals: str(value or ""), is_shown=_any_value),
    Column("num_queued", "queued", frozenset({TERMINAL}), text=_plain, is_shown=_any_value),
    Column("failures", "failed", cell=failures_text, is_shown=_any_value),
    Column("num_missed", "missed --min-score", DATA),
    Column("num_unknown", "no gold label", NO_LATEX, cell=_unknown_text, of_documents=True, is_shown=_any_value),
    Column("mean", "mean", of_documents=False),
    Column("sd", "sd", of_documents=False),
    Column("study_score", "in the study", of_documents=False, is_shown=_any_value),
    Column("measure", "{metric}", text=lambda value, decimals: number_text(value), of_documents=True),
    Column("prob_best", "P(best)", cell=_standing_text),
    Column("tier", "tier", text=_plain, is_shown=_any_value),
    Column("prob_within_margin", "P(within {margin:g})", PAGES, text=_probability, is_shown=_has_margin),
    Column("state", "state", DATA),
    Column("failed_because", "failed because", DATA),
    Column("interval", "95% interval", PAGES - {CSV}, text=interval_text),
    Column("median", "median", PAGES, of_documents=False),
    Column("min", "min", PAGES, of_documents=False),
    Column("max", "max", PAGES, of_documents=False),
    Column("num_queries", "queries", PAGES | {TERMINAL}, text=_plain, of_documents=True),
    Column("cost", "cost", PAGES | {TERMINAL}, text=lambda value, decimals: cost_text(value), of_documents=True),
    Column("seconds", "seconds", SCREENS, text=lambda value, decimals: f"{value:.0f}", is_shown=_any_value),
    Column("mean_seconds", "mean s", PAGES, text=_seconds, is_shown=_any_value),
    Column("num_parameters", "parameters", PAGES, text=_plain, of_documents=False, is_shown=_any_value),
]
"""The columns in their order. Every output walks this list, so that one more entry is one more column everywhere."""


def columns_of(result: Any, output: str) -> List[Column]:
    """Return the columns that an output shows of a result."""
    return [
        column
        for column in COLUMNS
        if output in column.outputs
        and column.of_documents in (None, result.by_documents)
        and (output in DATA or column.is_shown(result, [column.value_of(c) for c in result.candidates]))
    ]


def candidate_table(result: Any, output: str = TERMINAL, *, title: Optional[str] = None) -> Table:
    """Return the table of the candidates of a result as an output shows it, the best one first."""
    columns = columns_of(result, output)
    names = {"candidate": result.words.candidate, "metric": result.metric_name, "margin": result.margin}
    pending = "running" if result.running else "pending"
    return Table(
        headings=[column.heading.format(**names, pending=pending) for column in columns],
        rows=[[column.text_of(candidate, result.decimals) for column in columns] for candidate in result.ranked],
        title=title,
        wrapped=("no gold label",),
    )


def candidate_values(result: Any, output: str) -> List[Dict[str, Any]]:
    """Return the values of every candidate by the names of their columns, for CSV and JSON."""
    columns = columns_of(result, output)
    return [{column.name: column.value_of(candidate) for column in columns} for candidate in result.candidates]


def num_decimals(candidates: Iterable[Any]) -> int:
    """Return the decimals of a table: at least 4, and so many that the smallest sd has two significant digits. Sds
    that come from rounding alone do not count."""
    sds = [c.sd for c in candidates if c.sd and c.mean is not None and c.sd > 1e-12 * abs(c.mean)]
    num_needed = 1 - int(f"{min(sds):.1e}".partition("e")[2]) if sds else 0
    return min(max(num_needed, MIN_DECIMALS), MAX_DECIMALS)


TEXT_WIDTH = 100
"""Characters in a line of a result's text."""

TerminalLines = Sequence[Union[Table, str]]
"""Tables and sentences, in the order in which they are shown."""


@singledispatch
def show(result: Any) -> TerminalLines:
    """Return the table of a result and the sentences below it. A result that nobody put into words is its fields."""
    return [f"{type(result).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(result).items())})"]


class Printable:
    """A result that shows itself as text, on a terminal and in a notebook."""

    def __repr__(self) -> str:
        buffer = StringIO()
        console = PipeSafeConsole(file=buffer, width=TEXT_WIDTH, color_system=None, force_jupyter=False)
        console.print(*show(self))
        return buffer.getvalue().strip("\n")
