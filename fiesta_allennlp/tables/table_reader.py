"""Reads a table of scores by a contract: takes the columns that it is told, refuses what contradicts itself, guesses
nothing else, and keeps what it understood for `ReadBack`."""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, DefaultDict, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import (
    MAX_CHOICES,
    ConfigError,
    DataError,
    did_you_mean,
    escape_invisible,
    join_some,
    near_names,
)
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key, split_names
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.selection.metrics import Metric, error_word
from fiesta_allennlp.selection.settings import INDEPENDENT, OFFICIAL
from fiesta_allennlp.tables.forms import (
    Content,
    Line,
    Sheet,
    SplitSource,
    cell_name,
    cell_number,
    cell_text,
    make_sheet,
    melt,
    read_sheet,
)
from fiesta_allennlp.tables.rows import Outcome, RunRow, RunTable
from fiesta_allennlp.tables.settings import COLUMNS
from fiesta_allennlp.tables.sources import UNNAMED
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

LARGEST = "last"
"""The value of `--where COLUMN=last`, which keeps the largest value of each run."""


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
    names_files = is_one_candidate or len(sheets) > 1
    return _TableReader(settings, is_official=is_official, names_files=names_files).read_sheets(sheets)


@dataclass(frozen=True)
class _Columns:
    """The positions of the columns of a sheet: those of `COLUMNS`, those of which the largest value counts, and all
    that are used."""

    sheet: Sheet
    positions: Mapping[str, Optional[int]]
    largest: Tuple[int, ...]
    used: Set[int]

    def cell(self, cells: Sequence[Any], column: str) -> Any:
        position = self.positions[column]
        return None if position is None else cells[position]

    def header_of(self, column: str) -> str:
        position = self.positions[column]
        return column if position is None else self.sheet.columns[position]


