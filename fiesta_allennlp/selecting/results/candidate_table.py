"""The columns of every table of candidates, declared once for all outputs, and the type of all tables."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from fiesta_allennlp.core.texts import MIN_DECIMALS, cost_text, interval_text, number_text, probability_text
from fiesta_allennlp.selecting.results.result_words import failures_text, unknown_text

MAX_DECIMALS = 12


@dataclass(frozen=True)
class Table:
    """A table of texts, with names in the first column. A terminal shows it by `__rich__`, a page by its template.
    `wrapped` are the headings of columns with texts instead of numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: Optional[str] = None
    wrapped: Tuple[str, ...] = ()

    def __rich__(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
        for heading in self.headings:
            if heading == self.headings[0] or heading in self.wrapped:
                table.add_column(heading, overflow="fold")
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
        is_shown: whether a result has anything to show in it. CSV and JSON have it always.
    """

    name: str
    heading: str
    outputs: FrozenSet[str] = EVERYWHERE
    value: Optional[Callable[[Any], Any]] = None
    text: Callable[[Any, int], str] = number_text
    cell: Optional[Callable[[Any], str]] = None
    of_documents: Optional[bool] = None
    is_shown: Callable[[Any], bool] = lambda result: True

    def value_of(self, candidate: Any) -> Any:
        return getattr(candidate, self.name) if self.value is None else self.value(candidate)

    def text_of(self, candidate: Any, decimals: int) -> str:
        return self.text(self.value_of(candidate), decimals) if self.cell is None else self.cell(candidate)


def _plain(value: Any, decimals: int) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value}"


def _standing_text(candidate: Any) -> str:
    """Return P(best), or `failed` or `removed`."""
    return candidate.state if candidate.withdrawn else probability_text(candidate.prob_best)


def _any_value(name: str) -> Callable[[Any], bool]:
    return lambda result: any(getattr(candidate, name) for candidate in result.candidates)


COLUMNS: List[Column] = [
    Column("name", "{candidate}", text=_plain),
    Column("num_evaluations", "runs", text=_plain, of_documents=False),
    Column("num_brought", "brought", text=_plain, of_documents=False, is_shown=_any_value("num_brought")),
    Column("num_documents", "documents", text=_plain, of_documents=True),
    Column(
        "num_pending",
        "{pending}",
        DATA | {TERMINAL},
        text=lambda value, decimals: str(value or ""),
        is_shown=_any_value("num_pending"),
    ),
    Column("num_queued", "queued", frozenset({TERMINAL}), text=_plain, is_shown=_any_value("num_queued")),
    Column("num_waiting", "waiting", frozenset({TERMINAL}), text=_plain, is_shown=_any_value("num_waiting")),
    Column("failures", "failed", cell=failures_text, is_shown=_any_value("failures")),
    Column("num_missed", "missed --min-score", DATA),
    Column(
        "num_unknown",
        "no gold label",
        EVERYWHERE - {LATEX},
        cell=lambda system: unknown_text(system.num_unknown, system.unknown_labels),
        of_documents=True,
        is_shown=_any_value("num_unknown"),
    ),
    Column("mean", "mean", of_documents=False),
    Column("sd", "sd", of_documents=False),
    Column(
        "study_score",
        "in the study",
        of_documents=False,
        is_shown=lambda result: any(candidate.study_score is not None for candidate in result.candidates),
    ),
    Column("measure", "{metric}", text=lambda value, decimals: number_text(value), of_documents=True),
    Column("prob_best", "P(best)", cell=_standing_text),
    Column("tier", "tier", text=_plain, is_shown=_any_value("tier")),
    Column(
        "prob_within_margin",
        "P(within {margin:g})",
        PAGES,
        text=lambda value, decimals: probability_text(value),
        is_shown=lambda result: result.margin > 0,
    ),
    Column("state", "state", DATA),
    Column("failed_because", "failed because", DATA),
    Column("interval", "95% interval", PAGES - {CSV}, text=interval_text),
    Column("median", "median", PAGES, of_documents=False),
    Column("min", "min", PAGES, of_documents=False),
    Column("max", "max", PAGES, of_documents=False),
    Column("num_queries", "queries", PAGES | {TERMINAL}, text=_plain, of_documents=True),
    Column("cost", "cost", PAGES | {TERMINAL}, text=lambda value, decimals: cost_text(value), of_documents=True),
    Column(
        "seconds",
        "seconds",
        DATA | {TERMINAL},
        text=lambda value, decimals: f"{value:.0f}",
        is_shown=_any_value("seconds"),
    ),
    Column(
        "mean_seconds",
        "mean s",
        PAGES,
        text=lambda value, decimals: number_text(value, 1 if value is None or value >= 1 else 3),
        is_shown=_any_value("seconds"),
    ),
    Column(
        "num_parameters", "parameters", PAGES, text=_plain, of_documents=False, is_shown=_any_value("num_parameters")
    ),
]
"""The columns in their order. Every output walks this list, so that one more entry is one more column everywhere."""


def columns_of(result: Any, output: str) -> List[Column]:
    """Return the columns that an output shows of a result."""
    return [
        column
        for column in COLUMNS
        if output in column.outputs
        and column.of_documents in (None, result.by_documents)
        and (output in DATA or column.is_shown(result))
    ]


def candidate_table(result: Any, output: str = TERMINAL, *, title: Optional[str] = None) -> Table:
    """Return the table of the candidates of a result as an output shows it, the best one first."""
    columns, decimals = columns_of(result, output), num_decimals(result.candidates)
    names = {"candidate": result.words.candidate, "metric": result.metric_name, "margin": result.margin}
    pending = "running" if result.running else "pending"
    return Table(
        headings=[column.heading.format(**names, pending=pending) for column in columns],
        rows=[[column.text_of(candidate, decimals) for column in columns] for candidate in result.ranked],
        title=title,
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
