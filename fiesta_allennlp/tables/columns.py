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
from fiesta_allennlp.tables.rows import NUMBER, STATES, Outcome, name_of_cell, outcome_of, text_of_cell

ALIASES = {"state": ("state", "status"), "error": ("error", "info")}
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

MISSING = {"nan", "na", "n/a", "#n/a", "<na>", "nat", "-", "--", "?"}
"""The texts, in lower case, that pandas, R and spreadsheets write for a missing name."""

NO_SCORES = re.compile(rf"{NUMBERING.pattern}|.* - .*__(min|max)|ranks?|(num_|n_|#)?param(eter)?s")
"""The names, in lower case, of columns without scores: numbers of rows, bounds of Weights & Biases, ranks and sizes."""


@dataclass(frozen=True)
class Columns:
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


class Named:
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


class Outcomes:
    """The scores in a sheet, with what its columns `state` and `error` say of them."""

    def __init__(self, columns: Columns) -> None:
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
                f"{self.sheet.where(number)}: '{called}' is '{shorten(escape_invisible(text))}', which is not "
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
            if abs(value) <= MAX_SCORE:
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


def text_in(cell: Any) -> str:
    """Return the name in a cell, empty for a missing one."""
    text = text_of_cell(cell) if cell == cell else ""
    return "" if text.lower() in MISSING else text


def text_in_csv(cell: Any) -> str:
    return from_csv_cell(text_in(cell))


def find(sheet: Sheet, called: str, column: str, *, is_typed: bool = False) -> Optional[int]:
    """Return the position of the column that looks like `called`, None if there is none. Of several, the one that was
    typed in full counts."""
    positions = [
        position for position, name in enumerate(sheet.columns) if comparison_key(name) == comparison_key(called)
    ]
    exact = [position for position in positions if sheet.columns[position] == called]
    if len(exact if is_typed and exact else positions) > 1:
        names = " and ".join(ascii(sheet.columns[position]) for position in positions[:2])
        raise DataError(
            f"{sheet.header}: the columns {names} have the same name, or names that look alike. Rename one"
            f"{f', or name the one to use with --columns {column}=' if len(exact) < 2 else ''}."
        )
    return next(iter(exact or positions), None)


def with_numbers(sheet: Sheet, used: Set[int]) -> List[int]:
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
