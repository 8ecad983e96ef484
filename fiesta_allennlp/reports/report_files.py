"""From a selection or a table of scores to their report: the call of the command line and of Python, and its files."""

import csv
import io
import re
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import LAYOUT_CHARACTERS, ConfigError, escape_invisible
from fiesta_allennlp.core.files import atomic_replacement, to_csv_cell
from fiesta_allennlp.core.options import check_setting_names, list_to_tuple
from fiesta_allennlp.core.texts import interval_text, number_text
from fiesta_allennlp.reports.confirmation_report import confirmation_table
from fiesta_allennlp.reports.paragraph import build_checklist, collect_bibtex, compose_appendix, compose_paragraph
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_settings import ReportSettings
from fiesta_allennlp.reports.report_sources import read_selection, read_table, restrict_to_pair
from fiesta_allennlp.reports.words import failures_in_words, template_environment
from fiesta_allennlp.selecting.results.candidate_table import CSV, HTML, LATEX, Table, candidate_table, candidate_values
from fiesta_allennlp.selecting.results.verdict import task_table
from fiesta_allennlp.tables.table_settings import split_table_argument

PathLike = Union[str, Path]

FIGURES_DIRECTORY = "figures"
"""The directory of the figures, beside the other files."""


def report(
    source: Any = None, *, output: Optional[PathLike] = None, compare: Optional[Sequence[str]] = None, **settings: Any
) -> Report:
    """Report on a selection, on a table of scores, or on two of their candidates.

    Args:
        source: the directory of a selection, finished or running, or a table of scores: a file; a list of files; rows
            as mappings from names of columns to values; a data frame; or a mapping from candidates to their scores.
        output: the directory for the files of the report. If None, nothing is written.
        compare: the names of two candidates of `source`.
        settings: the command's other options by name, with underscores:

            - `belief`: for a table: a registered name or a config (default `moderated_t`).
            - `minimise`: for a table: the lowest mean is the best.
            - `columns`, `score`, `where`, `wide`, `parse`, `finished`, `ignore`: for a table: what it means, as for
              `next_runs`.
            - `splits`: for a table: `official` if all runs share one official split.
            - `done`: for a table: candidates that get no further runs. The report notes this.

    Raises:
        FiestaError: if the source or a candidate does not exist, an option does not apply to it, or the output cannot
            be written.
    """
    check_setting_names(settings, ReportSettings)
    table_options, content = split_table_argument(settings, source, "source")
    option_values = {name: list_to_tuple(value) for name, value in table_options.items()}
    report_settings = ReportSettings(**{**option_values, "compare": None if compare is None else tuple(compare)})
    if content is None and report_settings.source is None:
        raise ConfigError("pass the directory of a selection, or a table of scores.")
    path = Path(report_settings.source or "rows")
    is_directory = content is None and path.is_dir()
    report_record = (
        read_selection(path, report_settings) if is_directory else read_table(path, report_settings, content)
    )
    if report_settings.compare is not None:
        report_record = restrict_to_pair(report_record, report_settings.compare)
    if output is not None:
        write_report(report_record, Path(output))
    return report_record


def default_output(source: Optional[PathLike], compare: Optional[Sequence[str]]) -> Path:
    """Return the default output directory: inside the selection, or next to the table."""
    is_directory = source is None or Path(source).is_dir()
    path = Path(source or "") if is_directory else Path(re.split(r"[{*]", str(source))[0].strip("-") or "table")
    parent = path if is_directory else path.parent
    if compare is not None:
        return parent / re.sub(r"[^\w.-]+", "-", "-".join(["compare", *compare]))
    return RunDirectory(parent).report if is_directory else parent / f"{path.stem}-report"


