"""The space of a search: the values of a template, points drawn from them, and the files that describe them."""

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import refuse_constant, shorten, shown_value
from fiesta_allennlp.trainings.candidate_values import Point, read_points

SIGNIFICANT_DIGITS = 3
"""Significant digits of a number that is drawn, so that a candidate's name stays short."""

LOG_SCALE_RATIO = 10.0
"""Numbers of a list are scaled by logarithm if all are above 0, and the largest is this many times the least."""

TRIES_PER_POINT = 50
"""Draws for each distinct point, before a space counts as exhausted."""


@dataclass(frozen=True)
class NumberRange:
    """A range of numbers, both ends included; with `step`, those at multiples of it from `low` on."""

    low: float
    high: float
    is_log: bool = False
    is_int: bool = False
    step: Optional[float] = None

    @property
    def values(self) -> Optional[List[Any]]:
        """All values; None if they are too many to count."""
        step = self.step or (1 if self.is_int else None)
        if step is None:
            return [self.low] if self.low == self.high else None
        num_values = math.floor((self.high - self.low) / step + 1e-9) + 1
        return [self._round(self.low + index * step) for index in range(num_values)]

    def draw(self, rng: np.random.Generator) -> Any:
        if self.step is not None:
            values = self.values or []
            return values[int(rng.integers(len(values)))]
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else (self.low, self.high)
        if self.is_int and not self.is_log:
            return int(rng.integers(int(low), int(high) + 1))
        drawn = float(rng.uniform(low, high))
        return self._round(math.exp(drawn) if self.is_log else drawn)

    def _round(self, value: float) -> Any:
        rounded = round(value) if self.is_int else float(f"{value:.{SIGNIFICANT_DIGITS}g}")
        return min(max(rounded, self.low), self.high)

    def scale_to_unit(self, values: Sequence[Any]) -> np.ndarray:
        """Scale values to [0, 1] by the ends of the range. Shape: `(num_values, 1)`."""
        transform = np.log if self.is_log else np.asarray
        low, high = float(transform(self.low)), float(transform(self.high))
        return ((transform(np.array(values, dtype=float)) - low) / ((high - low) or 1))[:, None]


@dataclass(frozen=True)
class Choices:
    """A list of values of any JSON type."""

    values: List[Any]

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]

    def scale_to_unit(self, values: Sequence[Any]) -> np.ndarray:
        """Scale numbers to [0, 1], by logarithm where they span a decade. Anything else gets a dimension for each
        value, so that two different values have the distance 1."""
        if all(is_number(value) and math.isfinite(value) for value in self.values):
            low, high = min(self.values), max(self.values)
            return NumberRange(low, high, is_log=low > 0 and high >= LOG_SCALE_RATIO * low).scale_to_unit(values)
        categories = sorted(map(json.dumps, self.values))
        return np.array([[json.dumps(value) == category for category in categories] for value in values]) / np.sqrt(2)


Dimension = Any
"""`NumberRange` or `Choices`."""


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class PointPool:
    """The points that a search can run, and their inputs in [0, 1]. Shape of `inputs`: `(num_points, num_inputs)`."""

    points: Tuple[Point, ...]
    inputs: np.ndarray


@dataclass(frozen=True)
class Space:
    """The values that each name of a template may have."""

    dimensions: Mapping[str, Dimension]

    def __post_init__(self) -> None:
        for name in self.dimensions:
            if name.rpartition(".")[2].endswith("seed"):
                raise ConfigError(
                    f"'{name}' is a seed, not a hyperparameter: the best seed is only lucky, and every run gets fresh "
                    "seeds anyway. Remove it from the space."
                )
        Point(dict.fromkeys(self.dimensions))

    @property
    def num_points(self) -> Optional[int]:
        """The number of points; None if they are too many to count."""
        value_lists = [dimension.values for dimension in self.dimensions.values()]
        return None if any(values is None for values in value_lists) else math.prod(map(len, value_lists))

    def draw_pool(self, max_points: int, rng: np.random.Generator) -> PointPool:
        """Return all points in random order, or `max_points` different ones at random where there are more."""
        num_points = self.num_points
        if num_points is not None and num_points <= max_points:
            grid = itertools.product(*(dimension.values for dimension in self.dimensions.values()))
            points = [Point(dict(zip(self.dimensions, values, strict=True))) for values in grid]
            return self.make_pool([points[row] for row in rng.permutation(len(points))])
        point_by_identity: Dict[str, Point] = {}
        for _ in range(TRIES_PER_POINT * max_points):
            point = Point({name: dimension.draw(rng) for name, dimension in self.dimensions.items()})
            point_by_identity.setdefault(point.identity, point)
            if len(point_by_identity) == max_points:
                break
        return self.make_pool(list(point_by_identity.values()))

    def make_pool(self, points: Sequence[Point]) -> PointPool:
        """Return points of this space with their inputs. A name that a point lacks has the value None."""
        columns = [
            dimension.scale_to_unit([point.values.get(name) for point in points])
            for name, dimension in self.dimensions.items()
        ]
        return PointPool(tuple(points), np.concatenate([np.zeros((len(points), 0)), *columns], axis=1))


