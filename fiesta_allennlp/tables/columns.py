"""Finds the columns of a table of scores that the settings name, after `--where` has chosen its lines and `--wide` has
made lines of its columns."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, DefaultDict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

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
from fiesta_allennlp.tables.forms import Sheet, SplitSource, cell_name, cell_number, melt, shown_cell
from fiesta_allennlp.tables.settings import COLUMNS

LARGEST = "last"
"""The value of `--where COLUMN=last`, which keeps the largest value of each run."""


@dataclass(frozen=True)
class Columns:
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
class ColumnFinder:
    """Finds the columns of sheets as the settings of a command say. With `names_files`, a file without a column of
    candidates has one candidate."""

    settings: Any
    is_official: bool
    names_files: bool

    @property
    def headers(self) -> Mapping[str, str]:
        return self.settings.columns or {}

    def find(self, sheet: Sheet, candidate: str) -> Columns:
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
        return Columns(sheet, positions, tuple(map(sheet.columns.index, largest_names)), used)

    def _find_position(self, sheet: Sheet, column: str) -> Optional[int]:
        """Return the position of a column, None if the table has none or `--columns` leaves it out."""
        header = self.headers.get(column, column)
        position = find_column(sheet, header) if header else None
        has_sign = column == "score" and header[:1] in ("+", "-")
        return find_column(sheet, header[1:]) if position is None and has_sign else position

    def _refuse_column(self, sheet: Sheet, column: str, header: str) -> NoReturn:
        names = [shown_cell(name) for name in sheet.columns]
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
