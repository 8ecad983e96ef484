"""Many candidates from one template: what is typed for them, and files and lists of points."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import read_lines, shortened
from fiesta_allennlp.trainings.point import Point, read_point

NONE = "none"


def split_place(place: str) -> Tuple[Path, Point]:
    """The config and the values of a candidate that is typed as `CONFIG` or `CONFIG?NAME=VALUE,...`.

    Raises:
        ConfigError: where the values cannot be read.
    """
    path, mark, values = place.partition("?")
    if not mark or Path(place).is_file():
        return Path(place), Point()
    try:
        return Path(path), read_point(values)
    except ConfigError as error:
        raise ConfigError(f"candidate '{place}': {error}") from error


def typed_place(path: Path, point: Point) -> str:
    """The place that `split_place` takes apart."""
    return f"{path}?{point.typed}" if point.values else str(path)


def name_of(place: str) -> str:
    """The name of a candidate that is given none: its values, or the config's file without its ending."""
    path, point = split_place(place)
    return point.name or path.stem


def expanded(candidates: Sequence[str], points: Any) -> List[str]:
    """What was typed for the candidates, with all points of the template in place of the template alone.

    Args:
        points: a JSONL file with a point in each line, a list of points, or None or `none` for none.

    Raises:
        ConfigError: where a point is wrong, two are equal, or it is not clear which config is the template.
    """
    if points in (None, NONE):
        return list(candidates)
    template = _template(candidates)
    made = [f"{template}?{point.typed}" for point in read_points(points)]
    return [text for given in candidates for text in (made if given == template else [given])]


def read_points(points: Any) -> List[Point]:
    """The points of a JSONL file, or of a list of objects.

    Raises:
        ConfigError: where a point is wrong, or two are equal.
    """
    return _distinct(_with_places(points))


def given_points(points: Any) -> Any:
    """Points that Python gives, as plain data: the file's path as text, or a list.

    Raises:
        ConfigError: where they are neither, or a point is wrong.
    """
    if points is None or isinstance(points, (str, Path)):
        return None if points is None else str(points)
    return [dict(point.values) for _, point in _with_places(points)]


def _template(candidates: Sequence[str]) -> str:
    alone = list(dict.fromkeys(text for text in candidates if "?" not in text or Path(text).is_file()))
    if len(alone) != 1:
        given = f"{len(alone)} are given: {', '.join(alone)}" if alone else "none is given"
        raise ConfigError(
            f"--points makes the candidates of one config, the template, but {given}. Give one; a config that takes "
            "part as it is ends with a question mark: CONFIG.jsonnet?"
        )
    if "=" in alone[0] and not Path(alone[0]).is_file():
        raise ConfigError(f"--points: the values name the candidates. Leave the name of the template '{alone[0]}' out.")
    return alone[0]


def _with_places(points: Any) -> List[Tuple[str, Point]]:
    """The points, each with what a message calls its place."""
    if isinstance(points, str):
        rows = [(f"--points {points}, line {line}", row) for line, row in read_lines(Path(points), distinct_keys=True)]
    elif isinstance(points, (list, tuple)):
        rows = [(f"--points, point {number}", row) for number, row in enumerate(points, start=1)]
    else:
        raise ConfigError(f"--points must be a JSONL file or a list of objects but is {shortened(points)}.")
    if not rows:
        what = points if isinstance(points, str) else "the list"
        raise ConfigError(f'--points: {what} is empty. Give an object of values for each candidate: {{"lr": 0.01}}.')
    return [(where, _point(row, where)) for where, row in rows]


def _point(row: Any, where: str) -> Point:
    if not isinstance(row, Mapping):
        raise ConfigError(f'{where}: must be an object such as {{"lr": 0.01}} but is {shortened(row)}.')
    try:
        return Point(row)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _distinct(points: Sequence[Tuple[str, Point]]) -> List[Point]:
    places: Dict[str, str] = {}
    for where, point in points:
        if point.identity in places:
            raise ConfigError(
                f"{where}: its values are those of {places[point.identity].rpartition(', ')[2]}: "
                f"{point.typed or 'none'}. Leave one of them out."
            )
        places[point.identity] = where
    return [point for _, point in points]
