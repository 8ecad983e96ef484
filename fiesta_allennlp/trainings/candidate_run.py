"""The common base of runs of configs and of programs: their data, their time, the metrics that they report, and the
outcome that each leaves. A program reports metrics in a JSON file or in the last line that it prints."""

import json
import os
import re
import sys
import time
from abc import abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.directory import MODEL_DIRECTORY, OUTCOME_FILE
from fiesta_allennlp.core.errors import FiestaError, MetricError, escape_invisible
from fiesta_allennlp.core.files import atomic_replacement, refuse_repeated_keys, shorten
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.selection.metrics import checked_score
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.data_files import DataSnapshot, checking_unchanged

# By the set that is scored. Hugging Face's Trainer writes `eval_` for its validation file and `predict_` for its test.
METRIC_PREFIXES = {"test": ("test_", "predict_", "eval_"), "validation": ("best_validation_", "validation_", "eval_")}

# Earlier ones win.
METRIC_FILES = ("metrics.json", "all_results.json", "test_results.json", "predict_results.json", "eval_results.json")

NAME_AND_VALUE_PATTERN = re.compile(r"(\S+)\s*[:=]\s*(\S+)|(\S+)\s+(\S+)")

# By name; nested names are joined by a dot, and invisible characters in them are escaped.
Metrics = Dict[str, Any]


def read_metrics_from_directory(directory: Path, stdout: str) -> Metrics:
    """Return the metrics in the known files of a run's directory, or of its model's directory, or else in the last line
    of an output. Raise a `FiestaError` if there are none, or a file is wrong."""
    paths = [
        folder / name
        for name in reversed(METRIC_FILES)
        for folder in (directory / Path(MODEL_DIRECTORY).name, directory)
    ]
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        return {name: value for path in existing for name, value in read_metrics_from_file(path).items()}
    try:
        return parse_metrics_line(stdout)
    except FiestaError as error:
        raise FiestaError(
            f"the program exited with status 0 but wrote none of {', '.join(METRIC_FILES)} to {directory}, and {error}"
        ) from error


def read_metrics_from_file(path: Path) -> Metrics:
    """Return the metrics in a JSON file. Raise a `FiestaError` if it is missing, unreadable, or not a file with a JSON
    object."""
    if not path.is_file() or not os.access(path, os.R_OK):  # a FIFO would block
        raise FiestaError(
            f"the program exited with status 0 but left no readable file {path}. Make it write a JSON object with its "
            "metrics there, or set 'metrics' in the config."
        )
    return _parse_metrics(path.read_bytes(), str(path))


def parse_metrics_line(stdout: str) -> Metrics:
    """Return the metrics in the last line of an output: a JSON object, or a name and a value."""
    line = stdout.rpartition("\n")[2].strip()
    if line.startswith("{"):
        return _parse_metrics(line, "the last line of the output")
    match = NAME_AND_VALUE_PATTERN.fullmatch(line)
    with suppress(ValueError):
        if match is not None:
            return {escape_invisible(match[1] or match[3]): float(match[2] or match[4])}
    raise FiestaError(
        "the last line of its output must be a JSON object, or a name and a number such as 'accuracy 0.9', but is "
        f"{shorten(line)!r}."
    )


def accepted_metric_names(metric: str, division: Division) -> List[str]:
    """Return the names under which a program may report a metric: the name itself, or with a prefix for the set that is
    scored. The name alone is ambiguous where a run has a test set but is scored on the validation set."""
    plain_names = [] if division.keeps_test else [metric]
    return [*plain_names, *(f"{prefix}{metric}" for prefix in METRIC_PREFIXES[division.scored])]


