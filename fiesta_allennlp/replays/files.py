"""Score tables from files: `{candidate: [scores]}` as JSON, or CSV with one score on a line."""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

import numpy as np

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, DataError, command, did_you_mean, near, visible
from fiesta_allennlp.files import from_csv
from fiesta_allennlp.records import LARGEST_SCORE
from fiesta_allennlp.replays.sources import PRESETS, ScoreSource
from fiesta_allennlp.replays.table import ScoreTable
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.summary import count_text

SCORE_ENDINGS = (".json", ".csv")

COLUMNS = ("candidate", "split", "seed", "score")

FAILED = "failed"
"""The text of a row's score where a run gave none."""


def open_scores(
    scores: str, evaluations_per_split: Optional[int] = None, columns: Optional[Mapping[str, str]] = None
) -> ScoreSource:
    """The preset of this name, the table in this `.json` or `.csv` file, or that of the selection in this directory.

    Raises:
        ConfigError: where there is no such preset or file, or `evaluations_per_split` is given for what says itself
            which scores share a split.
        DataError: where the content is wrong, with the key or line, the value and the rule.
    """
    path = Path(scores)
    if path.is_dir():
        path = _table_in(path)
        scores = str(path)
    if scores in PRESETS:
        _refuse_blocks(scores, evaluations_per_split)
        return PRESETS[scores]
    if path.suffix in SCORE_ENDINGS:
        return read_scores(path, evaluations_per_split, columns)
    hint = did_you_mean(scores, PRESETS)
    raise ConfigError(
        f"'{scores}' is neither a file that ends with .json or .csv nor a preset.{hint} "
        f"The presets are: {', '.join(PRESETS)}."
    )


def read_scores(
    path: Path,
    evaluations_per_split: Optional[int] = None,
    columns: Optional[Mapping[str, str]] = None,
    *,
    least_candidates: int = 2,
) -> ScoreTable:
    """Read the table in a `.json` or `.csv` file.

    Raises:
        ConfigError: where there is no such file, or `evaluations_per_split` is given for CSV.
        DataError: where the content is wrong.
    """
    if path.suffix == ".json":
        return read_json(path, evaluations_per_split or 1, least_candidates)
    _refuse_blocks(str(path), evaluations_per_split)
    return read_csv(path, least_candidates, columns)


def _refuse_blocks(scores: str, evaluations_per_split: Optional[int]) -> None:
    if evaluations_per_split is not None:
        raise ConfigError(
            f"--evaluations-per-split: {scores} says itself which scores share a split. Leave the option out."
        )


def _table_in(directory: Path) -> Path:
    """The scores of the selection in a directory.

    Raises:
        ConfigError: where there are none that a report wrote.
    """
    path = RunDirectory(directory).report / "scores.csv"
    if not path.is_file():
        raise ConfigError(
            f"{directory} is a directory without {path.relative_to(directory)}. Write it with "
            f"{command('report')} {directory}, then give the directory again; or give a table of scores."
        )
    return path


def read_json(path: Path, evaluations_per_split: int, least_candidates: int = 2) -> ScoreTable:
    """A table from `{candidate: [scores]}`: the scores N s .. N s + N - 1 of every candidate share split s, where N is
    `evaluations_per_split`. There are at least `least_candidates`.

    Raises:
        ConfigError: where there is no such file.
        DataError: where the content is wrong, with the candidate, the number of the score and the value.
    """
    try:
        content = json.loads(_text(path), object_pairs_hook=_Pairs)
    except ValueError as error:
        raise DataError(f"{path}: is not valid JSON: {error}.") from error
    if not isinstance(content, _Pairs):
        raise DataError(f'{path}: expected an object, {{"candidate": [scores], ...}}, but got {_short(content)}.')
    return table_of(content, evaluations_per_split, path, least_candidates)


