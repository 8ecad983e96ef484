"""Reads a table of scores of any form: finds its columns, chooses rows, and makes a `Row` for each run."""

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
from fiesta_allennlp.tables.columns import ALIASES, Columns, Named, Outcomes, find, text_in, text_in_csv, with_numbers
from fiesta_allennlp.tables.forms import Content, Sheet, sheet_in, sheet_of
from fiesta_allennlp.tables.rows import (
    FAILED,
    NUMBER,
    RUNNING,
    Row,
    Rows,
    name_of_cell,
    text_of_cell,
)
from fiesta_allennlp.tables.settings import COLUMNS, separated
from fiesta_allennlp.tables.sources import UNNAMED
from fiesta_allennlp.tables.table_checks import (
    check_names,
    drop_set,
    notes_on_mixed_runs,
    refuse_missing,
    refuse_steps,
    refuse_twice,
    same_names,
)

LAST = "last"

FOLDS = re.compile("(.*[^a-z])?folds?")
"""The names of columns that hold splits."""

NEUTRAL = re.compile(
    r"values?(_[0-9]+)?|objective(_value)?|rank_test_score|(.*[\W_])?(ranks?|time|duration|seconds|costs?|distance|memory|"
    r"params|parameters|l[12]|hd95|hd|assd|epe|[af]de|kid|emd|kld?|[ab]ic|far|frr|mindcf|owa|absrel|toxicity|violations|"
    r"elbo|energy|flops|std|stderr|variance)\W*|.*↓.*"
)
"""The names, in lower case, of scores that some minimise and others maximise."""

NO_SEEDS = (
    "The table has neither a split nor a seed column, so each row counts as a run with its own seed. A row that is in "
    "the table twice counts twice."
)


def read_rows(path: Path, settings: Any, content: Content = None, *, is_one_candidate: bool = False) -> Rows:
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
    sheets = [sheet_in(file, scores_per_split=blocks) for file in paths]
    sheets = sheets or [sheet_of(content, str(path), scores_per_split=blocks)]
    if settings.evaluations_per_split is not None and not all(sheet.is_list for sheet in sheets):
        raise ConfigError(
            f"--evaluations-per-split is for lists of scores: {path} already defines which scores share a split. "
            "Remove the option."
        )
    names_files = is_one_candidate or len(sheets) > 1
    return _Reader(settings, is_official=is_official, names_files=names_files).read(sheets, str(path))


