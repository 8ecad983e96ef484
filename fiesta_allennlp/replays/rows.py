"""The rows of a table of scores, one for each run: from a CSV file, from lists of scores, or from Python."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.errors import ConfigError, DataError, near
from fiesta_allennlp.files import from_csv, shortened
from fiesta_allennlp.records import LARGEST_SCORE
from fiesta_allennlp.replays.settings import COLUMNS
from fiesta_allennlp.selection.metrics import Metric

FAILED = "failed"
"""The text that stands for the score of a failed run."""

NO_SPLITS = (
    "The table has no split column: all runs share one official split, and only seeds vary. Scores are not paired, and "
    "P(best) refers to new seeds on this split, not to new data."
)
SPLITS_ARE_SEEDS = (
    "Split equals seed in every row, so runs with equal numbers are compared as runs on the same data. This is right "
    "if the number also determined the split. If all runs share one official split, remove the split column."
)
NOT_SHARED = (
    "No two candidates have a split in common, so no scores are paired, and the variation between splits counts as "
    "noise. Use the same name for the same split, or remove the split column if all runs share one official split."
)


@dataclass(frozen=True)
class Row:
    """A row of a table of scores, as text. `where` names the table and the row in messages."""

    candidate: str
    split: str
    seed: str
    score: str
    metric: str
    where: str

    @property
    def number(self) -> float:
        """The score of a run that has one."""
        try:
            value = float(self.score)
        except ValueError:
            value = math.nan
        if not abs(value) <= LARGEST_SCORE:
            raise DataError(
                f"{self.where}: a score must be a number of at most {LARGEST_SCORE:g} in magnitude but got "
                f"'{shortened(self.score)}'. Correct it, write {FAILED} for a run that ended without a score, or leave "
                "it empty (null in JSON, None in Python) for a run that has not finished."
            )
        return value


@dataclass(frozen=True)
class Rows:
    """The rows of a table of scores. Without `has_splits`, all runs share one official split."""

    rows: List[Row]
    has_splits: bool

    @property
    def splits_are_seeds(self) -> bool:
        """Whether one number decides both the split and the seed of every run."""
        return bool(self.rows) and all(row.split == row.seed for row in self.rows)

    @property
    def notes(self) -> Tuple[str, ...]:
        if not self.has_splits:
            return (NO_SPLITS,)
        if self.splits_are_seeds:
            return (SPLITS_ARE_SEEDS,)
        pairs = {(row.split, row.candidate) for row in self.rows}
        are_apart = len(pairs) == len({split for split, _ in pairs})
        return (NOT_SHARED,) if are_apart and len({candidate for _, candidate in pairs}) > 1 else ()


def read_rows(path: Path, columns: Optional[Mapping[str, str]] = None, *, is_official: bool = False) -> Rows:
    """Read the rows of a CSV file. Its columns are candidate, seed, score and, without official splits, split.

    A metric column with `-NAME` means that lower scores are better; other columns are ignored. Columns can also be
    separated by tabs, or by semicolons with decimal commas. `columns` maps these names to the file's own."""
    text = text_of(path)
    header = text.partition("\n")[0]
    delimiter = max((",", ";", "\t"), key=header.count)
    reader = csv.DictReader(text.splitlines(keepends=True), delimiter=delimiter)
    named = list(reader.fieldnames or [])
    called = _called(columns)
    has_splits = not is_official and ("split" in (columns or {}) or bool(near("split", named)))
    _check_header(named, {column: called[column] for column in (*_needed(has_splits=has_splits), "score")}, path)
    return rows_of(_lines(reader, called, path), columns, has_splits=has_splits)


