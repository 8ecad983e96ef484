"""The metrics that a program reports, in a JSON file or in the last line that it prints."""

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import MODEL
from fiesta_allennlp.core.errors import FiestaError, MetricError, visible
from fiesta_allennlp.core.files import distinct, shortened
from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.selection.metrics import usable

# By the set that is scored. Hugging Face's Trainer writes `eval_` for its validation file and `predict_` for its test.
PREFIXES = {"test": ("test_", "predict_", "eval_"), "validation": ("best_validation_", "validation_", "eval_")}

# Earlier ones win.
FILES = ("metrics.json", "all_results.json", "test_results.json", "predict_results.json", "eval_results.json")

NAME_AND_VALUE = re.compile(r"(\S+)\s*[:=]\s*(\S+)|(\S+)\s+(\S+)")

# By name; nested names are joined by a dot, and invisible characters in them are escaped.
Metrics = Dict[str, Any]


def metrics_in_directory(directory: Path, stdout: str) -> Metrics:
    """Return the metrics in the known files of a run's directory, or of its model's directory, or else in the last line
    of an output. Raise a `FiestaError` if there are none, or a file is wrong."""
    paths = [folder / name for name in reversed(FILES) for folder in (directory / Path(MODEL).name, directory)]
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        return {name: value for path in existing for name, value in metrics_in_file(path).items()}
    try:
        return metrics_in_line(stdout)
    except FiestaError as error:
        raise FiestaError(
            f"the program exited with status 0 but wrote none of {', '.join(FILES)} to {directory}, and {error}"
        ) from error


def metrics_in_file(path: Path) -> Metrics:
    """Return the metrics in a JSON file. Raise a `FiestaError` if it is missing, unreadable, or not a file with a JSON
    object."""
    if not path.is_file() or not os.access(path, os.R_OK):  # a FIFO would block
        raise FiestaError(
            f"the program exited with status 0 but left no readable file {path}. Make it write a JSON object with its "
            "metrics there, or set 'metrics' in the config."
        )
    return _object(path.read_bytes(), str(path))


def metrics_in_line(stdout: str) -> Metrics:
    """Return the metrics in the last line of an output: a JSON object, or a name and a value."""
    line = stdout.rpartition("\n")[2].strip()
    if line.startswith("{"):
        return _object(line, "the last line of the output")
    match = NAME_AND_VALUE.fullmatch(line)
    with suppress(ValueError):
        if match is not None:
            return {visible(match[1] or match[3]): float(match[2] or match[4])}
    raise FiestaError(
        "the last line of its output must be a JSON object, or a name and a number such as 'accuracy 0.9', but is "
        f"{shortened(line)!r}."
    )


def names_of(metric: str, division: Division) -> List[str]:
    """Return the names under which a program may report a metric: the name itself, or with a prefix for the set that is
    scored. The name alone is ambiguous where a run has a test set but is scored on the validation set."""
    alone = [] if division.keeps_test else [metric]
    return [*alone, *(f"{prefix}{metric}" for prefix in PREFIXES[division.scored])]


def metric_in(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of these names that a run reports."""
    reported_name = next((name for name in names if name in metrics), None)
    if reported_name is None:
        reported = ", ".join(sorted(metrics)) or "nothing"
        valid_names = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))
        raise MetricError(f"the run did not report a metric named {valid_names}; it reported: {reported}.")
    return reported_name


def score_in(metrics: Metrics, names: Sequence[str]) -> float:
    """Return the score of a run, which is reported under the first of these names."""
    name = metric_in(metrics, names)
    value = metrics[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FiestaError(f"the run reported {name} = {shortened(value)}, which is not a number.")
    return usable(value, f"the run reported {name}")


def numbers_in(metrics: Mapping[str, Any]) -> Dict[str, float]:
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    }


def flat(metrics: Mapping[str, Any], before: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield visible(f"{before}{name}"), value


def _object(content: Union[str, bytes], where: str) -> Metrics:
    """Read a JSON object with distinct names. Bytes may be UTF-8, UTF-16 or UTF-32."""
    try:
        parsed = json.loads(content, object_pairs_hook=distinct)
        if isinstance(parsed, dict):
            return distinct(list(flat(parsed)))
    except UnicodeDecodeError as error:
        raise FiestaError(f"the metrics in {where} are not {error.encoding}: {error.reason}. Write UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise FiestaError(f"the metrics in {where} are not valid JSON: {error}.") from error
    raise FiestaError(f"the metrics in {where} must be a JSON object but are {shortened(parsed)}.")
