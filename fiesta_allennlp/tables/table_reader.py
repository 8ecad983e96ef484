"""Reads a table of scores of any form: finds its columns, chooses rows, and makes a `Row` for each run."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, Callable, DefaultDict, Dict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import ConfigError, DataError, did_you_mean, near, visible
from fiesta_allennlp.core.files import from_csv, shortened
from fiesta_allennlp.core.names import alike, look
from fiesta_allennlp.core.records import LARGEST_SCORE
from fiesta_allennlp.selection.metrics import Metric, error_in
from fiesta_allennlp.selection.settings import INDEPENDENT, OFFICIAL
from fiesta_allennlp.selection.summary import count_text
from fiesta_allennlp.tables import forms
from fiesta_allennlp.tables.forms import Content, Sheet, differing, sheet_in, sheet_of
from fiesta_allennlp.tables.rows import (
    FAILED,
    NUMBER,
    RUNNING,
    STATES,
    Outcome,
    Row,
    Rows,
    name_of_cell,
    outcome_of,
    text_of_cell,
)
from fiesta_allennlp.tables.settings import COLUMNS, separated
from fiesta_allennlp.tables.sources import UNNAMED

ALIASES = {"state": ("state", "status"), "error": ("error", "info")}
"""The names of columns that are found without `--columns`, where they are not those of `COLUMNS`."""

LAST = "last"
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,])[0-9]{3}")
STEPS = re.compile(r"(.*[^a-z_])?_?(epochs?|((global|training)_)?(steps?|iterations?))")
"""The names, in lower case, of columns that number the steps of a run."""

NO_SCORES = re.compile(rf"unnamed: [0-9]+|.* - .*__(min|max)|{STEPS.pattern}")
"""The names, in lower case, of columns without scores: the index of pandas, bounds of Weights & Biases, steps."""

SETS = re.compile("(train|dev|val|test|eval|valid|holdout)(ing|ation|uation|elopment)?([ _-]?set)?")
"""The names of sets, as `look` gives them. Scores on different sets are not scores on random splits."""

FOLDS = re.compile("(.*[^a-z])?folds?")
"""The names of columns that hold splits."""

SUMMARY = {"mean", "avg", "average", "median", "std", "stdev", "sd", "sem"}
"""Words in the name of a row or column that summarizes others."""

MIXED = re.compile(
    r"(.*[\W_])?(datasets?|data|tasks?|benchmark|corpus|metrics?|metric_name|measure|variable|subset|set|partition|phase|"
    r"stage)|(params?|config|hparams)[\W_](?!(.*[\W_])?(seed|random_state|dir|path|name|id)([\W_].*)?$).*"
)
"""The names, in lower case, of columns in which the runs of a candidate should be equal: data, metrics and settings."""

NEUTRAL = re.compile(r"values?(_[0-9]+)?|objective(_value)?")
"""The names, in lower case, of scores that Optuna and others minimise or maximise."""


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
class _Columns:
    """A sheet in long form: the position of each of `COLUMNS`, None if it has none, and of those whose last value in a
    run counts."""

    sheet: Sheet
    at: Dict[str, Optional[int]]
    last: Tuple[int, ...] = ()

    @property
    def numbers_rows(self) -> bool:
        """Whether each row is a run with a number of its own, unless splits tell runs apart."""
        return self.at["seed"] is None and not self.last

    def called(self, column: str) -> str:
        position = self.at[column]
        return column if position is None else self.sheet.columns[position]


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
        all_columns: List[_Columns] = []
        for sheet, stem in zip(sheets, stems, strict=True):
            sheet, last = self._filtered(sheet)
            sheet = self._in_long_form(sheet, notes, numbers_rows=not last)
            if self.names_files and self._position(sheet, "candidate") is None and "candidate" not in self.headers:
                candidate = stem if stems.count(stem) == 1 else str(Path(sheet.name).with_suffix(""))
                sheet = forms.with_constant(sheet, "candidate", candidate)
            all_columns.append(self._columns(sheet, last))
        _drop_set(all_columns)
        lacks_splits = {self.is_official or columns.at["split"] is None for columns in all_columns}
        if len(lacks_splits) > 1:
            raise DataError(
                f"{name}: some of the files have a split column, others not. Use one form, or --splits official."
            )
        numbered = [columns for columns in all_columns if lacks_splits == {True} and columns.numbers_rows]
        for columns in numbered:
            _refuse_steps(columns.sheet, columns.at["candidate"], columns.at["score"])
        rows = self._rows(all_columns, has_splits=lacks_splits == {False}, notes=notes)
        _check_names(rows)
        if numbered:
            notes[NO_SEEDS] = None
        for columns in all_columns:
            notes.update(dict.fromkeys(self._mixed(columns, rows)))
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
        )

    # Which columns there are.

    def _position(self, sheet: Sheet, column: str) -> Optional[int]:
        """Return the position of a column, None if the table has none."""
        called = self.headers.get(column)
        if called is None:
            names = ALIASES.get(column, (column,))
            return next((position for name in names if (position := _find(sheet, name, column)) is not None), None)
        position = _find(sheet, called, column, is_typed=True) if called else None
        if position is None and called[:1] in ("+", "-") and column == "score":
            position = _find(sheet, called[1:], column, is_typed=True)
        return position

    def _columns(self, sheet: Sheet, last: Sequence[str]) -> _Columns:
        """Find all columns. Refuse a table without one that it needs, or with a name that is nearly that of one."""
        at = {column: self._position(sheet, column) for column in COLUMNS}
        for column in COLUMNS:
            likely = near(self.headers.get(column) or column, sheet.columns)
            if column == "split":
                likely += [
                    name for name in sheet.columns if FOLDS.fullmatch(look(name)) and not self._is_filtered(name)
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
        return _Columns(sheet, at, tuple(sheet.columns.index(name) for name in last if name in sheet.columns))

    def _refuse(self, sheet: Sheet, column: str, likely: Sequence[str]) -> NoReturn:
        called = self.headers.get(column) or column
        needed = ", ".join(self.headers.get(name) or name for name in ("candidate", "seed", "score"))
        ignoring = f", or ignore it with --columns {column}=" if column in ("split", "seed") else ""
        wide = "" if self.settings.wide else " If each candidate has a column of its own, add --wide candidate."
        raise DataError(
            f"{sheet.header}: the column '{called}' is missing. The header must include {needed} but is "
            f"{shortened(visible(','.join(sheet.columns))) or 'empty'}. If another column holds the {column}, map it "
            f"with --columns {column}={likely[0] if likely else 'NAME'}{ignoring}.{wide}"
        )

    def _filtered(self, sheet: Sheet) -> Tuple[Sheet, List[str]]:
        """Return the lines that `--where` keeps, and the columns of which the last value counts."""
        values: DefaultDict[int, Set[str]] = defaultdict(set)
        last: List[str] = []
        for text in self.settings.where:
            cuts = [cut for cut, character in enumerate(text) if character == "="]
            matches = ((_find(sheet, text[:cut], "", is_typed=True), text[cut + 1 :]) for cut in cuts)
            position, value = next((pair for pair in matches if pair[0] is not None), (None, ""))
            if position is None:
                raise ConfigError(
                    f"--where {text}: must be COLUMN=VALUE with a column of {sheet.name}, which has "
                    f"{shortened(visible(', '.join(sheet.columns)))}."
                    f"{did_you_mean(text.partition('=')[0], sheet.columns)}"
                )
            distinct_values = {name_of_cell(cells[position]): None for _, cells in sheet.lines()}
            if value == LAST and LAST not in distinct_values:
                last.append(sheet.columns[position])
            elif name_of_cell(value) not in distinct_values:
                raise DataError(
                    f"{sheet.name}: no row has --where {text}.{did_you_mean(value, distinct_values)} Values of "
                    f"'{sheet.columns[position]}': {shortened(visible(', '.join(distinct_values)))}."
                )
            else:
                values[position].add(name_of_cell(value))

        def keeps(cells: Sequence[Any]) -> bool:
            return all(name_of_cell(cells[position]) in allowed for position, allowed in values.items())

        return (forms.selected(sheet, keeps) if values else sheet), last

    def _is_filtered(self, column: str) -> bool:
        """Return whether `--where` names a column."""
        return any(look(text).startswith(f"{look(column)}=") for text in self.settings.where)

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
            listed_positions = [_find(sheet, called, name, is_typed=True) for called in separated(listed)]
            positions = [position for position in listed_positions if position is not None]
            if len(positions) < len(listed_positions):
                self._refuse(sheet, name, near(separated(listed)[listed_positions.index(None)], sheet.columns))
        else:
            used = {position for position in at.values() if position is not None}
            used |= {position for position, column in enumerate(sheet.columns) if self._is_filtered(column)}
            positions = _with_numbers(sheet, used)
        names = [sheet.columns[position] for position in positions]
        if len(names) < 2:
            raise DataError(f"{sheet.header}: --wide {name} needs at least two columns with numbers but found {names}.")
        if twice := next((called for called in names if names.count(called) > 1), None):
            raise DataError(f"{sheet.header}: the column '{twice}' appears twice. Rename one.")
        notes[f"Read the columns {shortened(', '.join(names))} as the {name} of their scores."] = None
        kind = None
        if numbers_rows and name == "candidate" and at["split"] is None and at["seed"] is None:
            _refuse_steps(sheet, None, None)
            kind = "seed" if self.is_official or self.headers.get("split") == "" else "split"
            notes[f"Each row counts as a {kind} of its own{', which all candidates share' * (kind == 'split')}."] = None
        return forms.long_form(sheet, positions, name, number_as=kind)

    def _mixed(self, columns: _Columns, rows: Sequence[Row]) -> List[str]:
        """Return a note if the runs of a candidate differ in more than splits and seeds."""
        sheet, used = columns.sheet, {*columns.at.values(), *columns.last}
        free = [
            position
            for position, name in enumerate(sheet.columns)
            if position not in used and MIXED.fullmatch(look(name)) and not self._is_filtered(name)
        ]
        candidates: DefaultDict[int, List[str]] = defaultdict(list)
        for row in rows if free else ():
            if row.sheet is sheet and row.is_scored:
                candidates[row.number].append(row.candidate)
        values: DefaultDict[Tuple[str, int], Dict[str, None]] = defaultdict(dict)
        for number, cells in sheet.lines() if free else ():
            for candidate in candidates[number]:
                for position in free:
                    values[candidate, position][name_of_cell(cells[position])] = None
        name, position = next((key for key, texts in values.items() if len(texts) > 1), ("", -1))
        if not name:
            return []
        called, texts = sheet.columns[position], list(values[name, position])
        return [
            f"The runs of {name} differ in '{called}': {shortened(', '.join(texts))}. Their mean mixes them. To "
            f"compare runs of one kind, add --where '{called}={texts[0]}'."
        ]

    # Which rows there are.

    def _rows(self, all_columns: Sequence[_Columns], *, has_splits: bool, notes: Dict[str, None]) -> List[Row]:
        """Return a row for each run. A score replaces other rows of its run; otherwise the later row counts."""
        runs: Dict[Run, Row] = {}
        steps: Dict[Run, Tuple[float, ...]] = {}
        num_rows: Dict[str, int] = defaultdict(int)
        nameless = 0
        for columns in all_columns:
            read_name = _text_in_csv if columns.sheet.is_text else _text_in
            candidates = _Named(columns.sheet, columns.at["candidate"], read_name)
            splits = _Named(columns.sheet, columns.at["split"] if has_splits else None, name_of_cell)
            seeds = _Named(columns.sheet, columns.at["seed"], name_of_cell)
            metrics = _Named(columns.sheet, columns.at["metric"], read_name)
            outcomes = _Outcomes(columns)
            for number, cells in columns.sheet.lines():
                state = outcomes.state(cells, number)
                run = candidate, split, seed = candidates.name(cells), splits.name(cells), seeds.name(cells)
                if "" in run and (
                    missing := next((n for n in (candidates, splits, seeds) if n.is_missing(cells)), None)
                ):
                    if state not in (FAILED, RUNNING):
                        _refuse_empty(columns, missing.position, number)
                    nameless += 1
                    continue
                if not has_splits and columns.numbers_rows:
                    run = candidate, split, seed = candidate, "", str(num_rows[candidate])
                    num_rows[candidate] += 1
                outcome = outcomes.outcome(cells, number, state)
                row = Row(candidate, split, seed, outcome, metrics.name(cells), columns.sheet, number)
                earlier = runs.pop(run, None)
                if columns.last:
                    steps_of_row = (_step(columns.sheet, number, cells[position]) for position in columns.last)
                    step = (outcome is not None, *steps_of_row)  # a step without a score says nothing
                    if earlier is not None and step != steps[run]:
                        row, earlier = (row if step > steps[run] else earlier), None
                    steps[run] = max(step, steps.get(run, step))
                if earlier is not None and earlier.is_scored:
                    if row.is_scored:
                        _refuse_twice(columns, row, earlier)
                    row = earlier
                runs[run] = row
        if nameless:
            notes[f"Ignored {count_text(nameless, 'run')} without a score, candidate, split or seed."] = None
        return list(runs.values())

    def _metric(self, rows: Sequence[Row], first: _Columns, notes: Dict[str, None]) -> Metric:
        """Return the metric, which the metric column names, or else the score column. Refuse different metrics, and an
        error without a direction."""
        by_text: Dict[str, Row] = {}
        by_metric: Dict[Metric, Row] = {}
        for row in rows:
            if row.metric and by_text.setdefault(row.metric, row) is row:
                by_metric.setdefault(Metric.of(row.metric), row)
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
        metric = Metric(visible(Metric.of(next(iter(where_by_name))).name) or UNNAMED.name)
        if (self.settings.wide or "").startswith("candidate"):  # Weights & Biases calls them RUN - METRIC
            where_by_name.update(
                (row.candidate.rpartition(" - ")[2], row.where) for row in rows if " - " in row.candidate
            )
        if any(map(_has_minus, where_by_name)) or self.settings.minimise is not None:
            return replace(metric, minimise=bool(self.settings.minimise) or any(map(_has_minus, where_by_name)))
        for name, where in where_by_name.items():
            if error_word := error_in(name):
                raise DataError(
                    f"{where}: '{name}' has '{error_word}' in its name, so lower is usually better, but "
                    "without a sign the highest mean wins. Add --minimise, or --no-minimise to maximize it."
                )
            if NEUTRAL.fullmatch(look(name)):
                notes[f"The highest mean of '{name}' wins. If lower is better, add --minimise."] = None
        return metric


Run = Tuple[str, str, str]


class _Named:
    """The names in a column of a sheet."""

    def __init__(self, sheet: Sheet, position: Optional[int], read_cell: Callable[[Any], str]) -> None:
        self.sheet, self.position, self._read_cell = sheet, position, read_cell
        self._names: Dict[str, str] = {}

    def name(self, cells: Sequence[Any]) -> str:
        """Return the name in a line, empty if it has none or the table has no such column."""
        if self.position is None:
            return ""
        cell = cells[self.position]
        if not isinstance(cell, str):
            return self._read_cell(cell)
        name = self._names.get(cell)
        if name is None:
            name = self._names[cell] = self._read_cell(cell)
        return name

    def is_missing(self, cells: Sequence[Any]) -> bool:
        return self.position is not None and not self.name(cells)


class _Outcomes:
    """The scores in a sheet, with what its columns `state` and `error` say of them."""

    def __init__(self, columns: _Columns) -> None:
        self.columns, self.sheet = columns, columns.sheet
        self._score, self._state, self._error = (columns.at[column] or 0 for column in ("score", "state", "error"))
        self._is_comma = self.sheet.decimal_commas and self._has_decimal_commas()

    def state(self, cells: Sequence[Any], number: int) -> Optional[str]:
        """Return the state of a run, None if it has none."""
        if self.columns.at["state"] is None:
            return None
        text, called = text_of_cell(cells[self._state]).rpartition(".")[2], self.columns.called("state")
        if text and text.casefold() not in STATES:
            raise DataError(
                f"{self.sheet.where(number)}: '{called}' is '{shortened(visible(text))}', which is not "
                f"a known state of a run. Known states: {', '.join(STATES)}. If the column is not about runs, add "
                "--columns state=."
            )
        return STATES.get(text.casefold())

    def outcome(self, cells: Sequence[Any], number: int, state: Optional[str]) -> Outcome:
        score = cells[self._score]
        if self._is_comma:
            score = score.replace(",", ".")
        if type(score) is str and state in (None, "finished") and NUMBER.fullmatch(score):
            value = float(score)
            if abs(value) <= LARGEST_SCORE:
                return value
        reason = "" if self.columns.at["error"] is None else name_of_cell(cells[self._error])
        return outcome_of(score, state, reason, where=self.sheet.where(number))

    def _has_decimal_commas(self) -> bool:
        """Return whether numbers have decimal commas. Refuse numbers that can be read in two ways."""
        first: Dict[str, Tuple[int, str]] = {}
        is_clear = False
        for number, cells in self.sheet.lines():
            text = text_of_cell(cells[self._score])
            if not re.fullmatch(r"[-+0-9.,]+", text):
                continue
            marks = {mark for mark in ",." if mark in text}
            is_clear = is_clear or bool(marks and not THOUSANDS.fullmatch(text))
            for mark in marks or ({"none"} if text.strip("+-0") else ()):
                first.setdefault(mark, (number, text))
        mixed = [first[mark] for mark in (",", ".") if mark in first]
        if mixed and "none" in first and not is_clear:
            mixed.append(first["none"])
        if len(mixed) > 1:
            (number, text), (_, rival) = mixed[:2]
            raise DataError(
                f"{self.sheet.where(number)}: '{text}' can be read in two ways, because the table also has '{rival}'. "
                "Write all scores with a decimal point, and without separators of thousands."
            )
        return "," in first


# Helpers.


def _has_minus(metric: str) -> bool:
    return metric.startswith("-")


def _text_in(cell: Any) -> str:
    return text_of_cell(cell) if cell == cell else ""


def _text_in_csv(cell: Any) -> str:
    return from_csv(text_of_cell(cell))


def _find(sheet: Sheet, called: str, column: str, *, is_typed: bool = False) -> Optional[int]:
    """Return the position of the column that looks like `called`, None if there is none. Of several, the one that was
    typed in full counts."""
    positions = [position for position, name in enumerate(sheet.columns) if look(name) == look(called)]
    exact = [position for position in positions if sheet.columns[position] == called]
    if len(exact if is_typed and exact else positions) > 1:
        names = " and ".join(ascii(sheet.columns[position]) for position in positions[:2])
        raise DataError(
            f"{sheet.header}: the columns {names} have the same name, or names that look alike. Rename one"
            f"{f', or name the one to use with --columns {column}=' if len(exact) < 2 else ''}."
        )
    return next(iter(exact or positions), None)


def _with_numbers(sheet: Sheet, used: Set[int]) -> List[int]:
    """Return the columns of a wide sheet that hold numbers, but not those that are used, or number the rows."""
    free = {
        p for p, name in enumerate(sheet.columns) if p not in used and name and not NO_SCORES.fullmatch(name.lower())
    }
    numeric: Set[int] = set()
    for _, cells in sheet.lines():
        numeric |= {
            p for p in free if isinstance(cells[p], Real) or NUMBER.fullmatch(text_of_cell(cells[p]).replace(",", "."))
        }
        free -= numeric
    return sorted(numeric)


def _step(sheet: Sheet, number: int, cell: Any) -> float:
    text = text_of_cell(cell)
    if not NUMBER.fullmatch(text):
        raise DataError(f"{sheet.where(number)}: --where with '{LAST}' needs numbers but found '{shortened(text)}'.")
    return float(text)


def _refuse_empty(columns: _Columns, position: Optional[int], number: int) -> NoReturn:
    *names, last = (columns.called(column) for column in COLUMNS[:4] if columns.at[column] is not None)
    raise DataError(
        f"{columns.sheet.where(number)}: '{columns.sheet.columns[position or 0]}' is empty. Every row needs "
        f"{', '.join(names)} and {last}."
    )


def _refuse_twice(columns: _Columns, row: Row, earlier: Row) -> NoReturn:
    """Refuse two scores of one run, and name the columns that could tell them apart."""
    used_names = [columns.called(column) for column in COLUMNS]
    differ = differing(row.sheet, [earlier.number, row.number]) if row.sheet is earlier.sheet else []
    telling = [name for name in differ if name not in used_names]
    split = f", split {row.split}" if row.split else ""
    remedy = "Remove one of the rows."
    if telling:
        value = forms.cells_of(row.sheet, [row.number])[0][row.sheet.columns.index(telling[0])]
        remedy = (
            f"The rows differ in {shortened(', '.join(telling))}. Choose rows, for example with --where "
            f"'{telling[0]}={shortened(text_of_cell(value))}', or map a column that tells runs apart: --columns seed=."
        )
    elif columns.at["seed"] is None:
        remedy = "Add a seed column that tells them apart, or remove one of the rows."
    raise DataError(
        f"{row.where}: candidate '{row.candidate}'{split}{f', seed {row.seed}' if row.seed else ''} already appears in "
        f"{earlier.where}. {remedy}"
    )


def _check_names(rows: Sequence[Row]) -> None:
    """Refuse names of candidates and splits that contain invisible characters, that look alike or are one number, and
    splits and seeds that summarize others."""
    for what in ("candidate", "split"):
        first = {getattr(row, what): row for row in reversed(rows)}
        for name, row in first.items():
            if visible(name) != name:
                raise DataError(f"{row.where}: the name '{visible(name)}' contains an invisible character. Rename it.")
        numbers: Dict[float, str] = {}
        same_number = (
            (name, earlier)
            for name in first
            if NUMBER.fullmatch(name) and (earlier := numbers.setdefault(float(name), name)) != name
        )
        if pair := alike(first) or next(same_number, None):
            old, new = sorted(pair, key=lambda name: rows.index(first[name]))
            raise DataError(
                f"{first[new].where}: {what} {new!a} and {what} {old!a} in {first[old].where} are one number, or "
                "differ only in case, in blanks or in how accents are encoded. Use one name."
            )
    for row in rows:
        for what, name in (("split", row.split), ("seed", row.seed)):
            if not name.isdigit() and not SUMMARY.isdisjoint(re.split(r"[\W_]+", name.lower())):
                raise DataError(
                    f"{row.where}: the {what} '{name}' looks like a summary of other scores, which would count as one "
                    "more run. Remove it, rename it, or list the columns of a wide table: --wide NAME=COLUMN,..."
                )


def _drop_set(all_columns: Sequence[_Columns]) -> None:
    """Ignore a split column that names only the set that is scored. Refuse several sets."""
    first: Dict[str, str] = {}
    for columns in all_columns:
        position = columns.at["split"]
        if position is None:
            continue
        for number, cells in columns.sheet.lines():
            if (name := name_of_cell(cells[position])) not in first:
                first[name] = columns.sheet.where(number)
    sets = [name for name in first if SETS.fullmatch(look(name))]
    if sets and len(first) > 1:
        other = next(name for name in first if name != sets[0])
        called = next(columns.called("split") for columns in all_columns if columns.at["split"] is not None)
        raise DataError(
            f"{first[other]}: the split is '{other}', but in {first[sets[0]]} it is '{sets[0]}', the name of a set. "
            f"Scores on different sets are not scores on random splits. Choose one, for example with --where "
            f"'{called}={sets[-1]}'."
        )
    for columns in all_columns if sets else ():
        columns.at["split"] = None


def _refuse_steps(sheet: Sheet, candidate: Optional[int], score: Optional[int]) -> None:
    """Refuse rows that are steps of a run where each row would count as a run. Without a column of candidates, all rows
    are of one run."""
    positions = [position for position, name in enumerate(sheet.columns) if STEPS.fullmatch(name.lower())]
    first: Dict[Tuple[int, str], Tuple[int, str]] = {}
    for number, cells in sheet.lines() if positions else ():
        if score is not None and not text_of_cell(cells[score]):
            continue
        for position in positions:
            step, run = name_of_cell(cells[position]), (position, "" if candidate is None else str(cells[candidate]))
            earlier, earlier_step = first.setdefault(run, (number, step))
            if step != earlier_step:
                called = sheet.columns[position]
                raise DataError(
                    f"{sheet.where(number)}: '{called}' is {step}, but in {sheet.where(earlier)} it is {earlier_step}. "
                    f"If the rows are steps of one run, add --where {called}=last. If each row is a run of its own, "
                    "name a column that tells runs apart: --columns seed=NAME."
                )
