"""The columns of a table that nothing uses: which of them mix several tasks or settings in one candidate, which one may
name the candidates, and which one tells two scores of a run apart. All follow from where values repeat."""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from typing import Callable, DefaultDict, Dict, Iterable, List, Mapping, Sequence, Set, Tuple

import numpy as np

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.tables.forms import Sheet, cell_name, cell_number, shown_cell
from fiesta_allennlp.tables.read_back import RepeatedColumn, VaryingColumn, where_option
from fiesta_allennlp.tables.rows import RunRow

MIN_VALUES, MAX_VALUES = 2, 20
"""The bounds of the number of values of a column that is read back."""

ValueCounts = Dict[str, DefaultDict[str, "Counter[str]"]]
"""By column and group, how often each value occurs, of at most `MAX_VALUES` and one more values."""


@dataclass(frozen=True)
class UnusedColumns:
    """The columns of each sheet that are not used. `positions` are those of a sheet by its `id`."""

    positions: Mapping[int, Sequence[int]]

    def cells(self, row: RunRow) -> Dict[str, str]:
        """Return the cells of a row by column. An empty cell is no value."""
        own_positions = self.positions[id(row.sheet)]
        values = {row.sheet.columns[position]: cell_name(row.cells[position]) for position in own_positions}
        return {column: value for column, value in values.items() if value}

    def find_varying(self, rows: Sequence[RunRow]) -> Tuple[VaryingColumn, ...]:
        """Return the columns that have from 2 to 20 values, some of them repeated, among the scored rows of a
        candidate; first the one between whose values a candidate's scores vary most."""
        varying: List[VaryingColumn] = []
        for column, by_candidate in self._count(rows, lambda row: row.candidate).items():
            mixed = {name: v for name, v in by_candidate.items() if _is_few(v) and len(v) < v.total()}
            if mixed:
                texts = dict.fromkeys(chain.from_iterable(mixed.values()))
                varying.append(self._measure(VaryingColumn(column, tuple(texts), tuple(mixed)), rows))
        return tuple(sorted(varying, key=lambda each: -each.share))

    def find_repeated(self, rows: Sequence[RunRow]) -> Tuple[RepeatedColumn, ...]:
        """Return the columns that have from 2 to 20 values, all of them in several scored rows, if each candidate has
        one row."""
        if len({row.candidate for row in rows}) < len(rows):
            return ()
        counts = {column: groups[""] for column, groups in self._count(rows, lambda row: "").items()}
        return tuple(
            RepeatedColumn(column, tuple(values))
            for column, values in counts.items()
            if _is_few(values) and min(values.values()) > 1
        )

    def describe_repeat(self, row: RunRow, earlier: RunRow, rows: Sequence[RunRow]) -> str:
        """Return how to tell two scores of one run apart. A column of a task or a setting repeats its values, and alone
        or with others it tells all scores apart: one value of each is kept. Otherwise, a column that numbers the runs
        must be named."""
        cells, earlier_cells = self.cells(row), self.cells(earlier)
        differing = [column for column, value in cells.items() if value != earlier_cells.get(column)]
        if not differing:
            return "Remove one of the rows."
        conditions = self._find_conditions(differing, rows)
        shown = [column for column in differing if column in conditions or not conditions]
        values = ((column, earlier_cells.get(column, ""), cells[column]) for column in shown)
        texts = ["{} ({}, {})".format(*map(shown_cell, triple)) for triple in values]
        if not conditions:
            remedy = "Name the one that numbers the runs with --columns seed=NAME, or keep one value with --where"
            return f"They differ in {join_some(texts)}. {remedy} COLUMN=VALUE."
        options = " ".join(where_option(column, earlier_cells.get(column, "")) for column in conditions)
        is_step = len(conditions) == 1 and cell_number(cells[conditions[0]]) is not None
        largest = f", or the largest of each run: {where_option(conditions[0], 'last')}" if is_step else ""
        return f"They differ in {join_some(texts)}. Keep one: {options}{largest}."

    def _find_conditions(self, differing: Sequence[str], rows: Sequence[RunRow]) -> List[str]:
        """Return the columns with repeated values that tell all scores apart: one that differs, or as few as do so
        together. Columns with few values come first."""
        counts = {column: groups[""] for column, groups in self._count(rows, lambda row: "").items()}
        repeated = [column for column, values in counts.items() if sum(num > 1 for num in values.values()) > 1]
        repeated.sort(key=lambda column: len(counts[column]))
        for column in repeated:
            if column in differing and self._tell_runs_apart([column], rows):
                return [column]
        if not self._tell_runs_apart(repeated, rows):
            return []
        for column in repeated[::-1]:
            fewer = [other for other in repeated if other != column]
            repeated = fewer if self._tell_runs_apart(fewer, rows) else repeated
        return repeated

    def _count(self, rows: Sequence[RunRow], group_of: Callable[[RunRow], str]) -> ValueCounts:
        counts: ValueCounts = {}
        for row in rows:
            for column, value in self.cells(row).items() if row.is_scored else ():
                values = counts.setdefault(column, defaultdict(Counter))[group_of(row)]
                if value in values or len(values) <= MAX_VALUES:
                    values[value] += 1
        return counts

    def _measure(self, column: VaryingColumn, rows: Sequence[RunRow]) -> VaryingColumn:
        """Add what the rows say about a column: the adjusted R squared of the scores given its values, within
        candidates, and the runs without a score outside of them."""
        by_candidate: DefaultDict[str, List[float]] = defaultdict(list)
        by_value: DefaultDict[Tuple[str, str], List[float]] = defaultdict(list)
        num_elsewhere = 0
        for row in rows:
            value = self.cells(row).get(column.column, "")
            if isinstance(row.outcome, float) and value:
                by_candidate[row.candidate].append(row.outcome)
                by_value[row.candidate, value].append(row.outcome)
            num_elsewhere += not row.is_scored and value not in column.values
        within, between = (_mean_square(groups.values()) for groups in (by_value, by_candidate))
        share = max(0.0, 1 - within / between) if between else 0.0
        return replace(column, share=share, num_elsewhere=num_elsewhere)

    def _tell_runs_apart(self, columns: Sequence[str], rows: Sequence[RunRow]) -> bool:
        """Return whether no two scored rows have the same run and the same values."""
        scored_rows = [row for row in rows if row.is_scored]
        runs = {
            (row.candidate, row.split, row.seed, *(self.cells(row).get(column, "") for column in columns))
            for row in scored_rows
        }
        return len(runs) == len(scored_rows)


def unused_columns(used_by_sheet: Sequence[Tuple[Sheet, Set[int]]]) -> UnusedColumns:
    """Return the columns of these sheets without those at the used positions."""
    return UnusedColumns(
        {id(sheet): [p for p in range(len(sheet.columns)) if p not in used] for sheet, used in used_by_sheet}
    )


def _is_few(values: "Counter[str]") -> bool:
    return MIN_VALUES <= len(values) <= MAX_VALUES


def _mean_square(groups: Iterable[List[float]]) -> float:
    """Return the pooled variance within groups."""
    arrays = [np.array(group) for group in groups]
    degrees = sum(len(array) - 1 for array in arrays)
    return float(sum(((array - array.mean()) ** 2).sum() for array in arrays)) / degrees if degrees else 0.0
