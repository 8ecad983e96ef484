"""External variables of a template: those that it reads must have values, and it must read those that are given."""

import os
import re
from typing import Sequence

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.files import DEFAULTS, read_jsonnet
from fiesta_allennlp.trainings.candidate_values import CandidateSpec

UNDEFINED = re.compile(r"undefined external variable: (.+)")


def check_values(error: ConfigError, spec: CandidateSpec, *, where: str) -> None:
    """Name the variable because of which a config could not be read, with the remedy.

    Args:
        error: that of reading the config, which a message calls `where`.

    Raises:
        ConfigError: where a variable has no value, or a text was read as JSON.
    """
    missing = UNDEFINED.search(str(error))
    if missing:
        name, known = missing[1], spec.point.variables
        given = f" Values are given for: {', '.join(known)}." if known else ""
        raise ConfigError(
            f"{where}: the config reads the external variable '{name}', which has no value.{given}"
            f"{did_you_mean(name, known)} Give one with '{spec.path}?{name}=VALUE', with --points, or in the "
            "environment."
        ) from error
    if "[json.exception" in str(error):
        raise ConfigError(
            f"{error}\nstd.parseJson reads numbers, lists, true, false and null. Read a text with std.extVar alone."
        ) from error


def check_variables(specs: Sequence[CandidateSpec], overrides: str) -> None:
    """Refuse a variable that its template reads at none of its points. One that only some of them read is allowed.

    Raises:
        ConfigError: with the template and the variable.
    """
    for path in dict.fromkeys(spec.path for spec in specs):
        same = [spec for spec in specs if spec.path == path]
        for name in dict.fromkeys(name for spec in same for name in spec.point.variables):
            if not any(name in spec.point.variables and _reads(spec, name, overrides) for spec in same):
                raise ConfigError(
                    f"{path}: the config, with the files that it imports, never reads the variable '{name}'. Correct "
                    f"the name, read it with std.extVar('{name}'), or remove it. To override a key of the config, give "
                    f"its whole path, such as model.{name}, or .{name} at the top."
                )


def _reads(spec: CandidateSpec, name: str, overrides: str) -> bool:
    """Return whether a config, its imports or the overrides read a variable, at a point at which they are
    valid: without the variable they are not. Those of the environment, and those with a default, count as read."""
    others = {key: text for key, text in spec.point.variables.items() if key != name}
    try:
        read_jsonnet(spec.path, overrides=overrides, variables=others, where=str(spec.path))
    except ConfigError:
        return True
    return name in os.environ or name in DEFAULTS
