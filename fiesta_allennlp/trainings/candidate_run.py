"""The common base of runs of configs and of programs: their data, their time, and the outcome that each leaves."""

import json
import os
import time
from abc import abstractmethod
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional

from fiesta_allennlp.core.directory import OUTCOME
from fiesta_allennlp.core.errors import FiestaError, MetricError
from fiesta_allennlp.core.files import replacing
from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.selection.metrics import usable
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.data_files import DataMark, unchanged
from fiesta_allennlp.trainings.programs.metrics import names_of, numbers_in, score_in

REPORTED_NAME = "reported.json"  # holds the metrics of a run that did not report the one asked for


@dataclass(frozen=True)
class CandidateRun(Evaluator):
    """Runs a candidate on one split of its data with given seeds.

    `places` maps files that the config names to their places on this machine. `data` are the candidate's data as they
    were when the selection began. `group_by` is the key of the groups that splits keep whole. `description` is the file
    in which `describe` leaves what repeats a run; a run that leaves none is described when it has ended.
    """

    description: ClassVar[str] = "run.json"

    config: Config
    metric: str
    group_by: Optional[str] = None
    places: Mapping[str, str] = field(default_factory=dict)
    data: DataMark = field(default_factory=DataMark)
    division: Division = AT_OFFICIAL_RATIOS
    working_directory: str = field(default_factory=os.getcwd)

    @abstractmethod
    def metrics_of(self, request: Request, directory: Path) -> Mapping[str, Any]:
        """Make the run in `directory`, and return all metrics that it reports."""

    @property
    def metric_names(self) -> List[str]:
        """The names under which a run may report the metric. Earlier ones win."""
        return names_of(self.metric, self.division)

    def note_on_metric(self, reported: str) -> str:
        """Return what is doubtful about the name under which a run reported the metric."""
        return ""

    def is_in(self, directory: Path, request: Request) -> bool:
        """Return whether a directory is that of this run. Raise an `OSError` or a `ValueError` if it cannot be read."""
        description = json.loads((directory / self.description).read_text(encoding="utf-8"))
        return isinstance(description, dict) and description.get("run") == self._identity(request)

    def describe(self, request: Request, directory: Path, **further_facts: Any) -> None:
        """Write down everything that repeats a run, before it is made."""
        facts = {"run": self._identity(request), "metric": self.metric, **further_facts}
        with replacing(directory / self.description) as temporary_path:
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
        with unchanged(self.data, self.places):
            metrics = self.metrics_of(request, directory)
        seconds = time.monotonic() - start
        reported = {"metrics": metrics, "seconds": seconds, "started_at": started_at.isoformat(timespec="seconds")}
        if not (directory / self.description).exists():
            self.describe(request, directory)
        evaluation = self.scored(request, reported, directory)
        write_outcome(evaluation, directory)
        return evaluation

    def scored(self, request: Request, reported: Mapping[str, Any], directory: Path) -> Evaluation:
        """Return the evaluation of a run from its metrics, its start and its seconds. Raise a `FiestaError` if the
        score is missing or not a finite number."""
        metrics = reported["metrics"]
        try:
            score = score_in(metrics, self.metric_names)
        except MetricError:  # the right name may be given later
            with replacing(directory / REPORTED_NAME) as temporary_path:
                temporary_path.write_text(json.dumps(reported), encoding="utf-8")
            raise
        return Evaluation(request, score, self.metric, **{**reported, "metrics": numbers_in(metrics)})

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome that a worker wrote just before the parent died; or that of a run that ended without the
        metric of that time, but reported the present one."""
        try:
            if not self.is_in(directory, request):
                return None
            evaluation = read_outcome(request, directory, self.metric)
            if evaluation is not None:
                return evaluation
            reported = json.loads((directory / REPORTED_NAME).read_text(encoding="utf-8"))
            evaluation = self.scored(request, reported, directory)
            write_outcome(evaluation, directory)
            return evaluation
        except (OSError, ValueError, TypeError, KeyError, FiestaError):
            return None

    def reading(self, places: Mapping[str, str]) -> "CandidateRun":
        return replace(self, places=places)


def write_outcome(evaluation: Evaluation, directory: Path) -> None:
    """Leave an outcome for `--recover`, in case the parent dies before it records it."""
    outcome = {name: value for name, value in vars(evaluation).items() if name != "request"}
    with replacing(directory / OUTCOME) as temporary_path:
        temporary_path.write_text(json.dumps(outcome), encoding="utf-8")


def read_outcome(request: Request, directory: Path, metric: str) -> Optional[Evaluation]:
    """Return the outcome that `write_outcome` left for this request; None if it is missing or has another metric."""
    try:
        outcome = json.loads((directory / OUTCOME).read_text(encoding="utf-8"))
        evaluation = Evaluation(request=request, **outcome)
        usable(evaluation.score, OUTCOME)
    except (OSError, ValueError, TypeError, FiestaError):
        return None
    return evaluation if evaluation.metric == metric else None
