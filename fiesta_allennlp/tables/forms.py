"""The forms of a table of scores: separated text, JSON, JSONL, data frames, rows and lists. Each becomes a `Sheet`."""

import csv
import io
import json
import math
import sys
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.errors import MAX_CHOICES, ConfigError, DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import from_csv_cell, read_jsonl, refuse_repeated_keys, shorten, shown_value

JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
SEPARATORS = (",", ";", "\t")
ROWS_EXAMPLE = 'a list of rows such as {"candidate": "a", "seed": 1, "score": 0.8}'
LIST_COLUMNS = ("candidate", "split", "seed", "score")
"""The columns of lists of scores, and of rows of which there are none yet."""

MAX_CELL = 40
"""The most characters of a cell, or of the name of a column, in a message."""

Line = Tuple[Union[int, str], Sequence[Any]]
"""The number of a line, and its cells."""

Content = Any
"""Rows from Python: mappings of column names, a data frame, or a mapping from candidates to lists of scores."""


class SplitSource(str, Enum):
    """Says which runs share a split."""

    NONE = "none"
    COLUMN = "column"
    ROWS = "rows of a wide table"
    LISTS = "positions in the lists"


@dataclass(frozen=True, eq=False)
class Sheet:
    """The columns and lines of a table as they are. `noun` and the number of a line name its place in messages."""

    name: str
    columns: Tuple[str, ...]
    lines: Sequence[Line]
    noun: str = "row"
    splits_from: SplitSource = SplitSource.COLUMN

    def where(self, number: Union[int, str]) -> str:
        return f"{self.name}, {self.noun} {number}"

    @property
    def header(self) -> str:
        """The place of the names of columns, for messages."""
        return self.where(1) if self.noun == "line" else self.name


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
    text = read_text(path)
    if path.suffix not in JSON_ENDINGS:
        return _read_separated_text(str(path), text)
    if path.suffix != ".json":
        lines = list(read_jsonl(path))
        return replace(
            _make_sheet_of_rows(str(path), [row for _, row in lines], [line for line, _ in lines]), noun="line"
        )
    try:
        content = json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        suggestion = " If each line is an object, name the file .jsonl." if "Extra data" in str(error) else ""
        raise DataError(f"{path} is not valid JSON: {error}.{suggestion}") from error
    return make_sheet(content, str(path), scores_per_split=scores_per_split)


def make_sheet(content: Content, name: str, *, scores_per_split: Optional[int]) -> Sheet:
    """Read a table that is an object already. Messages call it `name`."""
    if hasattr(content, "itertuples"):
        levels = set(content.index.names) - {None}
        frame = content.reset_index() if levels and levels.isdisjoint(content.columns) else content
        if any(isinstance(column, tuple) for column in frame.columns):
            raise DataError(f"{name}: the columns have several levels. Choose one, for example with frame['acc'].")
        rows = frame.itertuples(index=False, name=None)
        return Sheet(name, tuple(map(str, frame.columns)), list(enumerate(rows, start=1)))
    if isinstance(content, Mapping):
        return _make_sheet_of_lists(name, content, scores_per_split)
    if isinstance(content, (list, tuple)) and all(isinstance(row, Mapping) for row in content):
        return _make_sheet_of_rows(name, content, range(1, len(content) + 1))
    raise DataError(
        f'{name}: expected {{"candidate": [scores], ...}} or {ROWS_EXAMPLE} but got {shown_value(content)}.'
    )


def _read_separated_text(name: str, text: str) -> Sheet:
    csv.field_size_limit(sys.maxsize)

    def open_csv(separator: str, *, strict: bool = True) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=strict)

    separator = max(SEPARATORS, key=lambda character: len(next(open_csv(character, strict=False), [])))
    reader = open_csv(separator)
    lines: List[Line] = []
    try:
        columns = tuple(from_csv_cell(cell.strip()) for cell in next(reader, []))
        for cells in reader:
            if any(cells[len(columns) :]):
                names = list(map(shown_cell, columns))
                raise DataError(
                    f"{name}, line {reader.line_num}: the line has {len(cells)} fields, but the header has "
                    f"{len(columns)}: {join_some(names, limit=MAX_CHOICES)}. Give both the same fields."
                )
            if any(cells):
                lines.append((reader.line_num, (*map(from_csv_cell, cells), *[""] * (len(columns) - len(cells)))))
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not a valid row: {error}.") from error
    return Sheet(name, columns, lines, noun="line")


def _make_sheet_of_rows(name: str, rows: Sequence[Mapping[str, Any]], numbers: Sequence[int]) -> Sheet:
    columns = tuple(dict.fromkeys(chain.from_iterable(rows))) or LIST_COLUMNS
    lines = [(number, [row.get(column) for column in columns]) for number, row in zip(numbers, rows, strict=True)]
    return Sheet(name, tuple(map(str, columns)), lines)


def _make_sheet_of_lists(name: str, lists: Mapping[str, Any], scores_per_split: Optional[int]) -> Sheet:
    """Number the scores of each candidate: each `scores_per_split` consecutive ones share a split."""
    lines: List[Line] = []
    for candidate, scores in lists.items():
        where = f"{name}, candidate '{candidate}'"
        scores = scores.tolist() if hasattr(scores, "tolist") else scores
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
            place = f"'{candidate}', score {number + 1} of {len(scores)}"
            lines.append((place, (candidate, split, number + 1, score)))
    return Sheet(name, LIST_COLUMNS, lines, noun="candidate", splits_from=SplitSource.LISTS)


def melt(sheet: Sheet, positions: Sequence[int], name: str, *, number_column: Optional[str] = None) -> Sheet:
    """Return a wide sheet with a line for each cell in the columns at `positions`: the column's name is the value of
    the column `name`, and the cell is the `score`. An empty cell is a run that was not made. `number_column` names a
    column for the number of the row, from 0."""
    others = [position for position in range(len(sheet.columns)) if position not in positions]
    numbers = () if number_column is None else (number_column,)
    lines = [
        (
            number,
            (*(cells[other] for other in others), *(row for _ in numbers), sheet.columns[position], cells[position]),
        )
        for row, (number, cells) in enumerate(sheet.lines)
        for position in positions
        if cell_name(cells[position])
    ]
    return replace(sheet, columns=(*(sheet.columns[other] for other in others), *numbers, name, "score"), lines=lines)


def shown_cell(text: str) -> str:
    """Return a cell, or the name of a column, as a message shows it."""
    return shorten(escape_invisible(text), MAX_CELL)


def cell_text(value: Any) -> str:
    """Return a cell as text without blanks around it; empty for None and for what pandas calls NA."""
    return "" if value is None or type(value).__name__ in ("NAType", "NaTType") else str(value).strip()


def cell_name(value: Any) -> str:
    """Return a cell that names something: empty for NaN, and a whole number in one form for `0`, `0.0` and `00`."""
    text = cell_text(value)
    if text == "nan" and not isinstance(value, str):
        return ""
    whole, _, fraction = text.partition(".")
    return whole.lstrip("0") or "0" if whole.isdecimal() and not fraction.strip("0") else text


def cell_number(value: Any) -> Optional[float]:
    """Return the finite number in a cell, None if it has none."""
    text = cell_text(value)
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
