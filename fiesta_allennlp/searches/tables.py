"""Tables of finished runs, in which a search looks scores up: the files of Zhang and Duh (2020), and CSV."""

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.errors import ConfigError, DataError, did_you_mean
from fiesta_allennlp.searches.searchers.base import Points
from fiesta_allennlp.searches.searchers.improvement import pareto_front
from fiesta_allennlp.selection.metrics import Metric

OBJECTIVES = ("dev_bleu", "dev_gpu_time", "dev_ppl", "num_updates", "gpu_memory", "num_param")
"""The columns of `.evals`."""

UNKNOWN_AS_ZERO = "gpu_memory"


@dataclass(frozen=True, eq=False)
class SearchTable:
    """Runs that have finished, one for each point.

    Attributes:
        objectives: what is optimised, `-NAME` what is minimised.
        scores: higher is better, so those of a minimised objective are negated; NaN is a run that failed. Shape:
            `(num_points, num_objectives)`.
    """

    name: str
    points: Points
    objectives: Tuple[str, ...]
    scores: np.ndarray

    def __post_init__(self) -> None:
        if not self.succeeded.any():
            raise DataError(f"{self.name}: no run has a value of {' and '.join(self.objectives)}.")

    @cached_property
    def succeeded(self) -> np.ndarray:
        """Which runs have all scores. Shape: `(num_points,)`."""
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    @cached_property
    def front(self) -> np.ndarray:
        """The rows that no other one dominates, ascending. Shape: `(num_front,)`."""
        rows = np.flatnonzero(self.succeeded)
        return rows[pareto_front(self.scores[rows])]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are inputs, and which are optimised; those of Zhang and Duh by default."""

    inputs: Tuple[str, ...] = ()
    objectives: Tuple[str, ...] = OBJECTIVES[:1]


def open_tables(given: Path, columns: Columns) -> List[SearchTable]:
    """The table of a CSV file, that of the files which begin with a name such as `DIR/zh-en`, or all in a directory.

    Raises:
        ConfigError: where there is none, or a column is not given.
        DataError: where the content is wrong, with the file, the line and the value.
    """
    if given.is_dir():
        stems = sorted(path.with_suffix("") for path in given.glob("*.hyps_scaled"))
        if not stems:
            raise ConfigError(f"{given}: there is no file that ends with .hyps_scaled in this directory.")
        return [read_files(stem, columns.objectives) for stem in stems]
    if given.suffix == ".csv":
        return [read_csv(given, columns)]
    return [read_files(given, columns.objectives)]


# The files of Zhang and Duh.


def read_files(stem: Path, objectives: Sequence[str]) -> SearchTable:
    """The table in STEM.hyps_scaled and STEM.evals. Row i of each is the same system.

    A STEM.fronts must agree with the front of dev_bleu and dev_gpu_time.

    Raises:
        ConfigError: where a file is missing, or an objective is no column.
        DataError: where the content is wrong.
    """
    inputs = _numbers(_beside(stem, ".hyps_scaled"))
    evals = _numbers(_beside(stem, ".evals"))
    _check_rows(stem, inputs, evals)
    values = {name: column for name, column in zip(OBJECTIVES, evals.T, strict=False)}
    values[UNKNOWN_AS_ZERO] = np.where(values[UNKNOWN_AS_ZERO] == 0, np.nan, values[UNKNOWN_AS_ZERO])
    _check_front(stem, values)
    scores = np.column_stack([_signed(values, objective, str(stem)) for objective in objectives])
    return SearchTable(stem.name, Points(inputs), tuple(objectives), scores)


def _beside(stem: Path, ending: str) -> Path:
    """`with_suffix` would cut what stands behind a dot of the name."""
    return stem.with_name(stem.name + ending)


def _numbers(path: Path) -> np.ndarray:
    """Columns of numbers, separated by tabs. Shape: `(num_rows, num_columns)`."""
    if not path.is_file():
        raise ConfigError(
            f"{path}: there is no such file. Give a CSV file, a directory with tables of Zhang and Duh (2020), or one "
            "of them, such as DIR/zh-en."
        )
    rows: List[List[float]] = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = [float(cell) for cell in text.split("\t")]
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}.") from error
        if not np.isfinite(row).all() or (rows and len(row) != len(rows[0])):
            raise DataError(f"{path}, line {line}: must have {len(rows[0] if rows else row)} finite numbers: {text}")
        rows.append(row)
    return np.array(rows)


def _check_rows(stem: Path, inputs: np.ndarray, evals: np.ndarray) -> None:
    if len(inputs) != len(evals):
        raise DataError(
            f"{stem}: .hyps_scaled has {len(inputs)} rows and .evals has {len(evals)}. Row i of both must be the same "
            "system."
        )
    if len(inputs) and evals.shape[1] != len(OBJECTIVES):
        raise DataError(f"{stem}.evals: must have {len(OBJECTIVES)} columns but has {evals.shape[1]}.")
    _check_distinct(inputs, lambda row: f"{stem}.hyps_scaled, line {row + 1}")


def _check_front(stem: Path, values: Mapping[str, np.ndarray]) -> None:
    path = _beside(stem, ".fronts")
    if not path.is_file():
        return
    given = _numbers(path)[:, 0].astype(bool)
    front = pareto_front(np.column_stack([values["dev_bleu"], -values["dev_gpu_time"]]))
    if len(given) != len(front) or (given != front).any():
        raise DataError(
            f"{path}: is not the front of dev_bleu and dev_gpu_time in {stem}.evals. Is it another table's?"
        )


# CSV.


def read_csv(path: Path, columns: Columns) -> SearchTable:
    """A table with a run in each line. An input of numbers is scaled to [0, 1]; `NAME:log` takes the logarithm first.
    Any other input has a dimension for each text, so that two different texts have the distance 1. A run whose
    objective is empty failed.

    Raises:
        ConfigError: where the file is missing, or a column is not in it.
        DataError: where a value is wrong, or two rows have equal inputs.
    """
    rows = _csv_rows(path)
    if not columns.inputs:
        raise ConfigError(f"{path}: say with --inputs which columns are inputs. There are: {', '.join(rows[0])}.")
    try:
        scaled = [scaled_input(_column(rows, name.removesuffix(":log"), path), name) for name in columns.inputs]
    except DataError as error:
        raise DataError(f"{path}: --inputs {error}") from error
    inputs = np.concatenate(scaled, axis=1)
    _check_distinct(inputs, lambda row: f"{path}, row {row + 1}")
    names = [Metric.of(objective).name for objective in columns.objectives]
    values = {name: _objective(_column(rows, name, path), name, path) for name in names}
    scores = np.column_stack([_signed(values, objective, str(path)) for objective in columns.objectives])
    return SearchTable(path.stem, Points(inputs), columns.objectives, scores)


def _csv_rows(path: Path) -> List[Dict[str, str]]:
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file.")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    if len(rows) < 2:
        raise DataError(f"{path}: there must be at least 2 runs but got {len(rows)}.")
    wrong = next((row for row, cells in enumerate(rows) if None in cells or None in cells.values()), None)
    if wrong is not None:
        raise DataError(f"{path}, row {wrong + 1}: must have {len(reader.fieldnames or ())} cells.")
    return rows


def _column(rows: Sequence[Mapping[str, str]], name: str, path: Path) -> List[str]:
    if name not in rows[0]:
        raise ConfigError(
            f"{path}: there is no column '{name}'.{did_you_mean(name, rows[0])} There are: {', '.join(rows[0])}."
        )
    return [row[name] for row in rows]


def scaled_input(cells: Sequence[str], name: str) -> np.ndarray:
    """An input scaled as `read_csv` says. Shape: `(num_cells, num_dimensions)`.

    Raises:
        DataError: where a value has no logarithm.
    """
    numbers = _as_numbers(cells)
    if numbers is None and name.endswith(":log"):
        raise DataError(f"{name}: a value is no number.")
    if numbers is None:
        kinds = sorted(set(cells))
        return np.array([[cell == kind for kind in kinds] for cell in cells]) / np.sqrt(2)
    if name.endswith(":log"):
        if numbers.min() <= 0:
            raise DataError(f"{name}: a value is {numbers.min():g}, which has no logarithm.")
        numbers = np.log(numbers)
    width = np.ptp(numbers)
    return ((numbers - numbers.min()) / (width or 1))[:, None]


def _objective(cells: Sequence[str], name: str, path: Path) -> np.ndarray:
    values = _as_numbers([cell or "nan" for cell in cells], finite=False)
    if values is None:
        wrong = next(cell for cell in cells if cell and _as_numbers([cell], finite=False) is None)
        raise DataError(f"{path}: the objective '{name}' must be numbers but one is '{wrong}'.")
    return np.where(np.isfinite(values), values, np.nan)


def _as_numbers(cells: Sequence[str], *, finite: bool = True) -> Optional[np.ndarray]:
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() or not finite else None


# Both.


def _signed(values: Mapping[str, np.ndarray], objective: str, where: str) -> np.ndarray:
    metric = Metric.of(objective)
    if metric.name not in values:
        raise ConfigError(
            f"{where}: there is no objective '{metric.name}'.{did_you_mean(metric.name, values)} There are: "
            f"{', '.join(values)}."
        )
    return metric.sign * values[metric.name]


def _check_distinct(inputs: np.ndarray, place: Callable[[int], str]) -> None:
    """Refuse two rows with equal inputs: a search runs no point twice."""
    first: Dict[bytes, int] = {}
    for row, values in enumerate(inputs):
        before = first.setdefault(values.tobytes(), row)
        if before != row:
            raise DataError(f"{place(row)}: has the inputs of {place(before)}. Leave one of them out, or average both.")