def rows_of(
    given: Iterable[Tuple[str, Mapping[str, Any]]], columns: Optional[Mapping[str, str]] = None, *, has_splits: bool
) -> Rows:
    """Make rows from mappings of column names, each with its place for messages. A later row of a run that has no score
    yet replaces the earlier one."""
    called, needed = _called(columns), _needed(has_splits=has_splits)
    found: Dict[Tuple[str, str, str], Row] = {}
    for where, cells in given:
        values = {column: text_in(cells, name) for column, name in called.items()}
        if _is_nan(cells.get(called["score"])):
            values["score"] = "nan"  # to be refused where a score is read: only None is a run that has not finished
        missing = [called[column] for column in needed if not values[column]]
        if missing:
            names = ", ".join(called[column] for column in needed)
            raise DataError(f"{where}: '{missing[0]}' is empty. Every row needs {names} and {called['score']}.")
        row = Row(**{**values, "split": values["split"] if has_splits else ""}, where=where)
        run = (row.candidate, row.split, row.seed)
        before = found.pop(run, None)
        if before is not None and before.score:
            split = f", split {row.split}" if row.split else ""
            raise DataError(
                f"{where}: candidate '{row.candidate}'{split}, seed {row.seed} already appears in "
                f"{before.where}. Remove one of the rows, or change a seed."
            )
        found[run] = row
    return Rows(list(found.values()), has_splits)


def _called(columns: Optional[Mapping[str, str]]) -> Dict[str, str]:
    return {column: (columns or {}).get(column, column) for column in COLUMNS}


def _needed(*, has_splits: bool) -> Tuple[str, ...]:
    return ("candidate", "split", "seed") if has_splits else ("candidate", "seed")


def text_in(cells: Mapping[str, Any], column: str) -> str:
    """Return a value of a row as text, which is empty for None and NaN."""
    value = cells.get(column)
    return "" if value is None or _is_nan(value) else str(value)


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _lines(
    reader: "csv.DictReader[str]", called: Mapping[str, str], path: Path
) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    """Yield the lines that are not empty, with decimal points and with names as before `to_csv`."""
    score, names = called["score"], (called["candidate"], called["metric"])
    for cells in reader:
        where = f"{path}, line {reader.line_num}"
        if None in cells:
            raise DataError(f"{where}: the line has more fields than the header.")
        if any(cells.values()):
            if reader.reader.dialect.delimiter == ";" and cells[score]:
                cells[score] = cells[score].replace(",", ".")
            yield where, {name: from_csv(text) if name in names and text else text for name, text in cells.items()}


def _check_header(named: List[str], needed: Mapping[str, str], path: Path) -> None:
    missing = next((column for column in needed if needed[column] not in named), None)
    if missing is not None:
        called = needed[missing]
        likely = (near(called, named) or ["NAME"])[0]
        raise DataError(
            f"{path}, line 1: the column '{called}' is missing. The header must include {', '.join(needed.values())} "
            f"but is {','.join(named) or 'empty'}. If another column holds the {missing}, map it with --columns "
            f"{missing}={likely}."
        )


def is_minimised(rows: Sequence[Row]) -> bool:
    """Return whether lower scores of the rows are better."""
    directions = {Metric.of(row.metric).minimise: row.where for row in rows}
    if len(directions) > 1:
        raise DataError(
            f"{directions[True]}: the metric starts with a minus (lower is better), but not on "
            f"{directions[False]}. Use one metric for all rows."
        )
    return True in directions


def rows_of_lists(content: Mapping[str, Any], evaluations_per_split: int, path: Path) -> Rows:
    """Make rows of `{candidate: [scores]}`: each `evaluations_per_split` consecutive scores of a candidate share a
    split. Messages call the table `path`."""
    return rows_of(_listed(content, evaluations_per_split, path), has_splits=True)


def _listed(
    content: Mapping[str, Any], evaluations_per_split: int, path: Path
) -> Iterator[Tuple[str, Mapping[str, Any]]]:
    for candidate, scores in content.items():
        where = f"{path}, candidate '{candidate}'"
        if not isinstance(scores, list) or not scores:
            raise DataError(f"{where}: must have a list of scores but has {shortened(scores)}.")
        if len(scores) % evaluations_per_split:
            raise DataError(
                f"{where}: the number of scores, {len(scores)}, is not a multiple of --evaluations-per-split "
                f"{evaluations_per_split}. Complete the last split or change the option."
            )
        for number, score in enumerate(scores):
            seed = f"score {number + 1} of {len(scores)}"
            cells = {"candidate": candidate, "split": number // evaluations_per_split, "seed": seed, "score": score}
            yield f"{where}, {seed}", cells


def text_of(path: Path) -> str:
    """Return the text of a table."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file. Pass a table of scores.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from error
