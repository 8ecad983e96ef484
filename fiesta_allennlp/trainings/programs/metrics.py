"""The metrics that a program reports, in a JSON file or in the last line that it prints."""

import json
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.files import shortened
from fiesta_allennlp.selection.metrics import usable

PREFIXES = {"test": ("test_",), "validation": ("best_validation_", "validation_")}
"""What may stand before the name of a metric, by the set that is scored."""

NAME_AND_VALUE = re.compile(r"(\S+?)[:=]?\s+(\S+)|(\S+)[:=](\S+)")

Metrics = Dict[str, Any]
"""By name; one in an object has the names of both, with a dot."""


def metrics_in_file(path: Path) -> Metrics:
    """The metrics in a JSON file.

    Raises:
        FiestaError: where it is not there, or holds no JSON object.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FiestaError(
            f"the program ended with exit status 0 but did not write its metrics to {path}. Have it write a JSON "
            "object there; or name the file that it writes as 'metrics'."
        ) from None
    return _object(content, str(path))


def metrics_in_line(stdout: str) -> Metrics:
    """The metrics in the last line of an output: a JSON object, or a name and a value.

    Raises:
        FiestaError: where it is neither.
    """
    line = stdout.rpartition("\n")[2].strip()
    if line.startswith("{"):
        return _object(line, "the last line of the standard output")
    found = NAME_AND_VALUE.fullmatch(line)
    value = None if found is None else _number_in(found[2] or found[4])
    if found is None or value is None:
        said = f"is {shortened(line)!r}" if line else "is missing: it printed nothing"
        raise FiestaError(
            f"the last line of the program's standard output {said}. It must be a JSON object, or a name and a number "
            "such as 'accuracy 0.9'."
        )
    return {found[1] or found[3]: value}


def score_in(metrics: Metrics, name: str, *, scored: str, alone: bool = True) -> float:
    """The score of a run.

    Args:
        name: that of `--metric`. The metric is called so, or has a prefix for the set that is scored.
        alone: the name alone will do. It does not where a run has a test set and is scored on the validation set.

    Raises:
        FiestaError: where it is missing, or not a finite number, with what was reported.
    """
    names = [*([name] if alone else []), *(f"{prefix}{name}" for prefix in PREFIXES[scored])]
    found = next((known for known in names if known in metrics), None)
    if found is None:
        reported = ", ".join(sorted(metrics)) or "nothing"
        raise FiestaError(f"the program reported no metric {' or '.join(map(repr, names))} but: {reported}.")
    value = metrics[found]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FiestaError(f"the program reported {found} = {shortened(value)}, which is not a number.")
    return usable(value, f"the program reported {found}")


def numbers_in(metrics: Mapping[str, Any]) -> Dict[str, float]:
    """All finite numbers."""
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }


def _flat(metrics: Mapping[str, Any], before: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _object(content: str, where: str) -> Metrics:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FiestaError(f"the metrics in {where} are not valid JSON: {error}.") from error
    if not isinstance(found, dict):
        raise FiestaError(f"the metrics in {where} must be a JSON object but are {shortened(found)}.")
    return dict(_flat(found))


def _number_in(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:
        return None
