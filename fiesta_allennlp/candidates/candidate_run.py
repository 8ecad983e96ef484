"""The common base of runs of configs and of programs: their data, their time, and the outcome that each leaves.

A run reports a JSON object of numbers in `metrics.json` of its directory, or else as the last line that it prints.
Anything else is no metric, and one message shows what was found and what is expected."""

import json
import os
import re
import sys
import time
from abc import abstractmethod
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.data_files import DataSnapshot, checking_unchanged
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.core.directory import OUTCOME_FILE, RUN_FILE
from fiesta_allennlp.core.errors import FiestaError, MetricError, join_some, near_names
from fiesta_allennlp.core.files import flatten, read_json, refuse_repeated_keys, shorten, shown_value, write_json_file
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.settings.metrics import Metric, checked_score, error_word
from fiesta_allennlp.core.settings.options import option_words
from fiesta_allennlp.running.executor import Evaluator
from fiesta_allennlp.running.machine import RUN_ORIGIN

METRICS_FILE = "metrics.json"

COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
LINE_START_PATTERN = re.compile(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]")
"""Where a terminal begins a line again: its end, or a sequence that moves the cursor or erases."""

EXPECTED_TEXT = (
    'Expected: a JSON object of numbers, such as {"accuracy": 0.9}, in {directory}/metrics.json or as the last printed '
    "line (print(json.dumps(metrics)))."
)
MAX_LINE_CHARACTERS = 120
MAX_FILES = 5  # of those that a run wrote, in a message


@dataclass(frozen=True)
class ReportedMetrics:
    """The metrics of a run by name, and the `places` where it reported them. Nested names are joined by a dot."""

    values: Mapping[str, Any]
    places: Tuple[str, ...] = ("its last printed line",)

    def score(self, name: str) -> float:
        """Return the metric of this name.

        Raises:
            MetricError: if it is missing or not a number.
            FiestaError: if it is not finite.
        """
        where = ", ".join(self.places)
        if name not in self.values:
            found = join_some([f"{key} = {shown_value(value)}" for key, value in sorted(self.values.items())])
            raise MetricError(f"the run did not report a metric named '{name}'. In {where}: {found or 'nothing'}.")
        value = self.values[name]
        if not is_number(value):
            found = f"in {where}, {name} is {shown_value(value)}"
            raise MetricError(f"the run did not report a number: {found}. Write a number, without quotes.")
        return checked_score(value, f"the run reported {name}")

    @property
    def numbers(self) -> Dict[str, float]:
        numbers = {name: value for name, value in self.values.items() if is_number(value)}
        return {name: value for name, value in numbers.items() if abs(value) <= sys.float_info.max}

    def meant_name(self, name: str) -> str:
        """Return the number that is probably meant by a name: the most similar one, or the only one; else `NAME`."""
        names = list(self.numbers)
        return next(iter(near_names(name, names) or (names if len(names) == 1 else ["NAME"])))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read_reported(directory: Path, stdout: str, files: Optional[Mapping[str, Path]] = None) -> ReportedMetrics:
    """Return what is in `files`, by their names in messages, by default in `metrics.json` of a run's directory; without
    any, what the last printed line has.

    Messages do not name the directory, so that two runs with the same fault have the same one.

    Raises:
        MetricError: for anything but a JSON object. It names the files that the run wrote.
    """
    if files is None:
        name = f"{{directory}}/{METRICS_FILE}"
        files = {name: directory / METRICS_FILE} if os.path.lexists(directory / METRICS_FILE) else {}
    try:
        if not files:
            return ReportedMetrics(parse_last_line(stdout))
        contents = (read_metrics_file(path, name) for name, path in files.items())
        return ReportedMetrics({name: value for content in contents for name, value in content.items()}, tuple(files))
    except MetricError as error:
        raise MetricError(f"{error}{_describe_written_files(directory)}") from error


def _describe_written_files(directory: Path) -> str:
    """Name files that a run left, those that can have its metrics first, and the ways to read one of them."""
    paths = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    names = [path.as_posix() for path in sorted(paths, key=lambda path: (path.suffix != ".json", path))]
    example = next(iter(names), "FILE.json")
    found = f" In {{directory}}, the run wrote {join_some(names, limit=MAX_FILES)}." if names else ""
    file = example if example.endswith(".json") else "FILE.json"
    option = f'--force --overrides \'{{"metrics": "{{directory}}/{file}"}}\''
    extract = "sh -c 'train && extract', where extract prints such a line"
    return f"{found} To read another JSON file, begin again with {option}; otherwise use {extract}."


def read_metrics_file(path: Path, name: str) -> Dict[str, Any]:
    if not path.is_file() or not os.access(path, os.R_OK):  # a FIFO would block
        raise MetricError(f"{name} is not a readable file. {EXPECTED_TEXT}")
    return _parse_object(path.read_bytes(), name)


def parse_last_line(stdout: str) -> Dict[str, Any]:
    """Return the metrics in the last line as a terminal shows it: a JSON object."""
    pieces = LINE_START_PATTERN.split(COLOUR_PATTERN.sub("", stdout))
    line = next((piece.strip() for piece in reversed(pieces) if piece.strip()), "")
    if line.startswith("{"):
        return _parse_object(line, "the last printed line")
    shown_line = line if len(line) <= MAX_LINE_CHARACTERS else f"... {line[-MAX_LINE_CHARACTERS:]}"
    raise MetricError(f"the last printed line is {shown_line!r}. {EXPECTED_TEXT}")


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
    def metric_name(self) -> str:
        """The name under which a run reports the metric."""
        return self.metric

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
            score = reported.score(self.metric_name)
        except MetricError:  # the right name may be given later
            run_record = {"reported": asdict(reported), **facts, "origin": asdict(facts["origin"])}
            write_json_file(directory / UNSCORED_METRICS_FILE, run_record)
            raise
        return Evaluation(request, score, self.metric, metrics=reported.numbers, **facts)

    def remedy(self, directory: Path) -> str:
        """Return the option that resumes a selection whose run did not report the metric."""
        try:
            reported = ReportedMetrics(**read_json(directory / UNSCORED_METRICS_FILE)["reported"])
        except (OSError, ValueError, TypeError, KeyError):
            return ""
        name = reported.meant_name(self.metric_name)
        return " ".join(["", *option_words("metric", Metric(name, minimise=bool(error_word(name))).option_text)])

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