@dataclass(frozen=True)
class _Reader:
    """Makes rows of sheets as the settings of a command say."""

    settings: Any
    is_official: bool
    names_files: bool

    @property
    def headers(self) -> Mapping[str, str]:
        return self.settings.columns or {}

    def read(self, sheets: Sequence[Sheet], name: str) -> Rows:
        notes: Dict[str, None] = {}
        stems = [Path(sheet.name).stem for sheet in sheets]
        all_columns: List[Columns] = []
        for sheet, stem in zip(sheets, stems, strict=True):
            sheet, last = self._filtered(sheet)
            sheet = self._in_long_form(sheet, notes, numbers_rows=not last)
            if self.names_files and self._position(sheet, "candidate") is None and "candidate" not in self.headers:
                candidate = stem if stems.count(stem) == 1 else str(Path(sheet.name).with_suffix(""))
                sheet = forms.with_constant(sheet, "candidate", candidate)
            all_columns.append(self._columns(sheet, last))
        drop_set(all_columns)
        lacks_splits = {self.is_official or columns.at["split"] is None for columns in all_columns}
        if len(lacks_splits) > 1:
            raise DataError(
                f"{name}: some of the files have a split column, others not. Use one form, or --splits official."
            )
        numbered = [columns for columns in all_columns if lacks_splits == {True} and columns.numbers_rows]
        for columns in numbered:
            refuse_steps(columns.sheet, columns.at["candidate"], columns.at["score"])
        rows = self._rows(all_columns, has_splits=lacks_splits == {False}, notes=notes)
        check_names(rows, wide=self.settings.wide)
        for name in {row.candidate for row in rows} & {"None", "null"}:
            notes[f"One candidate is called {name}. If its rows lack a name, fill it in, or remove them."] = None
        if numbered:
            notes[NO_SEEDS] = None
        has_splits = lacks_splits == {False}
        notes.update(dict.fromkeys(notes_on_mixed_runs(all_columns, rows, self._is_filtered, has_splits=has_splits)))
        if any(columns.at["state"] is not None for columns in all_columns):
            counts = Counter(
                "finished" if row.is_scored else "not finished" if row.outcome is None else FAILED for row in rows
            )
            summary = ", ".join(f"{counts[state]} {state}" for state in ("finished", FAILED, "not finished"))
            notes[f"Runs by column '{all_columns[0].called('state')}': {summary}."] = None
        is_independent = self.settings.splits == INDEPENDENT
        return Rows(
            name,
            rows,
            lacks_splits == {False},
            self._metric(rows, all_columns[0], notes),
            tuple(notes),
            is_independent,
            tells_states=any(columns.at["state"] is not None for columns in all_columns),
            min_score=self.settings.min_score,
        )

    # Which columns there are.

    def _position(self, sheet: Sheet, column: str) -> Optional[int]:
        """Return the position of a column, None if the table has none."""
        called = self.headers.get(column)
        if called is None:
            names = ALIASES.get(column, (column,))
            return next((position for name in names if (position := find(sheet, name, column)) is not None), None)
        position = find(sheet, called, column, is_typed=True) if called else None
        if position is None and called[:1] in ("+", "-") and column == "score":
            position = find(sheet, called[1:], column, is_typed=True)
        return position

    def _columns(self, sheet: Sheet, last: Sequence[str]) -> Columns:
        """Find all columns. Refuse a table without one that it needs, or with a name that is nearly that of one."""
        at = {column: self._position(sheet, column) for column in COLUMNS}
        for column in COLUMNS:
            likely = near_names(self.headers.get(column) or column, sheet.columns)
            if column == "split":
                likely += [
                    name
                    for name in sheet.columns
                    if FOLDS.fullmatch(comparison_key(name)) and not self._is_filtered(name)
                ]
            is_like = column not in self.headers and column in (("seed",) if self.is_official else ("split", "seed"))
            is_needed = self.headers.get(column) or column in ("candidate", "score")
            if at[column] is None and (is_needed or (is_like and likely)):
                self._refuse(sheet, column, likely)
        if at["error"] == at["score"]:
            at["error"] = None
        split = at["split"]
        if split is not None and not sheet.is_text:  # rows from Python may have the key without a value
            values = {name_of_cell(cells[split]) for _, cells in sheet.lines()}
            at["split"] = None if values == {""} else split
        return Columns(sheet, at, tuple(sheet.columns.index(name) for name in last if name in sheet.columns))

    def _refuse(self, sheet: Sheet, column: str, likely: Sequence[str]) -> NoReturn:
        called = self.headers.get(column) or column
        needed = ", ".join(self.headers.get(name) or name for name in ("candidate", "seed", "score"))
        ignoring = f", or ignore it with --columns {column}=" if column in ("split", "seed") else ""
        wide = "" if self.settings.wide else " If each candidate has a column of its own, add --wide candidate."
        raise DataError(
            f"{sheet.header}: the column '{called}' is missing. The header must include {needed} but is "
            f"{shorten(escape_invisible(','.join(sheet.columns))) or 'empty'}. If another column holds the {column}, "
            f"map it with --columns {column}={likely[0] if likely else 'NAME'}{ignoring}.{wide}"
        )

    def _filtered(self, sheet: Sheet) -> Tuple[Sheet, List[str]]:
        """Return the lines that `--where` keeps, and the columns of which the last value counts."""
        values: DefaultDict[int, Set[str]] = defaultdict(set)
        all_values: Dict[int, Mapping[str, None]] = {}
        last: List[str] = []
        for text in self.settings.where:
            cuts = [cut for cut, character in enumerate(text) if character == "="]
            matches = ((find(sheet, text[:cut], "", is_typed=True), text[cut + 1 :]) for cut in cuts)
            position, value = next((pair for pair in matches if pair[0] is not None), (None, ""))
            if position is None:
                raise ConfigError(
                    f"--where {text}: must be COLUMN=VALUE with a column of {sheet.name}, which has "
                    f"{shorten(escape_invisible(', '.join(sheet.columns)))}."
                    f"{did_you_mean(text.partition('=')[0], sheet.columns)}"
                )
            distinct_values = {name_of_cell(cells[position]): None for _, cells in sheet.lines()}
            if value == LAST and LAST not in distinct_values:
                last.append(sheet.columns[position])
            elif name_of_cell(value) not in distinct_values:
                raise DataError(
                    f"{sheet.name}: no row has --where {text}.{did_you_mean(value, distinct_values)} Values of "
                    f"'{sheet.columns[position]}': {shorten(escape_invisible(', '.join(distinct_values)))}."
                )
            else:
                values[position].add(name_of_cell(value))
                all_values[position] = distinct_values
        for position, kept in values.items():
            pairs = (same_names((name, other)) for name in kept for other in all_values[position] if other not in kept)
            if pair := next(filter(None, pairs), None):
                raise DataError(
                    f"{sheet.name}: {pair[0]!a} and {pair[1]!a} in the column '{sheet.columns[position]}' are one "
                    "number, or differ only in case, in blanks or in how accents are encoded. Use one of them in the "
                    "table, or keep both: --where twice."
                )

        def keeps(cells: Sequence[Any]) -> bool:
            return all(name_of_cell(cells[position]) in allowed for position, allowed in values.items())

        return (forms.selected(sheet, keeps) if values else sheet), last

    def _is_filtered(self, column: str) -> bool:
        """Return whether `--where` names a column."""
        return any(comparison_key(text).startswith(f"{comparison_key(column)}=") for text in self.settings.where)

    def _in_long_form(self, sheet: Sheet, notes: Dict[str, None], *, numbers_rows: bool) -> Sheet:
        """Return a wide sheet in long form. With `numbers_rows`, rows without split and seed are runs of their own."""
        if self.settings.wide is None:
            return sheet
        name, _, listed = self.settings.wide.partition("=")
        if name not in ("candidate", "split", "seed"):
            raise ConfigError(
                f"--wide must be candidate, split or seed, each optionally with columns, such as candidate=A,B, but "
                f"got '{self.settings.wide}'."
            )
        at = {column: self._position(sheet, column) for column in COLUMNS if column not in (name, "score")}
        if listed:
            listed_positions = [find(sheet, called, name, is_typed=True) for called in separated(listed)]
            positions = [position for position in listed_positions if position is not None]
            if len(positions) < len(listed_positions):
                self._refuse(sheet, name, near_names(separated(listed)[listed_positions.index(None)], sheet.columns))
        else:
            used = {position for position in at.values() if position is not None}
            used |= {position for position, column in enumerate(sheet.columns) if self._is_filtered(column)}
            positions = with_numbers(sheet, used)
        names = [sheet.columns[position] for position in positions]
        if len(names) < 2:
            raise DataError(f"{sheet.header}: --wide {name} needs at least two columns with numbers but found {names}.")
        if twice := next((called for called in names if names.count(called) > 1), None):
            raise DataError(f"{sheet.header}: the column '{twice}' appears twice. Rename one.")
        mapped = {sheet.columns[position] for position in at.values() if position is not None}
        others = ", ".join(called for called in sheet.columns if called and called not in {*names, *mapped})
        left_out = f", but not {shorten(others)}" if others and not listed else ""
        notes[f"Read the columns {shorten(', '.join(names))} as the {name} of their scores{left_out}."] = None
        kind = None
        if numbers_rows and name == "candidate" and at["split"] is None and at["seed"] is None:
            refuse_steps(sheet, None, None)
            kind = "seed" if self.is_official or self.headers.get("split") == "" else "split"
            notes[f"Each row counts as a {kind} of its own{', which all candidates share' * (kind == 'split')}."] = None
        return forms.long_form(sheet, positions, name, number_as=kind)

    # Which rows there are.

    def _rows(self, all_columns: Sequence[Columns], *, has_splits: bool, notes: Dict[str, None]) -> List[Row]:
        """Return a row for each run. A score replaces other rows of its run; otherwise the later row counts."""
        runs: Dict[Run, Row] = {}
        steps: Dict[Run, Tuple[float, ...]] = {}
        scored_steps: Set[Tuple[Run, Tuple[float, ...]]] = set()
        num_rows: Dict[str, int] = defaultdict(int)
        nameless, repeated = 0, ""
        for columns in all_columns:
            read_name = text_in_csv if columns.sheet.is_text else text_in
            candidates = Named(columns.sheet, columns.at["candidate"], read_name)
            splits = Named(columns.sheet, columns.at["split"] if has_splits else None, name_of_cell)
            seeds = Named(columns.sheet, columns.at["seed"], name_of_cell)
            metrics = Named(columns.sheet, columns.at["metric"], read_name)
            outcomes = Outcomes(columns)
            for number, cells in columns.sheet.lines():
                state = outcomes.state(cells, number)
                run = candidate, split, seed = candidates.name(cells), splits.name(cells), seeds.name(cells)
                missing = [n.position for n in (candidates, splits, seeds) if "" in run and n.is_missing(cells)]
                if missing and missing[0] is not None:
                    if state not in (FAILED, RUNNING):
                        refuse_missing(columns, missing[0], cells[missing[0]], number)
                    nameless += 1
                    continue
                if not has_splits and columns.numbers_rows:
                    run = candidate, split, seed = candidate, "", str(num_rows[candidate])
                    num_rows[candidate] += 1
                outcome = outcomes.outcome(cells, number, state)
                row = Row(candidate, split, seed, outcome, metrics.name(cells), columns.sheet, number)
                earlier = runs.pop(run, None)
                if columns.last:
                    steps_of_row = [_step(columns.sheet, number, cells[position]) for position in columns.last]
                    step = (outcome is not None, *steps_of_row)  # a step without a score says nothing
                    if row.is_scored and (run, step) in scored_steps:
                        called = columns.sheet.columns[columns.last[0]]
                        repeated = repeated or f"The rows of {candidate} have '{called}' {steps_of_row[0]:g} twice"
                    scored_steps.add((run, step))
                    if earlier is not None and step != steps[run]:
                        row, earlier = (row if step > steps[run] else earlier), None
                    steps[run] = max(step, steps.get(run, step))
                if earlier is not None and earlier.is_scored:
                    if row.is_scored:
                        refuse_twice(columns, row, earlier)
                    row = earlier
                runs[run] = row
        if repeated:
            notes[f"{repeated}, and only the last step counts. If several runs have it, add --columns seed=NAME."] = (
                None
            )
        if nameless:
            notes[f"Ignored {count_text(nameless, 'run')} without a score, candidate, split or seed."] = None
        return list(runs.values())

    def _metric(self, rows: Sequence[Row], first: Columns, notes: Dict[str, None]) -> Metric:
        """Return the metric, which the metric column names, or else the score column. Refuse different metrics, and an
        error without a direction."""
        by_text: Dict[str, Row] = {}
        by_metric: Dict[Metric, Row] = {}
        for row in rows:
            if row.metric and by_text.setdefault(row.metric, row) is row:
                by_metric.setdefault(Metric.parse(row.metric), row)
        if len({metric.name for metric in by_metric}) > 1:
            (_, top), (_, row) = list(by_metric.items())[:2]
            raise DataError(
                f"{row.where}: the metric is {row.metric}, but on {top.where} it is {top.metric}. Compare scores "
                f"of one metric: add --where {first.called('metric')}={top.metric}."
            )
        if len(by_metric) > 1:
            lower, higher = (
                next(row for m, row in by_metric.items() if m.minimise == is_lower) for is_lower in (True, False)
            )
            raise DataError(
                f"{lower.where}: the metric starts with a minus (lower is better), but not on {higher.where}. Use one "
                "metric for all rows."
            )
        called, score = first.called("score"), self.headers.get("score", "")
        where_by_name = {name: row.where for name, row in by_text.items()}
        where_by_name.setdefault(score if score[1:] == called else called, first.sheet.header)
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
            if NEUTRAL.fullmatch(comparison_key(name)):
                notes[f"The highest mean of '{name}' wins. If lower is better, add --minimise."] = None
        return metric


Run = Tuple[str, str, str]


def _has_minus(metric: str) -> bool:
    return metric.startswith("-")


def _step(sheet: Sheet, number: int, cell: Any) -> float:
    text = text_of_cell(cell)
    if not NUMBER.fullmatch(text):
        raise DataError(f"{sheet.where(number)}: --where with '{LAST}' needs numbers but found '{shorten(text)}'.")
    return float(text)
