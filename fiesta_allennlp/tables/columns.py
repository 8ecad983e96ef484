"""The columns of a table of scores: how they are found, and the names and outcomes in their cells."""

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.errors import DataError, escape_invisible
from fiesta_allennlp.core.files import from_csv_cell, shorten
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.tables.forms import Sheet
from fiesta_allennlp.tables.rows import NUMBER, STATES, Outcome, cell_name, cell_text, interpret_score

COLUMN_ALIASES = {"state": ("state", "status"), "error": ("error", "info")}
"""The names of columns that are found without `--columns`, where they are not those of `COLUMNS`."""

THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,])[0-9]{3}")
STEPS = re.compile(
    r"(.*[^a-z_])?_?((global|train|training|eval|current|boosting)_)?"
    r"(epochs?|(time)?steps?|iter(ation)?s?|rounds?|episodes?|updates|checkpoints?|ckpt)(_(num|number|idx|total))?"
)
"""The names, in lower case, of columns that number the steps of a run."""

NUMBERING = re.compile(
    r"unnamed: [0-9]+|index|level_[0-9]+|id|#|no\.?|"
    r"(rep(eat|lica(te)?|etition)?s?|trials?|runs?)([ _](id|no|number|idx))?|"
    rf"(.*[\W_])?(seeds?|random_state)|{STEPS.pattern}"
)
"""The names, in lower case, of columns that number rows, runs or steps."""

MISSING_NAMES = {"nan", "na", "n/a", "#n/a", "<na>", "nat", "-", "--", "?"}
"""The texts, in lower case, that pandas, R and spreadsheets write for a missing name."""

NO_SCORE = re.compile(rf"{NUMBERING.pattern}|.* - .*__(min|max)|ranks?|(num_|n_|#)?param(eter)?s")
"""The names, in lower case, of columns without scores: numbers of rows, bounds of Weights & Biases, ranks and sizes."""


@dataclass(frozen=True)
class Columns:
    """A sheet in long form: the position of each of `COLUMNS`, None if it has none, and of those whose last value in a
    run counts."""

    sheet: Sheet
    positions: Dict[str, Optional[int]]
    last_positions: Tuple[int, ...] = ()

    @property
    def has_numbered_rows(self) -> bool:
        """Whether each row is a run with a number of its own, unless splits tell runs apart."""
        return self.positions["seed"] is None and not self.last_positions

    def header_of(self, column: str) -> str:
        position = self.positions[column]
        return column if position is None else self.sheet.columns[position]


class NameColumn:
    """The names in a column of a sheet."""

    def __init__(self, sheet: Sheet, position: Optional[int], read_cell: Callable[[Any], str]) -> None:
        self.sheet, self.position, self._read_cell = sheet, position, read_cell
        self._name_by_cell: Dict[str, str] = {}

    def name(self, cells: Sequence[Any]) -> str:
        """Return the name in a line, empty if it has none or the table has no such column."""
        if self.position is None:
            return ""
        cell = cells[self.position]
        if not isinstance(cell, str):
            return self._read_cell(cell)
        name = self._name_by_cell.get(cell)
        if name is None:
            name = self._name_by_cell[cell] = self._read_cell(cell)
        return name

    def is_missing(self, cells: Sequence[Any]) -> bool:
        return self.position is not None and not self.name(cells)


class OutcomeReader:
    """The scores in a sheet, with what its columns `state` and `error` say of them."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.sheet = columns, columns.sheet
        positions = (columns.positions[column] or 0 for column in ("score", "state", "error"))
        self._score_position, self._state_position, self._error_position = positions
        self._has_commas = self.sheet.decimal_commas and self._has_decimal_commas()

    def read_state(self, cells: Sequence[Any], number: int) -> Optional[str]:
        """Return the state of a run, None if it has none."""
        if self.columns.positions["state"] is None:
            return None
        text, header = cell_text(cells[self._state_position]).rpartition(".")[2], self.columns.header_of("state")
        if text and text.casefold() not in STATES:
            raise DataError(
                f"{self.sheet.where(number)}: '{header}' is '{shorten(escape_invisible(text))}', which is not "
                f"a known state of a run. Known states: {', '.join(STATES)}. If the column is not about runs, add "
                "--columns state=."
            )
        return STATES.get(text.casefold())

    def read_outcome(self, cells: Sequence[Any], number: int, state: Optional[str]) -> Outcome:
        score = cells[self._score_position]
        if self._has_commas:
            score = score.replace(",", ".")
        if type(score) is str and state in (None, "finished") and NUMBER.fullmatch(score):
            value = float(score)
            if abs(value) <= MAX_SCORE:
                return value
        reason = "" if self.columns.positions["error"] is None else cell_name(cells[self._error_position])
        return interpret_score(score, state, reason, where=self.sheet.where(number))

    def _has_decimal_commas(self) -> bool:
        """Return whether numbers have decimal commas. Refuse numbers that can be read in two ways."""
        first_by_mark: Dict[str, Tuple[int, str]] = {}
        is_clear = False
        for number, cells in self.sheet.lines():
            text = cell_text(cells[self._score_position])
            if not re.fullmatch(r"[-+0-9.,]+", text):
                continue
            marks = {mark for mark in ",." if mark in text}
            is_clear = is_clear or bool(marks and not THOUSANDS.fullmatch(text))
            for mark in marks or ({"none"} if text.strip("+-0") else ()):
                first_by_mark.setdefault(mark, (number, text))
        first_cells = [first_by_mark[mark] for mark in (",", ".") if mark in first_by_mark]
        if first_cells and "none" in first_by_mark and not is_clear:
            first_cells.append(first_by_mark["none"])
        if len(first_cells) > 1:
            (number, text), (_, rival) = first_cells[:2]
            raise DataError(
                f"{self.sheet.where(number)}: '{text}' can be read in two ways, because the table also has '{rival}'. "
                "Write all scores with a decimal point, and without separators of thousands."
            )
        return "," in first_by_mark


def parse_name(cell: Any) -> str:
    """Return the name in a cell, empty for a missing one."""
    text = cell_text(cell) if cell == cell else ""
    return "" if text.lower() in MISSING_NAMES else text


def parse_csv_name(cell: Any) -> str:
    return from_csv_cell(parse_name(cell))


def find_column(sheet: Sheet, header: str, column: str, *, is_typed: bool = False) -> Optional[int]:
    """Return the position of the column that looks like `header`, None if there is none. Of several, the one that was
    typed in full counts."""
    positions = [
        position for position, name in enumerate(sheet.columns) if comparison_key(name) == comparison_key(header)
    ]
    exact_positions = [position for position in positions if sheet.columns[position] == header]
    if len(exact_positions if is_typed and exact_positions else positions) > 1:
        names = " and ".join(ascii(sheet.columns[position]) for position in positions[:2])
        raise DataError(
            f"{sheet.header}: the columns {names} have the same name, or names that look alike. Rename one"
            f"{f', or name the one to use with --columns {column}=' if len(exact_positions) < 2 else ''}."
        )
    return next(iter(exact_positions or positions), None)


def find_number_columns(sheet: Sheet, used: Set[int]) -> List[int]:
    """Return the columns of a wide sheet that hold numbers, but not those that are used, or number the rows."""
    unread = {
        p for p, name in enumerate(sheet.columns) if p not in used and name and not NO_SCORE.fullmatch(name.lower())
    }
    numeric: Set[int] = set()
    for _, cells in sheet.lines():
        numeric |= {
            p for p in unread if isinstance(cells[p], Real) or NUMBER.fullmatch(cell_text(cells[p]).replace(",", "."))
        }
        unread -= numeric
    return sorted(numeric)