def table_of(
    content: Iterable[Tuple[str, Any]], evaluations_per_split: int, path: Path, least_candidates: int = 2
) -> ScoreTable:
    """A table from candidates and their scores, as in `read_json`. `path` is what to call it.

    Raises:
        DataError: as `read_json`.
    """
    builder = _Builder(path)
    for candidate, scores in content:
        if not isinstance(scores, list) or not scores:
            raise DataError(f"{path}: candidate '{candidate}' needs a list of scores but has {_short(scores)}.")
        if len(scores) % evaluations_per_split:
            raise DataError(
                f"{path}: candidate '{candidate}' has {len(scores)} scores, which is no multiple of "
                f"--evaluations-per-split {evaluations_per_split}. Complete the last split or change the option."
            )
        if candidate in builder.rows:
            raise DataError(f"{path}: candidate '{candidate}' is there more than once. Merge its lists of scores.")
        for number, score in enumerate(scores):
            where = f"candidate '{candidate}', score {number + 1} of {len(scores)}"
            if isinstance(score, bool) or not isinstance(score, (int, float)):
                _refuse(path, where, _short(score))
            builder.add(candidate, number // evaluations_per_split, score, where)
    return builder.table(least_candidates)


@dataclass(frozen=True)
class Row:
    """A line of a table of scores, as text. `where` names the line in messages."""

    candidate: str
    split: str
    seed: str
    score: str
    metric: str
    where: str

    @property
    def run(self) -> Tuple[str, str, str]:
        """The candidate, split and seed, which no other row has."""
        return self.candidate, self.split, self.seed


def read_csv(path: Path, least_candidates: int = 2, columns: Optional[Mapping[str, str]] = None) -> ScoreTable:
    """A table from CSV with the columns candidate, seed, score and, unless all runs share one official split, split. A
    column metric with `-NAME` says that lower scores are better; others are ignored.

    Equal texts in `split` are one split. `seed` tells the scores of one candidate on one split apart. There are at
    least `least_candidates`. Columns may also be separated by semicolons, with decimal commas, or by tabs. Rows with
    nothing in them are skipped, and so are runs without a score: those that have not finished, or `failed`.

    Args:
        columns: the names that the file gives to some of the columns.

    Raises:
        ConfigError: where there is no such file.
        DataError: where the content is wrong, with the line and the value.
    """
    found = read_rows(path, columns)
    scored = [row for row in found.rows if row.score not in ("", FAILED)]
    builder = _Builder(path)
    for row in scored:
        split = row.split if found.has_splits else f"the official one, {row.where}"
        builder.add(row.candidate, split, number_in(row, path), row.where)
    table = builder.table(least_candidates, minimise=is_minimised(scored, path))
    left_out = len(found.rows) - len(scored)
    without = (f"Left out: {count_text(left_out, 'run')} without a score.",) if left_out else ()
    return replace(table, on_official_splits=not found.has_splits, notes=(*found.notes, *without))


@dataclass(frozen=True)
class Rows:
    """The rows of a table of scores. Without `has_splits`, all runs share one official split."""

    rows: List[Row]
    has_splits: bool

    @property
    def notes(self) -> Tuple[str, ...]:
        """Sentences about what the splits and seeds mean."""
        if not self.has_splits:
            return (NO_SPLITS,)
        if self.rows and all(row.split == row.seed for row in self.rows):
            return (SPLITS_ARE_SEEDS,)
        by_split: Dict[str, Set[str]] = {}
        for row in self.rows:
            by_split.setdefault(row.split, set()).add(row.candidate)
        are_apart = all(len(names) == 1 for names in by_split.values())
        return (NOT_SHARED,) if are_apart and len({row.candidate for row in self.rows}) > 1 else ()


NO_SPLITS = (
    "The table has no column split: all runs share one official split, and only seeds vary. Scores are not paired, and "
    "P(best) is about new seeds on this split, not about new data."
)
SPLITS_ARE_SEEDS = (
    "In every line, split is equal to seed. Runs with equal numbers are compared as runs on the same data. This is "
    "right if the number also drew the split. If all runs share one official split, leave the column split out."
)
NOT_SHARED = (
    "No two candidates have a split in common, so no scores are paired, and the spread between splits counts as noise. "
    "Give equal splits equal names; or leave the column split out if all runs share one official split."
)


def read_rows(path: Path, columns: Optional[Mapping[str, str]] = None, *, is_official: bool = False) -> Rows:
    """The rows of a table as `read_csv` describes it, in their order. A score may be empty. A later row with the same
    candidate, split and seed then takes its place.

    Args:
        columns: the names that the file gives to some of the columns.
        is_official: all runs share one official split, whatever the file says.

    Raises:
        ConfigError: where there is no such file.
        DataError: where the content is wrong, with the line and the value.
    """
    reader = _reader(path)
    columns = columns or {}
    named = list(reader.fieldnames or [])
    has_splits = not is_official and ("split" in columns or bool(near("split", named)))
    needed = [column for column in COLUMNS if column != "split" or has_splits]
    called = {column: columns.get(column, column) for column in (*COLUMNS, "metric")}
    _check_header(named, [called[column] for column in needed], path)
    rows: List[Row] = []
    for cells in reader:
        if not any(cells.values()):
            continue
        where = f"line {reader.line_num}"
        values = {column: cells.get(name) or "" for column, name in called.items()}
        empty = [called[column] for column in needed if column != "score" and not values[column]]
        if empty or None in cells:
            wrong = f"'{empty[0]}' is empty" if empty else "there are more fields than columns"
            raise DataError(
                f"{path}, {where}: {wrong}. Every line needs {', '.join(called[column] for column in needed)}."
            )
        if reader.reader.dialect.delimiter == ";":
            values["score"] = values["score"].replace(",", ".")
        values.update(candidate=from_csv(values["candidate"]), metric=from_csv(values["metric"]))
        rows.append(Row(**values, where=where))
    if not has_splits:
        rows = [replace(row, split="") for row in rows]
    return Rows(each_once(rows, path), has_splits)


def each_once(rows: Iterable[Row], path: Path) -> List[Row]:
    """The rows without those whose score came in a later row.

    Raises:
        DataError: where two rows have the same candidate, split and seed, and both have scores.
    """
    found: Dict[Tuple[str, str, str], Row] = {}
    for row in rows:
        before = found.pop(row.run, None)
        if before is not None and before.score:
            raise DataError(
                f"{path}, {row.where}: candidate '{row.candidate}', split {row.split}, seed {row.seed} was on "
                f"{before.where} already. Remove one of them, or number their seeds apart."
            )
        found[row.run] = row
    return list(found.values())


def _reader(path: Path) -> "csv.DictReader[str]":
    text = _text(path)
    return csv.DictReader(text.splitlines(keepends=True), delimiter=_delimiter(text))


def _check_header(named: List[str], needed: Sequence[str], path: Path) -> None:
    missing = [column for column in needed if column not in named]
    if missing:
        alike = near(missing[0], set(named) - set(needed))
        hint = f" Is it '{alike[0]}'? Then rename that column." if alike else ""
        hint += f" Or name the columns, as in --columns {missing[0]}={named[0] if named else 'NAME'}."
        raise DataError(
            f"{path}, line 1: the column '{missing[0]}' is missing. The first line must name the columns "
            f"{', '.join(needed)} but is: {','.join(named) or 'empty'}.{hint}"
        )


def number_in(row: Row, path: Path) -> float:
    """The score of a row.

    Raises:
        DataError: where it is no number, or too large.
    """
    try:
        score = float(row.score)
    except ValueError:
        _refuse(path, row.where, f"'{row.score}'")
    if not abs(score) <= LARGEST_SCORE:
        _refuse(path, row.where, row.score)
    return score


def is_minimised(rows: Sequence[Row], path: Path) -> bool:
    """Return whether the metric of the rows says that lower scores are better.

    Raises:
        DataError: where the rows differ in that.
    """
    directions = {Metric.of(row.metric).minimise: row.where for row in rows}
    if len(directions) > 1:
        raise DataError(
            f"{path}, {directions[True]}: 'metric' begins with a minus, so less is better, but not on "
            f"{directions[False]}. All lines need the same metric."
        )
    return True in directions


def _delimiter(text: str) -> str:
    """Return what the first line has most often between its columns."""
    header = text.partition("\n")[0]
    return max((",", ";", "\t"), key=header.count)


class _Pairs(tuple):
    """A JSON object as its pairs, so that a key that appears twice is not lost."""


@dataclass
class _Builder:
    """Collects rows into a table."""

    path: Path

    def __post_init__(self) -> None:
        self.rows: Dict[str, List[Tuple[int, float]]] = {}
        self._splits: Dict[Any, int] = {}

    def add(self, candidate: str, split: Any, score: float, where: str) -> None:
        if not abs(score) <= LARGEST_SCORE:
            _refuse(self.path, where, str(score))
        if visible(candidate) != candidate:
            raise DataError(
                f"{self.path}, {where}: the name of the candidate '{visible(candidate)}' contains a control character "
                "or another invisible one, which breaks tables. Rename it."
            )
        position = self._splits.setdefault(split, len(self._splits))
        self.rows.setdefault(candidate, []).append((position, score))

    def table(self, least_candidates: int, *, minimise: bool = False) -> ScoreTable:
        if len(self.rows) < least_candidates:
            least = "1 candidate" if least_candidates == 1 else f"{least_candidates} candidates"
            raise DataError(
                f"{self.path}: there must be scores of at least {least} but got {len(self.rows)}: "
                f"{', '.join(self.rows) or 'none'}."
            )
        splits, scores = {}, {}
        for candidate, rows in self.rows.items():
            rows.sort(key=lambda row: row[0])
            splits[candidate] = np.array([split for split, _ in rows])
            scores[candidate] = np.array([score for _, score in rows], dtype=float)
        return ScoreTable(str(self.path), [str(split) for split in self._splits], splits, scores, minimise)


def _text(path: Path) -> str:
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file. Give a table of scores, or one of: {', '.join(PRESETS)}.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text: {error}.") from error


def _refuse(path: Path, where: str, value: str) -> NoReturn:
    raise DataError(
        f"{path}, {where}: a score must be a number of at most {LARGEST_SCORE:g} in size but this is {value}. Fix it, "
        "or leave out the evaluation."
    )


def _short(value: Any) -> str:
    """A value as JSON, cut to fit a message."""
    text = json.dumps(dict(value) if isinstance(value, _Pairs) else value)
    return text if len(text) <= 40 else text[:37] + "..."
