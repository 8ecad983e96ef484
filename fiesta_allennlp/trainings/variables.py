"""External variables of a template: those that it reads must have values, and it must read those that are given."""

import os
import re
from pathlib import Path
from typing import Sequence, Tuple

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.files import read_jsonnet
from fiesta_allennlp.trainings.point import Point

UNDEFINED = re.compile(r"undefined external variable: (.+)")


def check_values(error: ConfigError, path: Path, point: Point, *, where: str) -> None:
    """Where the values of variables are why a config could not be read, say which and what to do.

    Args:
        error: that of reading the config at `path`, which a message calls `where`.

    Raises:
        ConfigError: where a variable has no value, or a text was read as JSON.
    """
    missing = UNDEFINED.search(str(error))
    if missing:
        name = missing[1]
        given = f" Values are given for: {', '.join(point.variables)}." if point.variables else ""
        raise ConfigError(
            f"{where}: the config reads the external variable '{name}', which has no value.{given}"
            f"{did_you_mean(name, point.variables)} Give one with '{path}?{name}=VALUE', with --points, or in the "
            "environment."
        ) from error
    if "[json.exception" in str(error):
        raise ConfigError(
            f"{error}\nstd.parseJson reads numbers, lists, true, false and null. Read a text with std.extVar alone."
        ) from error


def check_variables(places: Sequence[Tuple[Path, Point]], overrides: str) -> None:
    """Refuse a variable that its template reads at none of its points. One that only some of them read is allowed.

    Raises:
        ConfigError: with the template and the variable.
    """
    for path in dict.fromkeys(path for path, _ in places):
        points = [point for other, point in places if other == path]
        for name in dict.fromkeys(name for point in points for name in point.variables):
            if not any(name in point.variables and _reads(path, name, point, overrides) for point in points):
                raise ConfigError(
                    f"{path}: the config, with the files that it imports, never reads the variable '{name}'. Correct "
                    f"the name, read it with std.extVar('{name}'), or remove it. To override a key of the config, give "
                    f"its whole path, such as model.{name}, or .{name} at the top."
                )


def _reads(path: Path, name: str, point: Point, overrides: str) -> bool:
    """Whether a config, the files that it imports, or the overrides read a variable, at a point at which they are
    valid: without the variable they are not. Those of the environment count as read."""
    others = {key: text for key, text in point.variables.items() if key != name}
    try:
        read_jsonnet(path, overrides=overrides, variables=others, where=str(path))
    except ConfigError:
        return True
    return name in os.environ