def write_report(report: Report, directory: Path) -> None:
    """Write every file of a report. The page is there even where drawing fails. Refuse to write over files in a
    directory without a page, which no report made."""
    from fiesta_allennlp.reports import figures  # late, because matplotlib takes a second to import

    texts = {"table.tex": render_latex, "table.csv": render_candidates, "scores.csv": render_scores}
    pictures: Dict[str, Any] = {}
    if table := (report.whole or report).read_back:
        table.refuse_overwriting(*(directory / name for name in texts))
    page = directory / "report.html"
    if not page.exists() and (others := [name for name in texts if (directory / name).exists()]):
        raise ConfigError(f"{directory / others[0]} would be overwritten. Move it, or choose another --output.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        page.touch()
        for name, render in texts.items():
            _write_file(directory / name, render(report))
        try:
            pictures.update(figures.draw_all(report, directory / FIGURES_DIRECTORY))
        finally:
            _write_file(page, render_html(report, pictures))
    except OSError as error:
        raise ConfigError(f"cannot write to --output {directory}: {error}. Use another directory.") from error


def _write_file(path: Path, text: str) -> None:
    with atomic_replacement(path) as temporary_path:
        temporary_path.write_text(text, encoding="utf-8", newline="")


def render_candidates(report: Report) -> str:
    """Return the table of the candidates as CSV."""
    entries = candidate_values(report.result, CSV)
    return _render_csv([entries[0], *(entry.values() for entry in entries)])


def render_scores(report: Report) -> str:
    """Return every score as a table that `fiesta replay` reads."""
    first = 1 if report.result.on_official_splits else 0  # which have no column of splits
    rows = [
        (candidate.name, *run[first:], report.result.metric)
        for candidate in report.result.candidates
        for run in zip(candidate.split_seeds, candidate.replicates, candidate.scores, strict=True)
    ]
    return _render_csv([("candidate", *("split", "seed", "score")[first:], "metric"), *rows])


def _render_csv(rows: Iterable[Iterable[Any]]) -> str:
    csv_text = io.StringIO()
    csv.writer(csv_text, lineterminator="\n").writerows([to_csv_cell(value) for value in row] for row in rows)
    return csv_text.getvalue()


SPECIAL_IN_LATEX = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def join_lines(text: str) -> str:
    """Return text without line ends, with its other invisible characters written as escapes."""
    return escape_invisible(" ".join(text.split()))


def escape_latex(text: str) -> str:
    """Escape the text of a cell. At the start of a row, a bracket or a star would belong to the row end before it."""
    escaped = "".join(SPECIAL_IN_LATEX.get(character, character) for character in join_lines(text))
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped.startswith(("[", "*")) else escaped


def render_file(template: str, **values: Any) -> str:
    """Fill in a file of `templates`; those that end with `.html.j2` escape every value."""
    environment = template_environment()
    environment.filters.update(latex=escape_latex, oneline=join_lines)
    return escape_invisible(environment.get_template(template).render(**values), keep=LAYOUT_CHARACTERS)


def render_latex(report: Report) -> str:
    """Return a `tabular` of the candidates and one of the confirmations."""
    tables = [candidate_table(report.result, LATEX), confirmation_table(report.confirmations)]
    return render_file("table.tex.j2", report=report, tables=[table for table in tables if table.rows])


def render_html(report: Report, pictures: Mapping[str, Any]) -> str:
    """Return the page, which needs no other file and no network. `pictures` has a `Picture` for each figure."""
    tables = {
        "confirmation": confirmation_table(report.confirmations),
        "tasks": task_table(report.result, HTML),
        "differences": Table.of(difference_columns(report.result.decimals), report.comparisons),
    }
    return render_file(
        "report.html.j2",
        report=report,
        result=report.result,
        words=report.result.words,
        candidates=candidate_table(report.result, HTML),
        failures=failures_in_words(report.result),
        tables={name: table for name, table in tables.items() if table.rows},
        pictures=pictures,
        paragraph=compose_paragraph(report),
        appendix=compose_appendix(report),
        bibtex=collect_bibtex(report),
        checklist=build_checklist(report),
    )


def difference_columns(decimals: int) -> Dict[str, Any]:
    """Return the columns of the comparisons."""
    return {
        "against": lambda comparison: comparison.second,
        "shared splits": lambda comparison: str(comparison.num_pairs),
        "mean difference": lambda comparison: number_text(comparison.mean_difference, decimals, sign="+"),
        "95% interval": lambda comparison: interval_text(comparison.interval, decimals),
    }
