"""The bases of all types of candidates and of their runs: what a run reports, and the outcome that it leaves."""

import json
import os
import sys
import time
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from itertools import combinations
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Type

from fiesta_allennlp.candidates.config import Config, DataSnapshot, checking_unchanged, files_behind
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division, Pool, Preparation
from fiesta_allennlp.core.directory import OUTCOME_FILE, RUN_FILE
from fiesta_allennlp.core.errors import ConfigError, FiestaError, MetricError, join_some, near_names
from fiesta_allennlp.core.files import read_json, shown_value, write_json_file
from fiesta_allennlp.core.metrics import Metric, checked_score, error_word
from fiesta_allennlp.core.options import flag, option_words
from fiesta_allennlp.core.records import Evaluation, Origin, Request
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.running.executor import Evaluator
from fiesta_allennlp.running.machine import RUN_ORIGIN


@dataclass(frozen=True)
class ReportedMetrics:
    """The metrics of a run by name, and the `place` where it reported them. Nested names are joined by a dot."""

    values: Mapping[str, Any]
    place: str = "its last printed line"

    def score(self, name: str) -> float:
        """Return the metric of this name.

        Raises:
            MetricError: if it is missing or not a number.
            FiestaError: if it is not finite.
        """
        if name not in self.values:
            found = join_some([f"{key} = {shown_value(value)}" for key, value in sorted(self.values.items())])
            raise MetricError(f"the run did not report a metric named '{name}'. In {self.place}: {found or 'nothing'}.")
        value = self.values[name]
        if not is_number(value):
            found = f"in {self.place}, {name} is {shown_value(value)}"
            raise MetricError(f"the run did not report a number: {found}. Write a number, without quotes.")
        return checked_score(value, f"the run reported {name}")

    @property
    def numbers(self) -> Dict[str, float]:
        numbers = {name: value for name, value in self.values.items() if is_number(value)}
        return {name: value for name, value in numbers.items() if abs(value) <= sys.float_info.max}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def to_plain_metrics(metrics: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the metrics with Python's numbers instead of those of other libraries, such as scalars of torch."""
    scalars = {name: value.item() if getattr(value, "shape", None) == () else value for name, value in metrics.items()}
    return {name: float(v) if isinstance(v, Real) and not isinstance(v, int) else v for name, v in scalars.items()}


@dataclass(frozen=True)
class CandidateRun(Evaluator):
    """Runs a candidate on one split of its data with given seeds.

    `data` are the candidate's data as they were when the selection began. `group_by` is the key of the groups that
    splits keep whole. `vectors` are the word-vector files to read instead of the files in the config. With
    `free_device`, the run trains on the worker's own device, whatever the config says. With `is_trial`, it is short.
    """

    config: Config
    metric: str
    group_by: Optional[str] = None
    data: DataSnapshot = field(default_factory=DataSnapshot)
    division: Division = OFFICIAL_RATIOS_DIVISION
    vectors: Mapping[str, str] = field(default_factory=dict)
    keep_models: bool = False
    free_device: bool = False
    is_trial: bool = False
    working_directory: str = field(default_factory=os.getcwd)

    @abstractmethod
    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        """Make the run in `directory`, and return all metrics that it reports."""

    @property
    def metric_name(self) -> str:
        """The name under which a run reports the metric."""
        return self.metric

    def describe(self, request: Request) -> Dict[str, Any]:
        """Return everything that repeats a run. A finished run has it in `outcome.json`."""
        return {"run": self._identity(request), "metric": self.metric, "working_directory": self.working_directory}

    def _identity(self, request: Request) -> Dict[str, Any]:
        """Return everything that decides the score, as plain data."""
        facts = {"config": self.config, "group_by": self.group_by, "division": asdict(self.division)}
        return json.loads(json.dumps({**facts, "seeds": asdict(request)}))

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the run, score it, and leave `outcome.json` in `directory`. A run that did not report the metric leaves
        `run.json`, because the right name may be given later.

        Raises:
            DataChangedError: if the data have changed.
            FiestaError: if the score is missing or not a finite number.
        """
        directory.mkdir(exist_ok=True)
        started_at, start = datetime.now(timezone.utc), time.monotonic()
        with checking_unchanged(self.data):
            reported = self.make_run(request, directory)
        run_file = directory / RUN_FILE
        record = {
            "metrics": reported.numbers,
            "seconds": time.monotonic() - start,
            "started_at": started_at.isoformat(timespec="seconds"),
            "origin": asdict(RUN_ORIGIN.get()),
            **(read_json(run_file) if run_file.exists() else self.describe(request)),
        }
        try:
            evaluation = self._score_run(request, reported, record)
        except MetricError:
            write_json_file(run_file, record, indent=2)
            raise
        self._leave_outcome(evaluation, record, directory)
        return evaluation

    def _score_run(self, request: Request, reported: ReportedMetrics, record: Mapping[str, Any]) -> Evaluation:
        facts = {name: record[name] for name in ("metrics", "seconds", "started_at")}
        score, origin = reported.score(self.metric_name), Origin(**record["origin"])
        return Evaluation(request, score, self.metric, origin=origin, **facts)

    def _leave_outcome(self, evaluation: Evaluation, record: Mapping[str, Any], directory: Path) -> None:
        """Leave the outcome for `--recover`, in case the parent dies before it records it, and what repeats the run."""
        outcome = {**record, "score": evaluation.score, "metric": self.metric}
        write_json_file(directory / OUTCOME_FILE, outcome, indent=2)
        (directory / RUN_FILE).unlink(missing_ok=True)

    def remedy(self, directory: Path) -> str:
        """Return the option that resumes a selection whose run did not report the metric. It names the number that is
        probably meant: the most similar one, or the only one; else `NAME`."""
        try:
            names = list(ReportedMetrics(read_json(directory / RUN_FILE)["metrics"]).numbers)
        except (OSError, ValueError, TypeError, KeyError):
            return ""
        name = next(iter(near_names(self.metric_name, names) or (names if len(names) == 1 else ["NAME"])))
        return " ".join(["", *option_words("metric", Metric(name, minimise=bool(error_word(name))).option_text)])

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome that a worker wrote just before the parent died; or that of a run that ended without the
        metric of that time, but reported the present one."""
        try:
            is_scored = (directory / OUTCOME_FILE).exists()
            record = read_json(directory / (OUTCOME_FILE if is_scored else RUN_FILE))
            if record["run"] != self._identity(request):
                return None
            evaluation = self._score_run(request, ReportedMetrics(record["metrics"]), record)
            if not is_scored:
                self._leave_outcome(evaluation, record, directory)
            return evaluation
        except (OSError, ValueError, TypeError, KeyError, FiestaError):
            return None


class AnyCandidate(Registrable):
    """Everything that a selection asks a candidate of one type. The defaults are for one that splits its data itself.

    A type of your own is a `CandidateType`. Extend this class if the selection splits your data, as for a program.

    Attributes:
        config: the config, with its `type`.
        run_class: the class of the runs.
        worker_module: a module of this package that workers import first.
        data_key: the key of the config that names the data of a set, with `{}` for the set.
    """

    default = "allennlp"
    run_class: ClassVar[Type[CandidateRun]]
    worker_module: ClassVar[str] = "fiesta_allennlp.candidates.candidate_types"
    data_key: ClassVar[str] = "data.{}"

    config: Config

    @classmethod
    def of(cls, config: Config) -> "AnyCandidate":
        """Return the candidate of a config. Raise a `ConfigError` if a key cannot be right."""
        candidate = cls()
        candidate.config = config
        return candidate

    def check(self, settings: Settings) -> None:
        """Refuse everything that can be found wrong without building the candidate: keys, values, options."""
        for name in ("group_by", "split_ratios"):
            if getattr(settings, name) not in (None, "none", ()):
                problem = f"{flag(name)} needs data files"
                raise ConfigError(f"{problem}: pass --data FILE (in a config, 'data'), or remove it.")

    def check_sets(self, division: Division) -> None:
        """Refuse data paths that lack a set which runs on official splits need, or that leave the sizes of the sets of
        a random split open."""
        paths = self.data_paths
        missing_sets = [name for name in division.set_names if name not in paths and division.is_official]
        if missing_sets:
            hidden = ", --score validation if the test labels are hidden" * (missing_sets[0] == "test")
            key = self.data_key.format(missing_sets[0])
            raise ConfigError(
                f"--splits official needs '{key}', which is missing. Add it{hidden}, or use --splits shared."
            )
        if not division.is_official and not division.ratios and len(division.used_paths(paths)) < 2:
            keys = " or ".join(f"'{self.data_key.format(set_name)}'" for set_name in division.set_names[1:])
            ratios = "0.64,0.16,0.2" if len(division.set_names) == len(SET_NAMES) else "0.8,0.2"
            raise ConfigError(
                f"without {keys}, set the sizes of random splits, for example with --split-ratios {ratios}."
            )

    def check_distinct_sets(self, division: Division, snapshot: DataSnapshot) -> None:
        """Refuse the same data in two sets: runs would be scored on data that they were trained on or chose their epoch
        by. Two sets are the same if they share a file, or if the contents of one are all among those of the other."""
        paths, digests = self.data_paths, {file.path: file.digest for file in snapshot.files}
        names = [name for name in division.set_names if name in paths]
        files = {name: {file.resolve(): digests[str(file)] for file in files_behind(paths[name])} for name in names}
        for first_set, second_set in combinations(names, 2):
            contents, others = set(files[first_set].values()), set(files[second_set].values())
            is_copy = bool(contents and others) and (contents <= others or others <= contents)
            if paths[first_set] == paths[second_set] or files[first_set].keys() & files[second_set].keys() or is_copy:
                keys = [self.data_key.format(set_name) for set_name in (first_set, second_set)]
                remedy = f"; or remove '{keys[1]}', and random splits draw that set from the rest"
                if division.is_official:
                    remedy = "; or remove 'test_data_path' and use --score validation" * (first_set != "train")
                sets_text = f"'{keys[0]}' ({paths[first_set]}) and '{keys[1]}' ({paths[second_set]})"
                raise ConfigError(f"{sets_text} contain the same data. Use a different file{remedy}.")

    def check_installed(self) -> None:
        """Refuse a candidate whose libraries are not installed."""

    @property
    def data_paths(self) -> Dict[str, Any]:
        """The data paths by set, with absolute files; empty if the candidate splits its data itself."""
        return {}

    @property
    def code(self) -> List[str]:
        """The files of code that the config names."""
        return []

    def own_division(self, division: Division) -> Division:
        """Return the division of the data for this candidate."""
        return division

    def prepare(self, *, group_by: Optional[str], division: Division, vectors: Path) -> Preparation:
        """Read the pool, and build what can be built. `vectors` is a directory for word vectors."""
        return Preparation(Pool({}, {}, num_groups=0, group_by=None))

    @classmethod
    def repeat_command(cls, packages: Sequence[str]) -> str:
        """Return the shell command that repeats one run."""
        file = f"DIR/evaluations/CANDIDATE-REPLICATE/{OUTCOME_FILE}"
        return " ".join(["python -m fiesta_allennlp.candidates.programs.repeat", file, "NEW", *packages])
