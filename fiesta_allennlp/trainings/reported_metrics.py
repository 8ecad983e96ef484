"""What a run reports: a JSON object of numbers in a known file of its directory, or else in the last line that it
prints. Anything else is no metric, and one message shows what was found and what is expected."""

import json
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import MODEL_DIRECTORY
from fiesta_allennlp.core.errors import MetricError, did_you_mean, escape_invisible, join_some
from fiesta_allennlp.core.files import refuse_repeated_keys, shorten, shown_value
from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.selection.metrics import checked_score

# By the set that is scored. Hugging Face's Trainer writes `eval_` for its validation file and `predict_` for its test.
METRIC_PREFIXES = {"test": ("test_", "predict_", "eval_"), "validation": ("best_validation_", "validation_", "eval_")}

MODEL_NAME = Path(MODEL_DIRECTORY).name

# Earlier ones win.
METRIC_FILES = ("metrics.json", "all_results.json", "test_results.json", "predict_results.json", "eval_results.json")

NAME_AND_VALUE_PATTERN = re.compile(r"(\S+)\s*[:=]\s*(\S+)|(\S+)\s+(\S+)")
COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
LINE_START_PATTERN = re.compile(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]")
"""Where a terminal begins a line again: its end, or a sequence that moves the cursor or erases."""

EXPECTED_TEXT = (
    'Expected: a JSON object of numbers, such as {"accuracy": 0.9}, in {directory}/metrics.json or as the last printed '
    "line (print(json.dumps(metrics))), or a last line such as 'accuracy 0.9'."
)
MAX_LINE_CHARACTERS = 120


@dataclass(frozen=True)
class ReportedMetrics:
    """The metrics of a run by name, and the `places` where it reported them. Nested names are joined by a dot."""

    values: Mapping[str, Any]
    places: Tuple[str, ...] = ("its last printed line",)

    def name_of(self, names: Sequence[str]) -> str:
        """Return the first of these names that the run reports. Raise a `MetricError` if it reports none."""
        reported_name = next((name for name in names if name in self.values), None)
        if reported_name is not None:
            return reported_name
        valid_names = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))
        hint = did_you_mean(names[0], list(self.values))
        reported_names = join_some(sorted(self.values)) or "nothing"
        found = f"In {', '.join(self.places)}: {reported_names}.{hint}"
        raise MetricError(f"the run did not report a metric named {valid_names}. {found}")

    def score(self, names: Sequence[str]) -> float:
        """Return the score, which has the first of these names. Raise a `FiestaError` if it is missing or not a finite
        number."""
        name = self.name_of(names)
        value = self.values[name]
        if not is_number(value):
            where, shown = ", ".join(self.places), shown_value(value)
            raise MetricError(f"the run did not report a number: in {where}, {name} is {shown}.")
        return checked_score(value, f"the run reported {name}")

    @property
    def numbers(self) -> Dict[str, float]:
        numbers = {name: value for name, value in self.values.items() if is_number(value)}
        return {name: value for name, value in numbers.items() if abs(value) <= sys.float_info.max}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_reported(directory: Path, stdout: str, files: Optional[Mapping[str, Path]] = None) -> ReportedMetrics:
    """Return what is in `files`, by their names in messages, or else in the known files of a run's directory and its
    model's; if there is none, what the last printed line has. Raise a `MetricError` for anything but a JSON object, or
    a name and a number. Messages do not name the directory, so that two runs with the same fault have the same one."""
    if not files:
        names = [f"{folder}{name}" for name in reversed(METRIC_FILES) for folder in (f"{MODEL_NAME}/", "")]
        files = {f"{{directory}}/{name}": directory / name for name in names if os.path.lexists(directory / name)}
    if not files:
        note = "no metrics file in {directory}; "
        return ReportedMetrics(parse_last_line(stdout, note), (f"its last printed line ({note.rstrip('; ')})",))
    contents = (read_metrics_file(path, name) for name, path in files.items())
    return ReportedMetrics({name: value for content in contents for name, value in content.items()}, tuple(files))


def read_metrics_file(path: Path, name: str) -> Dict[str, Any]:
    if not path.is_file() or not os.access(path, os.R_OK):  # a FIFO would block
        raise MetricError(f"{name} is not a readable file. {EXPECTED_TEXT}")
    return _parse_object(path.read_bytes(), name)


def parse_last_line(stdout: str, note: str = "") -> Dict[str, Any]:
    """Return the metrics in the last line as a terminal shows it: a JSON object, or a name and a number."""
    pieces = LINE_START_PATTERN.split(COLOUR_PATTERN.sub("", stdout))
    line = next((piece.strip() for piece in reversed(pieces) if piece.strip()), "")
    if line.startswith('{"'):
        return _parse_object(line, f"{note}the last printed line")
    match = NAME_AND_VALUE_PATTERN.fullmatch(line)
    if match is not None:
        with suppress(ValueError):
            return {escape_invisible(match[1] or match[3]): float(match[2] or match[4])}
    shown_line = line if len(line) <= MAX_LINE_CHARACTERS else f"... {line[-MAX_LINE_CHARACTERS:]}"
    raise MetricError(f"{note}the last printed line is {shown_line!r}. {EXPECTED_TEXT}")


def _parse_object(content: Union[str, bytes], place: str) -> Dict[str, Any]:
    """Read a JSON object with distinct names. Bytes may be UTF-8, UTF-16 or UTF-32."""
    try:
        mapping = json.loads(content, object_pairs_hook=refuse_repeated_keys)
        if isinstance(mapping, dict):
            return refuse_repeated_keys(list(flatten_metrics(mapping)))
        problem = f"is not a JSON object but {shorten(mapping)}"
    except UnicodeDecodeError as error:
        problem = f"is not {error.encoding} ({error.reason})"
    except (ValueError, RecursionError) as error:
        problem = f"is not valid JSON ({error})"
    raise MetricError(f"{place} {problem}. {EXPECTED_TEXT}")


def flatten_metrics(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from flatten_metrics(value, f"{prefix}{name}.")
        else:
            yield escape_invisible(f"{prefix}{name}"), value


def accepted_metric_names(metric: str, division: Division) -> List[str]:
    """Return the names under which a program may report a metric: the name itself, or with a prefix for the set that is
    scored. The name alone is ambiguous where a run has a test set but is scored on the validation set."""
    plain_names = [] if division.keeps_test else [metric]
    return [*plain_names, *(f"{prefix}{metric}" for prefix in METRIC_PREFIXES[division.scored])]