@dataclass(frozen=True)
class _TableReader:
    """Makes rows of sheets as the settings of a command say."""

    settings: Any
    is_official: bool
    names_files: bool

    @property
    def headers(self) -> Mapping[str, str]:
        return self.settings.columns or {}

    def read_sheets(self, sheets: Sequence[Sheet]) -> RunTable:
        stems = [Path(sheet.name).stem for sheet in sheets]
        all_columns: List[_Columns] = []
        for sheet, stem in zip(sheets, stems, strict=True):
            candidate = stem if stems.count(stem) == 1 else str(Path(sheet.name).with_suffix(""))
            all_columns.append(self._find_columns(sheet, candidate))
        rows = [row for columns in all_columns for row in self._read_rows(columns)]
        unused = unused_columns([(columns.sheet, columns.used) for columns in all_columns])
        complete_rows = _complete_rows(rows, all_columns[0])
        has_splits = any(row.split for row in complete_rows)
        if not complete_rows:
            has_splits = all_columns[0].positions["split"] is not None
        return RunTable(
            join_some([sheet.name for sheet in sheets]),
            _select_rows(complete_rows, unused),
            all_columns[0].sheet.splits_from if has_splits else SplitSource.NONE,
            self._determine_metric(complete_rows, all_columns[0]),
            is_independent=self.settings.splits == INDEPENDENT,
            varying=unused.find_varying(rows),
            num_nameless=len(rows) - len(complete_rows),
            candidate_column=all_columns[0].header_of("candidate"),
            repeated=unused.find_repeated(complete_rows),
        )

    # Which columns there are.

    def _find_columns(self, sheet: Sheet, candidate: str) -> _Columns:
        """Find all columns. Refuse a table without one that it needs. A file without the column has one `candidate`."""
        sheet, filtered_names, largest_names = self._filter_lines(sheet)
        sheet = self._melt_wide_sheet(sheet, filtered_names, numbers_rows=not largest_names)
        if self.names_files and "candidate" not in self.headers and find_column(sheet, "candidate") is None:
            lines = [(number, (*cells, candidate)) for number, cells in sheet.lines]
            sheet = replace(sheet, columns=(*sheet.columns, "candidate"), lines=lines)
        positions = {column: self._find_position(sheet, column) for column in COLUMNS}
        for column in COLUMNS:
            if positions[column] is None and (self.headers.get(column) or column in ("candidate", "score")):
                self._refuse_column(sheet, column, self.headers.get(column) or column)
        used = {position for position in positions.values() if position is not None}
        used |= {position for position, name in enumerate(sheet.columns) if name in filtered_names}
        if self.is_official:
            positions["split"] = None
        return _Columns(sheet, positions, tuple(map(sheet.columns.index, largest_names)), used)

    def _find_position(self, sheet: Sheet, column: str) -> Optional[int]:
        """Return the position of a column, None if the table has none or `--columns` leaves it out."""
        header = self.headers.get(column, column)
        position = find_column(sheet, header) if header else None
        has_sign = column == "score" and header[:1] in ("+", "-")
        return find_column(sheet, header[1:]) if position is None and has_sign else position

    def _refuse_column(self, sheet: Sheet, column: str, header: str) -> NoReturn:
        names = [shorten(escape_invisible(name), 40) for name in sheet.columns]
        similar_names = near_names(header, sheet.columns)
        hint = f" Did you mean '{shorten(escape_invisible(similar_names[0]))}'?" if similar_names else ""
        wide_hint = "" if self.settings.wide else ", or add --wide candidate if each candidate has a column of its own"
        raise DataError(
            f"{sheet.header}: the column '{header}' is missing.{hint} Name the column of the {column} with --columns "
            f"{column}=NAME{wide_hint}. Columns: {join_some(names, limit=MAX_CHOICES) or 'none'}."
        )

    def _filter_lines(self, sheet: Sheet) -> Tuple[Sheet, Set[str], List[str]]:
        """Return the lines that `--where` keeps, the columns that it names, and those of them whose largest value
        counts."""
        kept_values: DefaultDict[int, Set[str]] = defaultdict(set)
        largest_names: List[str] = []
        for text in self.settings.where:
            cuts = (cut for cut, character in enumerate(text) if character == "=")
            found = ((find_column(sheet, text[:cut]), text[cut + 1 :]) for cut in cuts)
            position, value = next((pair for pair in found if pair[0] is not None), (None, ""))
            if position is None:
                raise ConfigError(
                    f"--where {text}: must be COLUMN=VALUE with a column of {sheet.name}."
                    f"{did_you_mean(text.partition('=')[0], sheet.columns)} Columns: "
                    f"{escape_invisible(join_some(sheet.columns, limit=MAX_CHOICES))}."
                )
            values = {cell_name(cells[position]): None for _, cells in sheet.lines}
            if value == LARGEST and LARGEST not in values:
                largest_names.append(sheet.columns[position])
            elif cell_name(value) in values:
                kept_values[position].add(cell_name(value))
            else:
                raise DataError(
                    f"{sheet.name}: no row has --where {text}.{did_you_mean(value, values)} Values of "
                    f"'{sheet.columns[position]}': {escape_invisible(join_some(values))}."
                )
        lines = [line for line in sheet.lines if all(cell_name(line[1][p]) in kept_values[p] for p in kept_values)]
        filtered_names = {sheet.columns[position] for position in kept_values}
        return replace(sheet, lines=lines), filtered_names.union(largest_names), largest_names

    def _melt_wide_sheet(self, sheet: Sheet, filtered_names: Set[str], *, numbers_rows: bool) -> Sheet:
        """Return a wide sheet in long form. With `numbers_rows`, rows without split and seed are runs of their own."""
        if self.settings.wide is None:
            return sheet
        name, _, header_list = self.settings.wide.partition("=")
        if name not in ("candidate", "split", "seed"):
            raise ConfigError(
                f"--wide must be candidate, split or seed, each optionally with columns, such as candidate=A,B, but "
                f"got '{self.settings.wide}'."
            )
        known = {column: self._find_position(sheet, column) for column in COLUMNS if column not in (name, "score")}
        positions: List[int] = []
        for header in split_names(header_list) if header_list else ():
            position = find_column(sheet, header)
            if position is None:
                self._refuse_column(sheet, name, header)
            positions.append(position)
        if not header_list:
            used = {*known.values(), *(p for p, column in enumerate(sheet.columns) if column in filtered_names)}
            positions = [
                position
                for position, column in enumerate(sheet.columns)
                if column
                and position not in used
                and any(cell_number(cells[position]) is not None for _, cells in sheet.lines)
            ]
        headers = [sheet.columns[position] for position in positions]
        if len(headers) < 2:
            raise DataError(
                f"{sheet.header}: --wide {name} needs at least two columns with numbers but found {headers}."
            )
        if repeated_header := next((header for header in headers if headers.count(header) > 1), None):
            raise DataError(f"{sheet.header}: the column '{repeated_header}' appears twice. Rename one.")
        if not numbers_rows or name != "candidate" or known["split"] is not None or known["seed"] is not None:
            return melt(sheet, positions, name)
        is_official = self.is_official or self.headers.get("split") == ""
        sheet = melt(sheet, positions, name, number_column="seed" if is_official else "split")
        return replace(sheet, splits_from=SplitSource.ROWS)

    # Which rows there are.

    def _read_rows(self, columns: _Columns) -> Iterator[RunRow]:
        sheet = columns.sheet
        for number, cells in sheet.lines:
            row = RunRow(
                candidate=escape_invisible(_text_of_name(columns.cell(cells, "candidate"))),
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
            yield row

    def _determine_metric(self, rows: Sequence[RunRow], first_columns: _Columns) -> Metric:
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
        header, typed_name = first_columns.header_of("score"), self.headers.get("score", "")
        is_signed = typed_name[:1] in ("+", "-") and comparison_key(typed_name[1:]) == comparison_key(header)
        text = next(iter(first_rows), typed_name[0] + header if is_signed else header)
        metric = Metric(escape_invisible(Metric.parse(text).name) or UNNAMED.name, text.startswith("-"))
        if metric.minimise or self.settings.minimise is not None:
            return replace(metric, minimise=metric.minimise or bool(self.settings.minimise))
        if error := error_word(text):
            where = first_rows[text].where if text in first_rows else first_columns.sheet.header
            raise DataError(
                f"{where}: '{text}' has '{error}' in its name, so lower is usually better, but without a sign the "
                "highest mean wins. Add --minimise, or --no-minimise to maximize it."
            )
        return metric


def find_column(sheet: Sheet, header: str) -> Optional[int]:
    """Return the position of the column with this name, or else of one that differs only in case or blanks; None if
    there is none. Refuse several."""
    key = comparison_key(header)
    positions = [position for position, name in enumerate(sheet.columns) if name == header]
    positions = positions or [position for position, name in enumerate(sheet.columns) if comparison_key(name) == key]
    if len(positions) > 1:
        names = join_some([ascii(sheet.columns[position]) for position in positions[:2]], " and ")
        raise DataError(f"{sheet.header}: the column '{header}' appears twice: {names}. Rename one.")
    return positions[0] if positions else None


def _text_of_name(cell: Any) -> str:
    return "" if cell_name(cell) == "" else cell_text(cell)


def _read_outcome(columns: _Columns, line: Line) -> Outcome:
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


def _read_state(columns: _Columns, line: Line) -> Optional[str]:
    """Return what the state of a run means, None if it has none."""
    text = cell_name(columns.cell(line[1], "state")).rpartition(".")[2]
    if text and text.casefold() not in STATES:
        raise DataError(
            f"{columns.sheet.where(line[0])}: '{columns.header_of('state')}' is '{shorten(escape_invisible(text))}', "
            f"which is not a known state of a run. Known states: {', '.join(STATES)}. If the column is not about runs, "
            "add --columns state=."
        )
    return STATES.get(text.casefold())


def _read_seconds(columns: _Columns, line: Line) -> Optional[float]:
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


def _read_step(columns: _Columns, line: Line, position: int) -> float:
    step = cell_number(line[1][position])
    if step is None:
        raise DataError(
            f"{columns.sheet.where(line[0])}: --where {columns.sheet.columns[position]}={LARGEST} needs numbers but "
            f"found '{shorten(cell_text(line[1][position]))}'."
        )
    return step


def _complete_rows(rows: Sequence[RunRow], first_columns: _Columns) -> List[RunRow]:
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
