"""The forms of a table of scores: separated text, JSON, JSONL, rows and lists from Python. Each becomes a `Sheet`."""

import csv
import io
import json
import sys
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.files import from_csv_cell, read_jsonl, refuse_repeated_keys, shorten

JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
SEPARATORS = (",", ";", "\t")
ROWS_EXAMPLE = 'a list of rows such as {"candidate": "a", "seed": 1, "score": 0.8}'
LIST_COLUMNS = ("candidate", "split", "seed", "score")
"""The columns of lists of scores, and of rows of which there are none yet."""

Line = Tuple[int, Sequence[Any]]
Content = Any
"""Rows from Python: mappings of column names, a data frame, or a mapping from candidates to lists of scores."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """The columns and lines of a table as they are.

    `lines` begins again with each call, and numbers each line; `where` names a line for messages, and `header` the
    place of the names of columns. `is_text` marks separated text, all cells of which are text. With `decimal_commas`,
    a number may have a comma for its decimal point. `is_list` marks lists of scores, whose positions stand for splits.
    """

    name: str
    columns: Tuple[str, ...]
    lines: Callable[[], Iterable[Line]]
    where: Callable[[int], str]
    header: str
    is_text: bool = False
    decimal_commas: bool = False
    is_list: bool = False


def read_text(path: Path) -> str:
    """Return the text of a table."""
    if not path.is_file():
        problem = "is a directory" if path.is_dir() else "no such file"
        raise ConfigError(f"{path}: {problem}. Pass a table of scores.")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}. Save the table as CSV in UTF-8.") from error


def read_sheet(path: Path, *, scores_per_split: Optional[int]) -> Sheet:
    """Read the table in a file. Only lists of scores have `scores_per_split`; None stands for one official split."""
    if path.suffix not in JSON_ENDINGS:
        return _read_separated_text(path)
    if path.suffix != ".json":
        read_text(path)  # for a missing file
        lines = list(read_jsonl(path))
        return _make_sheet_of_rows(str(path), [row for _, row in lines], [f"{path}, line {line}" for line, _ in lines])
    try:
        content = json.loads(read_text(path), object_pairs_hook=refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        suggestion = " If each line is an object, name the file .jsonl." if "Extra data" in str(error) else ""
        raise DataError(f"{path} is not valid JSON: {error}.{suggestion}") from error
    return make_sheet(content, str(path), scores_per_split=scores_per_split)


def make_sheet(content: Content, name: str, *, scores_per_split: Optional[int]) -> Sheet:
    """Read a table that is an object already. Messages call it `name`."""
    if hasattr(content, "to_dict") and hasattr(content, "columns"):
        levels = set(getattr(getattr(content, "index", None), "names", ())) - {None}
        if levels and levels.isdisjoint(content.columns):
            content = content.reset_index()
        if any(isinstance(column, tuple) for column in content.columns):
            raise DataError(f"{name}: the columns have several levels. Choose one, for example with frame['acc'].")
        columns = list(map(str, content.columns))
        repeated_column = next((column for column in columns if columns.count(column) > 1), None)
        if repeated_column is not None:
            raise DataError(f"{name}: the column '{repeated_column}' appears twice. Rename one.")
        content = content.to_dict("records")
    if isinstance(content, Mapping):
        return _make_sheet_of_lists(name, content, scores_per_split)
    if isinstance(content, (list, tuple)) and all(isinstance(row, Mapping) for row in content):
        return _make_sheet_of_rows(name, content, [f"{name}, row {number}" for number in range(1, len(content) + 1)])
    raise DataError(f'{name}: expected {{"candidate": [scores], ...}} or {ROWS_EXAMPLE} but got {shorten(content)}.')


def _read_separated_text(path: Path) -> Sheet:
    text = read_text(path)
    csv.field_size_limit(sys.maxsize)

    def open_csv(separator: str, *, strict: bool = True) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=strict)

    def where(number: int) -> str:
        return f"{path}, line {number}"

    def lines() -> Iterator[Line]:
        rows, width = open_csv(separator), len(columns)
        try:
            next(rows, None)
            for cells in rows:
                if len(cells) > width and any(cells[width:]):
                    raise DataError(f"{where(rows.line_num)}: the line has more fields than the header.")
                if any(cells):
                    yield (
                        rows.line_num,
                        cells if len(cells) == width else (*cells[:width], *[""] * (width - len(cells))),
                    )
        except csv.Error as error:
            raise DataError(f"{where(rows.line_num)}: not a valid row: {error}.") from error

    headers: Dict[str, List[str]] = {separator: next(open_csv(separator, strict=False), []) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda character: len(headers[character]))
    columns = tuple(from_csv_cell(cell.strip()) for cell in headers[separator])
    return Sheet(str(path), columns, lines, where, where(1), is_text=True, decimal_commas=separator != ",")


def _make_sheet_of_rows(name: str, rows: Sequence[Mapping[str, Any]], locations: Sequence[str]) -> Sheet:
    columns = tuple(dict.fromkeys(chain.from_iterable(rows))) or LIST_COLUMNS

    def lines() -> Iterator[Line]:
        return ((number, [row.get(column) for column in columns]) for number, row in enumerate(rows))

    return Sheet(name, tuple(map(str, columns)), lines, locations.__getitem__, name)


def _make_sheet_of_lists(name: str, lists: Mapping[str, Any], scores_per_split: Optional[int]) -> Sheet:
    """Number the scores of each candidate: each `scores_per_split` consecutive ones share a split."""
    cells: List[Sequence[Any]] = []
    locations: List[str] = []
    for candidate, scores in lists.items():
        where = f"{name}, candidate '{candidate}'"
        scores = scores.tolist() if hasattr(scores, "tolist") else scores
        if str(candidate).casefold() in (*LIST_COLUMNS, "metric"):
            raise DataError(
                f"{where}: each list has the scores of the candidate in its name, so '{candidate}' would be a "
                f"candidate. Remove it, or pass {ROWS_EXAMPLE}."
            )
        if not isinstance(scores, (list, tuple)) or not scores:
            raise DataError(
                f"{where}: must have a list of scores but has {shorten(scores)}. Correct it, or pass {ROWS_EXAMPLE}."
            )
        if len(scores) % (scores_per_split or 1):
            raise DataError(
                f"{where}: the number of scores, {len(scores)}, is not a multiple of --evaluations-per-split "
                f"{scores_per_split}. Complete the last split or change the option."
            )
        for number, score in enumerate(scores):
            split = number // scores_per_split if scores_per_split else ""
            cells.append((candidate, split, number + 1, score))
            locations.append(f"{where}, score {number + 1} of {len(scores)}")
    return Sheet(name, LIST_COLUMNS, lambda: enumerate(cells), locations.__getitem__, name, is_list=True)


def add_constant_column(sheet: Sheet, column: str, value: str) -> Sheet:
    """Return the sheet with one more column, which has the same value in every line."""

    def lines() -> Iterator[Line]:
        return ((number, (*cells, value)) for number, cells in sheet.lines())

    return _replace_lines(sheet, (*sheet.columns, column), lines)


def select_lines(sheet: Sheet, keeps: Callable[[Sequence[Any]], bool]) -> Sheet:
    """Return the sheet with some of its lines."""
    return _replace_lines(sheet, sheet.columns, lambda: (line for line in sheet.lines() if keeps(line[1])))


def melt(sheet: Sheet, positions: Sequence[int], name: str, *, number_column: Optional[str] = None) -> Sheet:
    """Return a wide sheet with a line for each cell in the columns at `positions`: the column's name is the value of
    the column `name`, and the cell is the `score`. An empty cell is a run that was not made. `number_column` names a
    column for the number of the row, from 0."""
    other_positions = [position for position in range(len(sheet.columns)) if position not in positions]
    numbers = [] if number_column is None else [number_column]

    def lines() -> Iterator[Line]:
        for row, (number, cells) in enumerate(sheet.lines()):
            other_cells = [*(cells[index] for index in other_positions), *([row] if numbers else ())]
            for position in positions:
                cell = cells[position]
                if cell is not None and cell == cell and str(cell).strip():
                    yield number, (*other_cells, sheet.columns[position], cell)

    return _replace_lines(sheet, (*(sheet.columns[index] for index in other_positions), *numbers, name, "score"), lines)


def _replace_lines(sheet: Sheet, columns: Tuple[str, ...], lines: Callable[[], Iterable[Line]]) -> Sheet:
    return replace(sheet, columns=columns, lines=lines)


def find_cells(sheet: Sheet, numbers: Sequence[int]) -> List[Sequence[Any]]:
    """Return the cells of the lines with these numbers, in their order."""
    cells_by_number = {number: cells for number, cells in sheet.lines() if number in numbers}
    return [cells_by_number[number] for number in numbers]


def differing_columns(sheet: Sheet, numbers: Sequence[int]) -> List[str]:
    """Return the names of the columns in which two lines differ."""
    first, second = find_cells(sheet, numbers)
    return [name for name, a, b in zip(sheet.columns, first, second, strict=True) if a != b and name]
