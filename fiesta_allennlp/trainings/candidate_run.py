"""The common base of runs of configs and of programs: their data, their time, and the outcome that each leaves.

A run reports a JSON object of numbers in a known file of its directory, or else in the last line that it prints.
Anything else is no metric, and one message shows what was found and what is expected."""

import json
import os
import re
import sys
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import MODEL_DIRECTORY, OUTCOME_FILE, RUN_FILE
from fiesta_allennlp.core.errors import FiestaError, MetricError, did_you_mean, escape_invisible, join_some
from fiesta_allennlp.core.files import flatten, read_json, refuse_repeated_keys, shorten, shown_value, write_json_file
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.isolation.machine import RUN_ORIGIN
from fiesta_allennlp.selection.metrics import checked_score
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.data_files import DataSnapshot, checking_unchanged

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
            found = f"in {where}, {name} is {shown}"
            raise MetricError(f"the run did not report a number: {found}. Write a number, without quotes.")
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
            return refuse_repeated_keys(list(flatten(mapping)))
        problem = f"is not a JSON object but {shorten(mapping)}"
    except UnicodeDecodeError as error:
        problem = f"is not {error.encoding} ({error.reason})"
    except (ValueError, RecursionError) as error:
        problem = f"is not valid JSON ({error})"
    raise MetricError(f"{place} {problem}. {EXPECTED_TEXT}")


def accepted_metric_names(metric: str, division: Division) -> List[str]:
    """Return the names under which a program may report a metric: the name itself, or with a prefix for the set that is
    scored. The name alone is ambiguous where a run has a test set but is scored on the validation set."""
    plain_names = [] if division.keeps_test else [metric]
    return [*plain_names, *(f"{prefix}{metric}" for prefix in METRIC_PREFIXES[division.scored])]


UNSCORED_METRICS_FILE = "reported.json"  # holds the metrics of a run that did not report the one asked for


@dataclass(frozen=True)
class CandidateRun(Evaluator):
    """Runs a candidate on one split of its data with given seeds.

    `data` are the candidate's data as they were when the selection began. `group_by` is the key of the groups that
    splits keep whole.
    """

    config: Config
    metric: str
    group_by: Optional[str] = None
    data: DataSnapshot = field(default_factory=DataSnapshot)
    division: Division = OFFICIAL_RATIOS_DIVISION
    working_directory: str = field(default_factory=os.getcwd)

    @abstractmethod
    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        """Make the run in `directory`, and return all metrics that it reports."""

    @property
    def metric_names(self) -> List[str]:
        """The names under which a run may report the metric. Earlier ones win."""
        return accepted_metric_names(self.metric, self.division)

    def note_on_metric(self, reported_name: str) -> str:
        """Return what is doubtful about the name under which a run reported the metric."""
        return ""

    def is_directory_of(self, directory: Path, request: Request) -> bool:
        """Return whether a directory is that of this run. Raise an `OSError` or a `ValueError` if it cannot be read."""
        path = directory / RUN_FILE
        description = read_json(path if path.exists() else directory / OUTCOME_FILE)
        return isinstance(description, dict) and description.get("run") == self._identity(request)

    def describe(self, request: Request) -> Dict[str, Any]:
        """Return everything that repeats a run. A finished run has it in `outcome.json`."""
        return {"run": self._identity(request), "metric": self.metric, "working_directory": self.working_directory}

    def _identity(self, request: Request) -> Dict[str, Any]:
        """Return everything that decides the score, as plain data."""
        facts = {"config": self.config, "group_by": self.group_by, "division": asdict(self.division)}
        return json.loads(json.dumps({**facts, "seeds": asdict(request)}))

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the run, score it, and leave `outcome.json` in `directory`. Raise a `DataChangedError` if the data have
        changed."""
        directory.mkdir(exist_ok=True)
        started_at, start = datetime.now(timezone.utc), time.monotonic()
        with checking_unchanged(self.data):
            reported = self.make_run(request, directory)
        seconds, started_text = time.monotonic() - start, started_at.isoformat(timespec="seconds")
        if (description := self.describe(request)) and not (directory / RUN_FILE).exists():
            write_json_file(directory / RUN_FILE, description, indent=2)
        facts = {"seconds": seconds, "started_at": started_text, "origin": RUN_ORIGIN.get()}
        evaluation = self.score_run(request, reported, directory, **facts)
        self._write_outcome(evaluation, directory)
        return evaluation

    def _write_outcome(self, evaluation: Evaluation, directory: Path) -> None:
        """Leave the outcome for `--recover`, in case the parent dies before it records it, and what repeats the run."""
        path = directory / RUN_FILE
        description = read_json(path) if path.exists() else {}
        facts = {**vars(evaluation), "origin": asdict(evaluation.origin)}
        outcome = {name: value for name, value in facts.items() if name != "request"}
        write_json_file(directory / OUTCOME_FILE, {**outcome, **description}, indent=2)
        path.unlink(missing_ok=True)

    def score_run(self, request: Request, reported: ReportedMetrics, directory: Path, **facts: Any) -> Evaluation:
        """Return the evaluation of a run from its metrics. `facts` are its `seconds`, `started_at` and `origin`. Raise
        a `FiestaError` if the score is missing or not a finite number."""
        try:
            score = reported.score(self.metric_names)
        except MetricError:  # the right name may be given later
            run_record = {"reported": asdict(reported), **facts, "origin": asdict(facts["origin"])}
            write_json_file(directory / UNSCORED_METRICS_FILE, run_record)
            raise
        return Evaluation(request, score, self.metric, metrics=reported.numbers, **facts)

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome that a worker wrote just before the parent died; or that of a run that ended without the
        metric of that time, but reported the present one."""
        try:
            if not self.is_directory_of(directory, request):
                return None
            evaluation = read_outcome(request, directory, self.metric)
            if evaluation is not None:
                return evaluation
            run_record = read_json(directory / UNSCORED_METRICS_FILE)
            reported, origin = ReportedMetrics(**run_record.pop("reported")), Origin(**run_record.pop("origin"))
            evaluation = self.score_run(request, reported, directory, **run_record, origin=origin)
            self._write_outcome(evaluation, directory)
            return evaluation
        except (OSError, ValueError, TypeError, KeyError, FiestaError):
            return None


def read_outcome(request: Request, directory: Path, metric: str) -> Optional[Evaluation]:
    """Return the outcome that a finished run left for this request; None if it is missing or has another metric."""
    try:
        outcome = read_json(directory / OUTCOME_FILE)
        values = {f.name: outcome[f.name] for f in fields(Evaluation) if f.name != "request"}
        evaluation = Evaluation(request=request, **{**values, "origin": Origin(**values["origin"])})
        checked_score(evaluation.score, OUTCOME_FILE)
    except (OSError, ValueError, TypeError, LookupError, FiestaError):
        return None
    return evaluation if evaluation.metric == metric else None
