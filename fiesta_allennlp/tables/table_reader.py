"""Reads a table of scores of any form: finds its columns, chooses rows, and makes a `RunRow` for each run."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, DefaultDict, Dict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import ConfigError, DataError, did_you_mean, escape_invisible, near_names
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.selection.metrics import Metric, error_word
from fiesta_allennlp.selection.settings import INDEPENDENT, OFFICIAL
from fiesta_allennlp.selection.summary import count_text
from fiesta_allennlp.tables import forms
from fiesta_allennlp.tables.columns import (
    COLUMN_ALIASES,
    Columns,
    NameColumn,
    OutcomeReader,
    find_column,
    find_number_columns,
    parse_csv_name,
    parse_name,
)
from fiesta_allennlp.tables.forms import Content, Sheet, make_sheet, read_sheet
from fiesta_allennlp.tables.rows import FAILED, NUMBER, RUNNING, RunRow, RunTable, cell_name, cell_text
from fiesta_allennlp.tables.settings import COLUMNS, split_names
from fiesta_allennlp.tables.sources import UNNAMED
from fiesta_allennlp.tables.table_checks import (
    SIMILARITY,
    check_names,
    find_similar_names,
    ignore_set_column,
    mixed_runs_notes,
    refuse_missing,
    refuse_repeated_run,
    refuse_steps,
)

LAST_STEP = "last"

FOLD_COLUMN = re.compile("(.*[^a-z])?folds?")
"""The names of columns that hold splits."""

NEUTRAL_METRIC = re.compile(
    r"values?(_[0-9]+)?|objective(_value)?|rank_test_score|(.*[\W_])?(ranks?|time|duration|seconds|costs?|distance|memory|"
    r"params|parameters|l[12]|hd95|hd|assd|epe|[af]de|kid|emd|kld?|[ab]ic|far|frr|mindcf|owa|absrel|toxicity|violations|"
    r"elbo|energy|flops|std|stderr|variance)\W*|.*↓.*"
)
"""The names, in lower case, of scores that some minimise and others maximise."""

NO_SEEDS_NOTE = (
    "The table has neither a split nor a seed column, so each row counts as a run with its own seed. A row that is in "
    "the table twice counts twice."
)


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
    if settings.evaluations_per_split is not None and not all(sheet.is_list for sheet in sheets):
        raise ConfigError(
            f"--evaluations-per-split is for lists of scores: {path} already defines which scores share a split. "
            "Remove the option."
        )
    names_files = is_one_candidate or len(sheets) > 1
    return _TableReader(settings, is_official=is_official, names_files=names_files).read_sheets(sheets, str(path))


@dataclass(frozen=True)
class _TableReader:
    """Makes rows of sheets as the settings of a command say."""

    settings: Any
    is_official: bool
    names_files: bool

    @property
    def headers(self) -> Mapping[str, str]:
        return self.settings.columns or {}

    def read_sheets(self, sheets: Sequence[Sheet], name: str) -> RunTable:
        notes: Dict[str, None] = {}
        stems = [Path(sheet.name).stem for sheet in sheets]
        all_columns: List[Columns] = []
        for sheet, stem in zip(sheets, stems, strict=True):
            sheet, last_names = self._filter_lines(sheet)
            sheet = self._melt_wide_sheet(sheet, notes, numbers_rows=not last_names)
            has_column = "candidate" in self.headers or self._find_position(sheet, "candidate") is not None
            if self.names_files and not has_column:
                candidate = stem if stems.count(stem) == 1 else str(Path(sheet.name).with_suffix(""))
                sheet = forms.add_constant_column(sheet, "candidate", candidate)
            all_columns.append(self._find_columns(sheet, last_names))
        ignore_set_column(all_columns)
        lacks_splits = {self.is_official or columns.positions["split"] is None for columns in all_columns}
        if len(lacks_splits) > 1:
            raise DataError(
                f"{name}: some of the files have a split column, others not. Use one form, or --splits official."
            )
        has_splits = lacks_splits == {False}
        numbered_columns = [columns for columns in all_columns if not has_splits and columns.has_numbered_rows]
        for columns in numbered_columns:
            refuse_steps(columns.sheet, columns.positions["candidate"], columns.positions["score"])
        rows = self._read_rows(all_columns, has_splits=has_splits, notes=notes)
        check_names(rows, wide=self.settings.wide)
        for name in {row.candidate for row in rows} & {"None", "null"}:
            notes[f"One candidate is called {name}. If its rows lack a name, fill it in, or remove them."] = None
        if numbered_columns:
            notes[NO_SEEDS_NOTE] = None
        notes.update(dict.fromkeys(mixed_runs_notes(all_columns, rows, self._is_filtered, has_splits=has_splits)))
        has_states = any(columns.positions["state"] is not None for columns in all_columns)
        if has_states:
            counts = Counter(
                "finished" if row.is_scored else "not finished" if row.outcome is None else FAILED for row in rows
            )
            summary = ", ".join(f"{counts[state]} {state}" for state in ("finished", FAILED, "not finished"))
            notes[f"Runs by column '{all_columns[0].header_of('state')}': {summary}."] = None
        is_independent = self.settings.splits == INDEPENDENT
        return RunTable(
            name,
            rows,
            has_splits,
            self._determine_metric(rows, all_columns[0], notes),
            tuple(notes),
            is_independent,
            has_states=has_states,
            min_score=self.settings.min_score,
        )

    # Which columns there are.

    def _find_position(self, sheet: Sheet, column: str) -> Optional[int]:
        """Return the position of a column, None if the table has none."""
        header = self.headers.get(column)
        if header is None:
            positions = (find_column(sheet, name, column) for name in COLUMN_ALIASES.get(column, (column,)))
            return next((position for position in positions if position is not None), None)
        position = find_column(sheet, header, column, is_typed=True) if header else None
        if position is None and header[:1] in ("+", "-") and column == "score":
            position = find_column(sheet, header[1:], column, is_typed=True)
        return position

    def _find_columns(self, sheet: Sheet, last_names: Sequence[str]) -> Columns:
        """Find all columns. Refuse a table without one that it needs, or with a name that is nearly that of one."""
        positions = {column: self._find_position(sheet, column) for column in COLUMNS}
        for column in COLUMNS:
            similar_names = near_names(self.headers.get(column) or column, sheet.columns)
            if column == "split":
                similar_names += [
                    name
                    for name in sheet.columns
                    if FOLD_COLUMN.fullmatch(comparison_key(name)) and not self._is_filtered(name)
                ]
            is_like = column not in self.headers and column in (("seed",) if self.is_official else ("split", "seed"))
            is_needed = self.headers.get(column) or column in ("candidate", "score")
            if positions[column] is None and (is_needed or (is_like and similar_names)):
                self._refuse_column(sheet, column, similar_names)
        if positions["error"] == positions["score"]:
            positions["error"] = None
        split = positions["split"]
        if split is not None and not sheet.is_text:  # rows from Python may have the key without a value
            values = {cell_name(cells[split]) for _, cells in sheet.lines()}
            positions["split"] = None if values == {""} else split
        last_positions = tuple(sheet.columns.index(name) for name in last_names if name in sheet.columns)
        return Columns(sheet, positions, last_positions)

    def _refuse_column(self, sheet: Sheet, column: str, similar_names: Sequence[str]) -> NoReturn:
        header = self.headers.get(column) or column
        required = ", ".join(self.headers.get(name) or name for name in ("candidate", "seed", "score"))
        ignore_hint = f", or ignore it with --columns {column}=" if column in ("split", "seed") else ""
        wide_hint = "" if self.settings.wide else " If each candidate has a column of its own, add --wide candidate."
        raise DataError(
            f"{sheet.header}: the column '{header}' is missing. The header must include {required} but is "
            f"{shorten(escape_invisible(','.join(sheet.columns))) or 'empty'}. If another column holds the {column}, "
            f"map it with --columns {column}={similar_names[0] if similar_names else 'NAME'}{ignore_hint}.{wide_hint}"
        )

    def _filter_lines(self, sheet: Sheet) -> Tuple[Sheet, List[str]]:
        """Return the lines that `--where` keeps, and the columns of which the last value counts."""
        kept_values: DefaultDict[int, Set[str]] = defaultdict(set)
        all_values: Dict[int, Mapping[str, None]] = {}
        last_names: List[str] = []
        for text in self.settings.where:
            cut_positions = [cut for cut, character in enumerate(text) if character == "="]
            matches = ((find_column(sheet, text[:cut], "", is_typed=True), text[cut + 1 :]) for cut in cut_positions)
            position, value = next((pair for pair in matches if pair[0] is not None), (None, ""))
            if position is None:
                raise ConfigError(
                    f"--where {text}: must be COLUMN=VALUE with a column of {sheet.name}, which has "
                    f"{shorten(escape_invisible(', '.join(sheet.columns)))}."
                    f"{did_you_mean(text.partition('=')[0], sheet.columns)}"
                )
            distinct_values = {cell_name(cells[position]): None for _, cells in sheet.lines()}
            if value == LAST_STEP and LAST_STEP not in distinct_values:
                last_names.append(sheet.columns[position])
            elif cell_name(value) not in distinct_values:
                raise DataError(
                    f"{sheet.name}: no row has --where {text}.{did_you_mean(value, distinct_values)} Values of "
                    f"'{sheet.columns[position]}': {shorten(escape_invisible(', '.join(distinct_values)))}."
                )
            else:
                kept_values[position].add(cell_name(value))
                all_values[position] = distinct_values
        for position, names in kept_values.items():
            other_names = [name for name in all_values[position] if name not in names]
            pairs = (find_similar_names((name, other)) for name in names for other in other_names)
            if pair := next(filter(None, pairs), None):
                raise DataError(
                    f"{sheet.name}: {pair[0]!a} and {pair[1]!a} in the column '{sheet.columns[position]}' "
                    f"{SIMILARITY}. Use one of them in the table, or keep both: --where twice."
                )

        def is_kept(cells: Sequence[Any]) -> bool:
            return all(cell_name(cells[position]) in allowed for position, allowed in kept_values.items())

        return (forms.select_lines(sheet, is_kept) if kept_values else sheet), last_names

    def _is_filtered(self, column: str) -> bool:
        """Return whether `--where` names a column."""
        return any(comparison_key(text).startswith(f"{comparison_key(column)}=") for text in self.settings.where)

    def _melt_wide_sheet(self, sheet: Sheet, notes: Dict[str, None], *, numbers_rows: bool) -> Sheet:
        """Return a wide sheet in long form. With `numbers_rows`, rows without split and seed are runs of their own."""
        if self.settings.wide is None:
            return sheet
        name, _, header_list = self.settings.wide.partition("=")
        if name not in ("candidate", "split", "seed"):
            raise ConfigError(
                f"--wide must be candidate, split or seed, each optionally with columns, such as candidate=A,B, but "
                f"got '{self.settings.wide}'."
            )
        known_names = [column for column in COLUMNS if column not in (name, "score")]
        known_positions = {column: self._find_position(sheet, column) for column in known_names}
        if header_list:
            listed_positions = [find_column(sheet, called, name, is_typed=True) for called in split_names(header_list)]
            positions = [position for position in listed_positions if position is not None]
            if len(positions) < len(listed_positions):
                missing_name = split_names(header_list)[listed_positions.index(None)]
                self._refuse_column(sheet, name, near_names(missing_name, sheet.columns))
        else:
            used = {position for position in known_positions.values() if position is not None}
            used |= {position for position, column in enumerate(sheet.columns) if self._is_filtered(column)}
            positions = find_number_columns(sheet, used)
        headers = [sheet.columns[position] for position in positions]
        if len(headers) < 2:
            raise DataError(
                f"{sheet.header}: --wide {name} needs at least two columns with numbers but found {headers}."
            )
        if repeated_header := next((called for called in headers if headers.count(called) > 1), None):
            raise DataError(f"{sheet.header}: the column '{repeated_header}' appears twice. Rename one.")
        mapped = {sheet.columns[position] for position in known_positions.values() if position is not None}
        omitted_names = ", ".join(called for called in sheet.columns if called and called not in {*headers, *mapped})
        left_out = f", but not {shorten(omitted_names)}" if omitted_names and not header_list else ""
        notes[f"Read the columns {shorten(', '.join(headers))} as the {name} of their scores{left_out}."] = None
        number_column = None
        if numbers_rows and name == "candidate" and known_positions["split"] is known_positions["seed"] is None:
            refuse_steps(sheet, None, None)
            number_column = "seed" if self.is_official or self.headers.get("split") == "" else "split"
            shared_note = ", which all candidates share" if number_column == "split" else ""
            notes[f"Each row counts as a {number_column} of its own{shared_note}."] = None
        return forms.melt(sheet, positions, name, number_column=number_column)

    # Which rows there are.

    def _read_rows(self, all_columns: Sequence[Columns], *, has_splits: bool, notes: Dict[str, None]) -> List[RunRow]:
        """Return a row for each run. A score replaces other rows of its run; otherwise the later row counts."""
        row_by_run: Dict[RunKey, RunRow] = {}
        step_by_run: Dict[RunKey, Tuple[float, ...]] = {}
        scored_steps: Set[Tuple[RunKey, Tuple[float, ...]]] = set()
        num_rows: Dict[str, int] = defaultdict(int)
        num_nameless, repeated = 0, ""
        for columns in all_columns:
            read_name = parse_csv_name if columns.sheet.is_text else parse_name
            candidates = NameColumn(columns.sheet, columns.positions["candidate"], read_name)
            splits = NameColumn(columns.sheet, columns.positions["split"] if has_splits else None, cell_name)
            seeds = NameColumn(columns.sheet, columns.positions["seed"], cell_name)
            metrics = NameColumn(columns.sheet, columns.positions["metric"], read_name)
            outcomes = OutcomeReader(columns)
            for number, cells in columns.sheet.lines():
                state = outcomes.read_state(cells, number)
                run = candidate, split, seed = candidates.name(cells), splits.name(cells), seeds.name(cells)
                missing = [n.position for n in (candidates, splits, seeds) if "" in run and n.is_missing(cells)]
                if missing and missing[0] is not None:
                    if state not in (FAILED, RUNNING):
                        refuse_missing(columns, missing[0], cells[missing[0]], number)
                    num_nameless += 1
                    continue
                if not has_splits and columns.has_numbered_rows:
                    run = candidate, split, seed = candidate, "", str(num_rows[candidate])
                    num_rows[candidate] += 1
                outcome = outcomes.read_outcome(cells, number, state)
                row = RunRow(candidate, split, seed, outcome, metrics.name(cells), columns.sheet, number)
                earlier = row_by_run.pop(run, None)
                if columns.last_positions:
                    row_steps = [_read_step(columns.sheet, number, cells[p]) for p in columns.last_positions]
                    step = (outcome is not None, *row_steps)  # a step without a score says nothing
                    if row.is_scored and (run, step) in scored_steps:
                        header = columns.sheet.columns[columns.last_positions[0]]
                        repeated = repeated or f"The rows of {candidate} have '{header}' {row_steps[0]:g} twice"
                    scored_steps.add((run, step))
                    if earlier is not None and step != step_by_run[run]:
                        row, earlier = (row if step > step_by_run[run] else earlier), None
                    step_by_run[run] = max(step, step_by_run.get(run, step))
                if earlier is not None and earlier.is_scored:
                    if row.is_scored:
                        refuse_repeated_run(columns, row, earlier)
                    row = earlier
                row_by_run[run] = row
        if repeated:
            notes[f"{repeated}, and only the last step counts. If several runs have it, add --columns seed=NAME."] = (
                None
            )
        if num_nameless:
            notes[f"Ignored {count_text(num_nameless, 'run')} without a score, candidate, split or seed."] = None
        return list(row_by_run.values())

    def _determine_metric(self, rows: Sequence[RunRow], first_columns: Columns, notes: Dict[str, None]) -> Metric:
        """Return the metric, which the metric column names, or else the score column. Refuse different metrics, and an
        error without a direction."""
        row_by_text: Dict[str, RunRow] = {}
        row_by_metric: Dict[Metric, RunRow] = {}
        for row in rows:
            if row.metric and row_by_text.setdefault(row.metric, row) is row:
                row_by_metric.setdefault(Metric.parse(row.metric), row)
        if len({metric.name for metric in row_by_metric}) > 1:
            (_, top), (_, row) = list(row_by_metric.items())[:2]
            raise DataError(
                f"{row.where}: the metric is {row.metric}, but on {top.where} it is {top.metric}. Compare scores "
                f"of one metric: add --where {first_columns.header_of('metric')}={top.metric}."
            )
        if len(row_by_metric) > 1:
            lower, higher = (
                next(row for m, row in row_by_metric.items() if m.minimise == is_lower) for is_lower in (True, False)
            )
            raise DataError(
                f"{lower.where}: the metric starts with a minus (lower is better), but not on {higher.where}. Use one "
                "metric for all rows."
            )
        score_header, typed_name = first_columns.header_of("score"), self.headers.get("score", "")
        where_by_name = {name: row.where for name, row in row_by_text.items()}
        score_name = typed_name if typed_name[1:] == score_header else score_header
        where_by_name.setdefault(score_name, first_columns.sheet.header)
        metric = Metric(escape_invisible(Metric.parse(next(iter(where_by_name))).name) or UNNAMED.name)
        if (self.settings.wide or "").startswith("candidate"):  # Weights & Biases calls them RUN - METRIC
            where_by_name.update(
                (row.candidate.rpartition(" - ")[2], row.where) for row in rows if " - " in row.candidate
            )
        if any(map(_has_minus, where_by_name)) or self.settings.minimise is not None:
            return replace(metric, minimise=bool(self.settings.minimise) or any(map(_has_minus, where_by_name)))
        for name, where in where_by_name.items():
            if error := error_word(name):
                raise DataError(
                    f"{where}: '{name}' has '{error}' in its name, so lower is usually better, but "
                    "without a sign the highest mean wins. Add --minimise, or --no-minimise to maximize it."
                )
            if NEUTRAL_METRIC.fullmatch(comparison_key(name)):
                notes[f"The highest mean of '{name}' wins. If lower is better, add --minimise."] = None
        return metric


RunKey = Tuple[str, str, str]


def _has_minus(metric: str) -> bool:
    return metric.startswith("-")


def _read_step(sheet: Sheet, number: int, cell: Any) -> float:
    text = cell_text(cell)
    if not NUMBER.fullmatch(text):
        raise DataError(f"{sheet.where(number)}: --where with '{LAST_STEP}' needs numbers but found '{shorten(text)}'.")
    return float(text)
