"""Reads a table of scores by a contract: takes the columns that it is told, refuses what contradicts itself, guesses
nothing else, and keeps what it understood as a `ReadBack`."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, DefaultDict, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import (
    ConfigError,
    DataError,
    escape_invisible,
    join_some,
)
from fiesta_allennlp.core.files import file_digest, shorten
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.selection.brought import BroughtRuns
from fiesta_allennlp.selection.metrics import UNNAMED, Metric, error_word
from fiesta_allennlp.selection.settings import INDEPENDENT, OFFICIAL, SHARED
from fiesta_allennlp.tables.columns import LARGEST, ColumnFinder, Columns
from fiesta_allennlp.tables.forms import (
    Content,
    Line,
    SplitSource,
    cell_name,
    cell_number,
    cell_text,
    make_sheet,
    read_sheet,
)
from fiesta_allennlp.tables.read_back import ReadBack
from fiesta_allennlp.tables.rows import Outcome, RunRow, RunTable, make_run_table
from fiesta_allennlp.tables.settings import BroughtSettings, NextSettings
from fiesta_allennlp.tables.unused_columns import UnusedColumns, unused_columns

FINISHED, FAILED, RUNNING = "finished", "failed", "running"
"""What the state of a run can mean. `failed` also stands for the score of a run without one."""

STATES: Mapping[str, str] = {
    **dict.fromkeys(("finished", "complete", "completed"), FINISHED),
    **dict.fromkeys(("failed", "crashed", "killed", "fail", "pruned", "preempted"), FAILED),
    **dict.fromkeys(("running", "waiting", "scheduled", "pending", "queued", "preempting"), RUNNING),
}
"""The states of runs in Weights & Biases, MLflow, Optuna and `evaluations.csv`, in lower case."""

MAX_SECONDS = 1e9
"""The longest duration of a run, some 30 years."""


def read_rows(path: Path, settings: Any, content: Content = None, *, is_one_candidate: bool = False) -> RunTable:
    """Read a table of any form: the files that the settings name, or the `content` that Python has.

    Args:
        path: the first file, or the name of the content in messages.
        settings: `TableSettings` with `splits`.
        is_one_candidate: whether a single file without a candidate column has one candidate, as each of several does.

    Raises:
        ConfigError: if a file does not exist or a setting does not fit.
        DataError: if the table is wrong, with the line and the value.
    """
    is_official = settings.splits == OFFICIAL
    blocks = None if is_official else settings.evaluations_per_split or 1
    paths = [path, *map(Path, settings.files)] if content is None else []
    if is_official and settings.evaluations_per_split:
        raise ConfigError("--evaluations-per-split cannot be combined with --splits official. Use only one.")
    sheets = [read_sheet(file, scores_per_split=blocks) for file in paths]
    sheets = sheets or [make_sheet(content, str(path), scores_per_split=blocks)]
    if settings.evaluations_per_split is not None and {sheet.splits_from for sheet in sheets} != {SplitSource.LISTS}:
        raise ConfigError(
            f"--evaluations-per-split is for lists of scores: {path} already defines which scores share a split. "
            "Remove the option."
        )
    stems = [Path(sheet.name).stem for sheet in sheets]
    finder = ColumnFinder(settings, is_official=is_official, names_files=is_one_candidate or len(sheets) > 1)
    all_columns: List[Columns] = []
    for sheet, stem in zip(sheets, stems, strict=True):
        candidate = stem if stems.count(stem) == 1 else str(Path(sheet.name).with_suffix(""))
        all_columns.append(finder.find(sheet, candidate))
    return _make_run_table(all_columns, settings)


def read_brought_runs(
    settings: BroughtSettings, selection_settings: Mapping[str, Any], content: Content = None
) -> Tuple[BroughtRuns, ReadBack]:
    """Read the runs that exist already, for a selection with these settings, and what was understood of their table:
    the one that `settings` name, or its `content` from Python. Raise as `read_rows` does."""
    path = Path(str(settings.scores or "rows"))
    columns = {name: getattr(settings, name) for name in ("columns", "where", "wide")}
    splits = OFFICIAL if selection_settings.get("splits") == OFFICIAL else SHARED
    minimise = Metric.parse(selection_settings.get("metric") or "").minimise
    table_settings = NextSettings(**columns, splits=splits, minimise=minimise)
    table = read_rows(path, table_settings, content, is_one_candidate=True)
    return table.brought_runs(path.name, file_digest(path) if content is None else ""), table.read_back


def _make_run_table(all_columns: Sequence[Columns], settings: Any) -> RunTable:
    rows = [row for columns in all_columns for row in _read_rows(columns)]
    unused = unused_columns([(columns.sheet, columns.used) for columns in all_columns])
    complete_rows = _complete_rows(rows, all_columns[0])
    has_splits = any(row.split for row in complete_rows)
    if not complete_rows:
        has_splits = all_columns[0].positions["split"] is not None
    return make_run_table(
        _select_rows(complete_rows, unused),
        name=join_some([columns.sheet.name for columns in all_columns]),
        metric=_determine_metric(complete_rows, all_columns[0], settings),
        splits_from=all_columns[0].sheet.splits_from if has_splits else SplitSource.NONE,
        is_independent=settings.splits == INDEPENDENT,
        varying=unused.find_varying(rows),
        num_nameless=len(rows) - len(complete_rows),
        candidate_column=all_columns[0].header_of("candidate"),
        repeated=unused.find_repeated(complete_rows),
    )


def _read_rows(columns: Columns) -> Iterator[RunRow]:
    sheet = columns.sheet
    for number, cells in sheet.lines:
        name = columns.cell(cells, "candidate")
        yield RunRow(
            candidate=escape_invisible(cell_name(name) and cell_text(name)),
            split=escape_invisible(cell_name(columns.cell(cells, "split"))),
            seed=escape_invisible(cell_name(columns.cell(cells, "seed"))),
            outcome=_read_outcome(columns, (number, cells)),
            metric=cell_name(columns.cell(cells, "metric")),
            seconds=_read_seconds(columns, (number, cells)),
            steps=tuple(_read_step(columns, (number, cells), position) for position in columns.largest),
            sheet=sheet,
            number=number,
            cells=cells,
        )


def _determine_metric(rows: Sequence[RunRow], first_columns: Columns, settings: Any) -> Metric:
    """Return the metric, which the metric column names, or else the score column. Refuse two metrics, and an error
    without a direction."""
    first_rows: Dict[str, RunRow] = {}
    for row in rows:
        if row.metric:
            first_rows.setdefault(row.metric, row)
    by_metric = {Metric.parse(text): row for text, row in reversed(first_rows.items())}
    if len(by_metric) > 1:
        row, top = list(by_metric.values())[-2:]
        raise DataError(
            f"{row.where}: the metric is {row.metric}, but on {top.where} it is {top.metric}. Compare scores "
            f"of one metric: add --where {first_columns.header_of('metric')}={top.metric}."
        )
    header, typed_name = first_columns.header_of("score"), (settings.columns or {}).get("score", "")
    is_signed = typed_name[:1] in ("+", "-") and comparison_key(typed_name[1:]) == comparison_key(header)
    text = next(iter(first_rows), typed_name[0] + header if is_signed else header)
    metric = Metric(escape_invisible(Metric.parse(text).name) or UNNAMED.name, text.startswith("-"))
    if metric.minimise or settings.minimise is not None:
        return replace(metric, minimise=metric.minimise or bool(settings.minimise))
    if error := error_word(text):
        where = first_rows[text].where if text in first_rows else first_columns.sheet.header
        raise DataError(
            f"{where}: '{text}' has '{error}' in its name, so lower is usually better, but without a sign the "
            "highest mean wins. Add --minimise, or --no-minimise to maximize it."
        )
    return metric


def _read_outcome(columns: Columns, line: Line) -> Outcome:
    """Return the score of a run, the reason why it has none, or None if it has not finished."""
    number, cells = line
    cell, reason = columns.cell(cells, "score"), cell_name(columns.cell(cells, "error"))
    state = _read_state(columns, line)
    if state == RUNNING:
        return None
    text = cell_text(cell)
    if state == FAILED or text.casefold() == FAILED or (reason and not cell_name(cell)):
        return reason or FAILED
    if not text:
        return None if state is None else "finished without a score"
    score = cell_number(cell)
    if score is None or abs(score) > MAX_SCORE:
        raise DataError(
            f"{columns.sheet.where(number)}: a score must be a number of at most {MAX_SCORE:g} in magnitude but got "
            f"'{shorten(escape_invisible(text))}'. Correct it, write {FAILED} for a run that ended without a score, or "
            "leave it empty (null in JSON, None in Python) for a run that has not finished."
        )
    return score


def _read_state(columns: Columns, line: Line) -> Optional[str]:
    """Return what the state of a run means, None if it has none."""
    text = cell_name(columns.cell(line[1], "state")).rpartition(".")[2]
    if text and text.casefold() not in STATES:
        raise DataError(
            f"{columns.sheet.where(line[0])}: '{columns.header_of('state')}' is '{shorten(escape_invisible(text))}', "
            f"which is not a known state of a run. Known states: {', '.join(STATES)}. If the column is not about runs, "
            "add --columns state=."
        )
    return STATES.get(text.casefold())


def _read_seconds(columns: Columns, line: Line) -> Optional[float]:
    """Return the duration of a run, None if it has none."""
    cell = columns.cell(line[1], "seconds")
    if not cell_name(cell):
        return None
    seconds = cell_number(cell)
    if seconds is None or not 0 <= seconds <= MAX_SECONDS:
        raise DataError(
            f"{columns.sheet.where(line[0])}: '{columns.header_of('seconds')}' must be the seconds of a run, a number "
            f"from 0 to {MAX_SECONDS:g}, but is '{shorten(escape_invisible(cell_text(cell)))}'. Correct it, or ignore "
            "the column: --columns seconds=."
        )
    return seconds


def _read_step(columns: Columns, line: Line, position: int) -> float:
    step = cell_number(line[1][position])
    if step is None:
        raise DataError(
            f"{columns.sheet.where(line[0])}: --where {columns.sheet.columns[position]}={LARGEST} needs numbers but "
            f"found '{shorten(cell_text(line[1][position]))}'."
        )
    return step


def _complete_rows(rows: Sequence[RunRow], first_columns: Columns) -> List[RunRow]:
    """Return the rows that have the names that any row has. Refuse a score without them. Where neither splits nor seeds
    tell runs apart, each row is a run with a number of its own, unless the largest value of a column counts."""
    kinds = ["candidate", *(kind for kind in ("split", "seed") if any(getattr(row, kind) for row in rows))]
    complete_rows: List[RunRow] = []
    num_rows: DefaultDict[str, int] = defaultdict(int)
    for row in rows:
        missing = next((kind for kind in kinds if not getattr(row, kind)), None)
        if missing is None:
            is_numbered = len(kinds) == 1 and not row.steps
            complete_rows.append(row._replace(seed=str(num_rows[row.candidate])) if is_numbered else row)
            num_rows[row.candidate] += 1
        elif row.is_scored:
            names = join_some(list(map(first_columns.header_of, kinds)))
            raise DataError(
                f"{row.where}: '{first_columns.header_of(missing)}' is empty. Every row with a score needs {names}. "
                "Fill it in, or remove the row."
            )
    return complete_rows


def _select_rows(rows: Sequence[RunRow], unused: UnusedColumns) -> List[RunRow]:
    """Return one row for each run: that with a score, of several that of the largest step, or else the last. Refuse two
    scores of one run."""
    row_by_run: Dict[Tuple[str, str, str], RunRow] = {}
    for row in rows:
        run = (row.candidate, row.split, row.seed)
        earlier = row_by_run.pop(run, row)
        ranks = [(each.is_scored, each.steps) for each in (earlier, row)]
        if earlier is not row and row.is_scored and ranks[0] == ranks[1]:
            split, seed = (f", {kind} {getattr(row, kind)}" if getattr(row, kind) else "" for kind in ("split", "seed"))
            raise DataError(
                f"{row.where}: candidate '{row.candidate}'{split}{seed} already has a score in {earlier.where}. "
                f"{unused.describe_repeat(row, earlier, rows)}"
            )
        row_by_run[run] = row if ranks[1] >= ranks[0] else earlier
    return list(row_by_run.values())