def find_metric_name(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first of these names that a run reports."""
    reported_name = next((name for name in names if name in metrics), None)
    if reported_name is None:
        reported_names = ", ".join(sorted(metrics)) or "nothing"
        valid_names = " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))
        raise MetricError(f"the run did not report a metric named {valid_names}; it reported: {reported_names}.")
    return reported_name


def find_score(metrics: Metrics, names: Sequence[str]) -> float:
    """Return the score of a run, which is reported under the first of these names."""
    name = find_metric_name(metrics, names)
    value = metrics[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FiestaError(f"the run reported {name} = {shorten(value)}, which is not a number.")
    return checked_score(value, f"the run reported {name}")


def numeric_metrics(metrics: Mapping[str, Any]) -> Dict[str, float]:
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    }


def flatten_metrics(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from flatten_metrics(value, f"{prefix}{name}.")
        else:
            yield escape_invisible(f"{prefix}{name}"), value


def _parse_metrics(content: Union[str, bytes], source_name: str) -> Metrics:
    """Read a JSON object with distinct names. Bytes may be UTF-8, UTF-16 or UTF-32."""
    try:
        mapping = json.loads(content, object_pairs_hook=refuse_repeated_keys)
        if isinstance(mapping, dict):
            return refuse_repeated_keys(list(flatten_metrics(mapping)))
    except UnicodeDecodeError as error:
        raise FiestaError(
            f"the metrics in {source_name} are not {error.encoding}: {error.reason}. Write UTF-8."
        ) from error
    except (ValueError, RecursionError) as error:
        raise FiestaError(f"the metrics in {source_name} are not valid JSON: {error}.") from error
    raise FiestaError(f"the metrics in {source_name} must be a JSON object but are {shorten(mapping)}.")


UNSCORED_METRICS_FILE = "reported.json"  # holds the metrics of a run that did not report the one asked for


@dataclass(frozen=True)
class CandidateRun(Evaluator):
    """Runs a candidate on one split of its data with given seeds.

    `local_paths` maps files that the config names to their places on this machine. `data` are the candidate's data as
    they were when the selection began. `group_by` is the key of the groups that splits keep whole. `description_file`
    is the file in which `write_description` leaves what repeats a run; a run that leaves none is described when it has
    ended.
    """

    description_file: ClassVar[str] = "run.json"

    config: Config
    metric: str
    group_by: Optional[str] = None
    local_paths: Mapping[str, str] = field(default_factory=dict)
    data: DataSnapshot = field(default_factory=DataSnapshot)
    division: Division = OFFICIAL_RATIOS_DIVISION
    working_directory: str = field(default_factory=os.getcwd)

    @abstractmethod
    def make_run(self, request: Request, directory: Path) -> Mapping[str, Any]:
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
        description = json.loads((directory / self.description_file).read_text(encoding="utf-8"))
        return isinstance(description, dict) and description.get("run") == self._identity(request)

    def write_description(self, request: Request, directory: Path, **further_facts: Any) -> None:
        """Write down everything that repeats a run, before it is made."""
        facts = {"run": self._identity(request), "metric": self.metric, **further_facts}
        with atomic_replacement(directory / self.description_file) as temporary_path:
            text = json.dumps({**facts, "working_directory": self.working_directory}, indent=2)
            temporary_path.write_text(text, encoding="utf-8")

    def _identity(self, request: Request) -> Dict[str, Any]:
        """Return everything that decides the score, as plain data."""
        facts = {
            "config": self.config,
            "seeds": asdict(request),
            "group_by": self.group_by,
            "division": asdict(self.division),
        }
        return json.loads(json.dumps(facts))

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the run, score it, and leave `outcome.json` in `directory`. Raise a `DataChangedError` if the data have
        changed."""
        directory.mkdir(exist_ok=True)
        started_at, start = datetime.now(timezone.utc), time.monotonic()
        with checking_unchanged(self.data, self.local_paths):
            metrics = self.make_run(request, directory)
        seconds = time.monotonic() - start
        run_record = {"metrics": metrics, "seconds": seconds, "started_at": started_at.isoformat(timespec="seconds")}
        if not (directory / self.description_file).exists():
            self.write_description(request, directory)
        evaluation = self.score_run(request, run_record, directory)
        write_outcome(evaluation, directory)
        return evaluation

    def score_run(self, request: Request, run_record: Mapping[str, Any], directory: Path) -> Evaluation:
        """Return the evaluation of a run from its metrics, its start and its seconds. Raise a `FiestaError` if the
        score is missing or not a finite number."""
        metrics = run_record["metrics"]
        try:
            score = find_score(metrics, self.metric_names)
        except MetricError:  # the right name may be given later
            with atomic_replacement(directory / UNSCORED_METRICS_FILE) as temporary_path:
                temporary_path.write_text(json.dumps(run_record), encoding="utf-8")
            raise
        return Evaluation(request, score, self.metric, **{**run_record, "metrics": numeric_metrics(metrics)})

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome that a worker wrote just before the parent died; or that of a run that ended without the
        metric of that time, but reported the present one."""
        try:
            if not self.is_directory_of(directory, request):
                return None
            evaluation = read_outcome(request, directory, self.metric)
            if evaluation is not None:
                return evaluation
            run_record = json.loads((directory / UNSCORED_METRICS_FILE).read_text(encoding="utf-8"))
            evaluation = self.score_run(request, run_record, directory)
            write_outcome(evaluation, directory)
            return evaluation
        except (OSError, ValueError, TypeError, KeyError, FiestaError):
            return None

    def reading(self, local_paths: Mapping[str, str]) -> "CandidateRun":
        return replace(self, local_paths=local_paths)


def write_outcome(evaluation: Evaluation, directory: Path) -> None:
    """Leave an outcome for `--recover`, in case the parent dies before it records it."""
    outcome = {name: value for name, value in vars(evaluation).items() if name != "request"}
    with atomic_replacement(directory / OUTCOME_FILE) as temporary_path:
        temporary_path.write_text(json.dumps(outcome), encoding="utf-8")


def read_outcome(request: Request, directory: Path, metric: str) -> Optional[Evaluation]:
    """Return the outcome that `write_outcome` left for this request; None if it is missing or has another metric."""
    try:
        outcome = json.loads((directory / OUTCOME_FILE).read_text(encoding="utf-8"))
        evaluation = Evaluation(request=request, **outcome)
        checked_score(evaluation.score, OUTCOME_FILE)
    except (OSError, ValueError, TypeError, FiestaError):
        return None
    return evaluation if evaluation.metric == metric else None
