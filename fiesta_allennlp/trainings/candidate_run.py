"""The common base of runs of configs and of programs: their data, their time, and the outcome that each leaves."""

import json
import os
import resource
import sys
import time
from abc import abstractmethod
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from fiesta_allennlp.core.directory import OUTCOME_FILE, RUN_FILE
from fiesta_allennlp.core.errors import FiestaError, MetricError
from fiesta_allennlp.core.files import read_json, write_json_file
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import PEAK_MEMORY, Evaluation, Request
from fiesta_allennlp.core.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.isolation.machine import RUN_ORIGIN
from fiesta_allennlp.selection.metrics import checked_score
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.data_files import DataSnapshot, checking_unchanged
from fiesta_allennlp.trainings.reported_metrics import ReportedMetrics, accepted_metric_names

UNSCORED_METRICS_FILE = "reported.json"  # holds the metrics of a run that did not report the one asked for


@dataclass(frozen=True)
class CandidateRun(Evaluator):
    """Runs a candidate on one split of its data with given seeds.

    `local_paths` maps files that the config names to their places on this machine. `data` are the candidate's data as
    they were when the selection began. `group_by` is the key of the groups that splits keep whole.
    """

    config: Config
    metric: str
    group_by: Optional[str] = None
    local_paths: Mapping[str, str] = field(default_factory=dict)
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
        description = self._read_description(directory)
        return isinstance(description, dict) and description.get("run") == self._identity(request)

    def describe(self, request: Request) -> Dict[str, Any]:
        """Return everything that repeats a run. A finished run has it in `outcome.json`."""
        return {"run": self._identity(request), "metric": self.metric, "working_directory": self.working_directory}

    def _read_description(self, directory: Path) -> Any:
        """Return what `describe` said of the run in a directory, finished or not."""
        path = directory / RUN_FILE
        return read_json(path if path.exists() else directory / OUTCOME_FILE)

    def _identity(self, request: Request) -> Dict[str, Any]:
        """Return everything that decides the score, as plain data."""
        facts = {"config": self.config, "group_by": self.group_by, "division": asdict(self.division)}
        return json.loads(json.dumps({**facts, "seeds": asdict(request)}))

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the run, score it, and leave `outcome.json` in `directory`. Raise a `DataChangedError` if the data have
        changed."""
        directory.mkdir(exist_ok=True)
        started_at, start = datetime.now(timezone.utc), time.monotonic()
        with checking_unchanged(self.data, self.local_paths):
            reported = self.make_run(request, directory)
        seconds, started_text = time.monotonic() - start, started_at.isoformat(timespec="seconds")
        if (description := self.describe(request)) and not (directory / RUN_FILE).exists():
            write_json_file(directory / RUN_FILE, description, indent=2)
        origin = RUN_ORIGIN.get()
        evaluation = self.score_run(
            request, reported, directory, seconds=seconds, started_at=started_text, origin=origin
        )
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

    def score_run(
        self,
        request: Request,
        reported: ReportedMetrics,
        directory: Path,
        *,
        seconds: float,
        started_at: str,
        origin: Origin,
    ) -> Evaluation:
        """Return the evaluation of a run from its metrics, its seconds, its start and its origin. Raise a `FiestaError`
        if the score is missing or not a finite number."""
        try:
            score = reported.score(self.metric_names)
        except MetricError:  # the right name may be given later
            times = {"seconds": seconds, "started_at": started_at}
            run_record = {"reported": asdict(reported), **times, "origin": asdict(origin)}
            write_json_file(directory / UNSCORED_METRICS_FILE, run_record)
            raise
        return Evaluation(
            request,
            score,
            self.metric,
            metrics=reported.numbers,
            seconds=seconds,
            started_at=started_at,
            origin=origin,
        )

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

    def reading(self, local_paths: Mapping[str, str]) -> "CandidateRun":
        return replace(self, local_paths=local_paths)


@Evaluator.register("memory_measuring")
@dataclass(frozen=True)
class MemoryMeasuringEvaluator(Evaluator):
    """An evaluator that adds the peak memory of its process, and of the programs that it started, to the metrics."""

    evaluator: Evaluator

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        evaluation = self.evaluator.evaluate(request, directory)
        peak = max(resource.getrusage(scope).ru_maxrss for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        gib = peak / (2**30 if sys.platform == "darwin" else 2**20)  # Linux counts in KiB
        return replace(evaluation, metrics={**evaluation.metrics, PEAK_MEMORY: gib})


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