def pool_from_points(points: Any) -> PointPool:
    """Return the points of a JSONL file, or of a list, in their order. A name that some points lack is a category."""
    points = read_points(points)
    names = dict.fromkeys(name for point in points for name in point.values)
    distinct = {name: {json.dumps(value): value for value in (p.values.get(name) for p in points)} for name in names}
    return Space({name: Choices(list(values.values())) for name, values in distinct.items()}).make_pool(points)


def read_space(content: Any) -> Space:
    """Return the space in a JSON file, or as plain data: our own form, or allennlp-optuna's list."""
    is_file = isinstance(content, (str, Path))
    try:
        return Space(_parse_dimensions(_read_json(Path(content)) if is_file else content))
    except ConfigError as error:
        raise ConfigError(f"{content if is_file else 'the space'}: {error}") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=refuse_constant)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}. Pass the search space as a JSON file.") from error
    except ValueError as error:
        raise ConfigError(f"not valid JSON: {error}") from error


EXAMPLE = '{"lr": {"low": 1e-4, "high": 0.1, "log": true}, "layers": [1, 2]}'
RANGE_KEYS = {"low", "high", "log", "step", "type"}


def _parse_dimensions(content: Any) -> Dict[str, Dimension]:
    if isinstance(content, list):
        content = dict(_parse_optuna_entry(entry, number) for number, entry in enumerate(content, start=1))
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"must be an object such as {EXAMPLE} but is {shown_value(content)}.")
    return {
        name: _parse_range(name, entry) if isinstance(entry, dict) else _parse_choices(name, entry)
        for name, entry in content.items()
    }


def _parse_optuna_entry(entry: Any, number: int) -> Tuple[str, Any]:
    """Read `{"type": "float", "attributes": {"name": "lr", "low": 0.001, "high": 0.1, "log": true}}`"""
    try:
        type_name, attributes = entry["type"], dict(entry["attributes"])
        name = str(attributes.pop("name"))
        return name, attributes["choices"] if type_name == "categorical" else {**attributes, "type": type_name}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"entry {number} must have a 'type' (int, float or categorical) and 'attributes' with a 'name' but is "
            f"{shorten(entry)}."
        ) from error


def _parse_range(name: str, entry: Mapping[str, Any]) -> NumberRange:
    low: Any = entry.get("low")
    high: Any = entry.get("high")
    dtype, step, log = entry.get("type"), entry.get("step"), entry.get("log", False)
    is_valid_range = (
        is_number(low) and is_number(high) and low <= high and log in (True, False) and dtype in (None, "int", "float")
    )
    is_valid_step = step is None or (is_number(step) and step > 0 and not log)
    if not is_valid_range or not is_valid_step or not RANGE_KEYS.issuperset(entry) or (log and low <= 0):
        raise ConfigError(
            f"'{name}': a range needs the numbers 'low' and 'high' (above 0 with 'log'), and optionally 'log' (true or "
            f"false) or 'step' (above 0), and 'type' (int or float), but is {shown_value(entry)}. Or list values."
        )
    numbers = (low, high, step or 1)
    is_int = dtype == "int" or (dtype is None and all(isinstance(value, int) for value in numbers))
    if is_int and not all(float(value).is_integer() for value in numbers):
        raise ConfigError(f"'{name}': 'low', 'high' and 'step' of an int must be whole numbers: {shorten(entry)}.")
    return NumberRange(low, high, is_log=log, is_int=is_int, step=step)


def _parse_choices(name: str, entry: Any) -> Choices:
    values = entry if isinstance(entry, list) else [entry]
    if not values or len({json.dumps(value, sort_keys=True) for value in values}) < len(values):
        raise ConfigError(f"'{name}' must be a list of different values but is {shown_value(values)}.")
    return Choices(values)
