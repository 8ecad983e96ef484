"""The records that travel between the layers: all frozen, none knows how it was made."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from fiesta_allennlp.core.metrics import COUNT_PREFIX


class Machine(NamedTuple):
    """A host with the GPUs that a run saw: what a failure may be blamed on, if not the candidate."""

    host: str
    gpu: str = ""

    def __str__(self) -> str:
        return f"{self.host} (GPU {self.gpu.removeprefix('GPU-')})" if self.gpu else self.host


@dataclass(frozen=True)
class Origin:
    """The machine and the software that made an outcome. All is empty if they are unknown, as for scores of a table.

    `gpu` names the GPUs that the run saw, as `CUDA_VISIBLE_DEVICES` does, and `gpu_names` has their models. `job` is
    the job of a batch system. `versions` are those of the packages that decide scores, by distribution. With
    `is_only_machine`, the selection had no other machine for the run: neither another host nor another GPU.
    `file` is the table of scores that a run was taken from, which was made before the selection began.
    """

    host: str = ""
    gpu: str = ""
    gpu_names: str = ""
    job: str = ""
    python: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    processor: str = ""
    cores: int = 0
    memory_gib: float = 0.0
    is_only_machine: bool = True
    file: str = ""

    @property
    def machine(self) -> Machine:
        return Machine(self.host, self.gpu)

    @property
    def software(self) -> Mapping[str, str]:
        """The versions of Python and of the packages."""
        return {"Python": self.python, **self.versions}

    @property
    def without_job(self) -> "Origin":
        """The same machine and software, whatever the job."""
        return replace(self, job="", is_only_machine=True)


UNKNOWN_ORIGIN = Origin()


@dataclass(frozen=True, eq=False)
class Counts:
    """The answers of each kind that the runs of a candidate counted.

    `kinds` are the names of the metrics without `count:`, sorted. `values` has a row for each finished run by
    replicate, with 0 for a kind that a run does not report; shape `(num_finished, num_kinds)`. It is read only.
    `num_runs_without_counts` runs reported no counts at all.
    """

    kinds: Tuple[str, ...]
    values: np.ndarray
    num_runs_without_counts: int

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def columns_for(self, kinds: Sequence[str]) -> np.ndarray:
        """Return `values` with these columns, 0 for unknown kinds. Shape: `(num_finished, len(kinds))`."""
        columns = dict(zip(self.kinds, self.values.T, strict=True))
        absent = np.zeros(len(self.values))
        return np.array([columns.get(kind, absent) for kind in kinds]).T.reshape(len(self.values), len(kinds))


@dataclass(frozen=True)
class Candidate:
    """A candidate that takes part in a selection.

    `source` is what you typed for it, `config` is plain data, and `facts` holds the results of checking it.
    """

    name: str
    source: str
    config: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A run to make, with every seed that it needs. Its identity is `(candidate, replicate)`.

    `replicate` counts from 0 within a candidate, or from -1 downwards for runs that were made before the selection
    began. Runs with equal `split_seed` share a data split.
    """

    candidate: str
    replicate: int
    split_seed: int
    random_seed: int
    numpy_seed: int
    pytorch_seed: int

    @property
    def key(self) -> Tuple[str, int]:
        return self.candidate, self.replicate

    @property
    def name(self) -> str:
        number = f"brought-{-self.replicate}" if self.is_brought else f"{self.replicate}"
        return f"{self.candidate}-{number}"

    @property
    def is_brought(self) -> bool:
        """True if the run was made before the selection began. Its seeds are unknown."""
        return self.replicate < 0


@dataclass(frozen=True)
class Evaluation:
    """A finished run. `score` is the test metric called `metric`; `metrics` has every number that the run reported.

    `seconds` is wall-clock time; `started_at` is ISO 8601 in UTC. Metrics named ``count:<kind>`` count the answers of
    one kind: `count:tp`, `count:fp`, `count:fn` and `count:tn`, or ``count:<gold>><predicted>`` for pairs of labels.
    """

    request: Request
    score: float
    metric: str
    seconds: float = 0.0
    started_at: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    origin: Origin = UNKNOWN_ORIGIN


@dataclass(frozen=True)
class Failure:
    """A run that gave no score, and the reason. It is never turned into a number.

    `kind` gives the reason. After `error`, the run is not tried again: it raised, and the same seeds would fail again.
    After `timeout`, it is not tried again either, nor after `metric`: it ended without the metric. If it is the first
    run of its candidate, that ends the selection. `killed` means that its process died. `machine` means that a file or
    memory was missing, which says nothing about the candidate. After these two, the run is tried again with the same
    seeds. After `score`, a run whose score is worse than `--min-score`, it is not: the next run gets other seeds.
    `unfit` is the last `machine` failure: the machine repeatedly lacked something for this run, or for a candidate that
    has never finished a run, while others finished.

    `disk` (the disk is full) and `data` (the data have changed) are never recorded: they end the selection.
    """

    request: Request
    kind: str
    error: str
    seconds: float = 0.0
    started_at: str = ""
    log_path: Optional[str] = None
    origin: Origin = UNKNOWN_ORIGIN


Outcome = Union[Evaluation, Failure]


def outcome_from_data(fields: Mapping[str, Any]) -> Outcome:
    """Return the outcome from its fields, as `asdict` returns them."""
    outcome_class = Evaluation if "score" in fields else Failure
    parts = {"request": Request(**fields["request"]), "origin": Origin(**fields.get("origin", {}))}
    return outcome_class(**{**fields, **parts})


class MachineHistory:
    """The machines behind the outcomes of a selection. Those of unknown origin count as one machine alone."""

    def __init__(self, evaluations: Sequence[Evaluation], failures: Sequence[Failure]) -> None:
        finished: Sequence[Outcome] = [*evaluations, *(f for f in failures if f.kind == "score")]
        self._working_machines = {run.origin.machine for run in finished}
        self._working_hosts = {machine.host for machine in self._working_machines}
        self._machines_by_run: Dict[Tuple[str, int], Set[Machine]] = {}
        for failure in failures:
            if failure.kind != "score":
                self._machines_by_run.setdefault(failure.request.key, set()).add(failure.origin.machine)

    def is_of_candidate(self, failure: Failure) -> bool:
        """Return whether a failure counts against its candidate. Of a job that died, the GPU may be unknown."""
        origin = failure.origin
        is_working = origin.machine in self._working_machines or (not origin.gpu and origin.host in self._working_hosts)
        return origin.is_only_machine or is_working or len(self._machines_by_run.get(failure.request.key, ())) > 1


LOW_SCORES_PER_FINISHED_RUN = 3
"""A candidate may have so many runs with too low a score for each run that works, before more count as failures."""


@dataclass(frozen=True)
class History:
    """Everything that is known at one moment, from which a strategy and a model of the scores decide.

    `candidates` are all names in the order given, including those that dropped out after failures or were removed by
    the user. `evaluations` are in the order in which they finished. `pending` are reserved and not finished.
    `withdrawn` are the candidates that dropped out or were removed; `removed` are those of them that the user removed.
    `sign` is -1 if lower scores are better. The runs keep their scores as the metric reports them, and `scores` has
    them times `sign`, so that higher is better for every strategy and model of the scores. `tasks` has the task of each
    split seed, if candidates are compared by their average over several tasks. Then no two tasks share a split seed.
    """

    candidates: Tuple[str, ...]
    evaluations: Tuple[Evaluation, ...] = ()
    pending: Tuple[Request, ...] = ()
    failures: Tuple[Failure, ...] = ()
    withdrawn: FrozenSet[str] = frozenset()
    removed: FrozenSet[str] = frozenset()
    sign: int = 1
    tasks: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def active(self) -> Tuple[str, ...]:
        """The candidates that neither dropped out after failures nor were removed by the user, in the order given."""
        return tuple(name for name in self.candidates if name not in self.withdrawn)

    @cached_property
    def by_task(self) -> Dict[str, "History"]:
        """The history of each task, in the order in which the tasks began. Without tasks, it is the whole one."""

        def of_task(task: str) -> "History":
            evaluations = tuple(run for run in self.evaluations if self.tasks[run.request.split_seed] == task)
            pending = tuple(request for request in self.pending if self.tasks[request.split_seed] == task)
            failures = tuple(run for run in self.failures if self.tasks[run.request.split_seed] == task)
            return replace(self, evaluations=evaluations, pending=pending, failures=failures, tasks={})

        return {name: of_task(name) for name in dict.fromkeys(self.tasks.values())} or {"": self}

    def mean(self, candidate: str) -> Optional[float]:
        """Return the mean score of one candidate as the metric reports it: of several tasks, the mean of its means on
        each. None if it has no score, or none on a task."""
        scores = [part.scores(candidate) for part in self.by_task.values()]
        return self.sign * float(np.mean([own.mean() for own in scores])) if all(map(len, scores)) else None

    @property
    def num_planned(self) -> int:
        """Number of candidates in a plan: all except those that the user removed."""
        return sum(name not in self.removed for name in self.candidates)

    @cached_property
    def machines(self) -> MachineHistory:
        """The machines behind the outcomes, which tell whether a failure counts against its candidate."""
        return MachineHistory(self.evaluations, self.failures)

    def has_failed(self, request: Request) -> bool:
        """Return whether a run is not tried again, because it raised or took too long, and that counts."""
        own_failures = (failure for failure in self.failures if failure.request == request)
        return any(f.kind not in ("killed", "machine") and self.machines.is_of_candidate(f) for f in own_failures)

    def num_counted_failures(self, candidate: str) -> int:
        """Return the number of failures of one candidate that count towards dropping out.

        This is the larger of two numbers: how many of its runs failed for good, and how often a process died under one
        and the same run. A run that finished later does not count, and neither does a failure of the machine, by its
        kind or by `MachineHistory`. Scores that are too low count only beyond three for each run that works: a
        candidate of which one run in twenty collapses is no broken one.
        """
        own_failures = [f for f in self.failures if f.request.candidate == candidate and f.kind != "machine"]
        finished = {e.request for e in self.evaluations_of(candidate)}
        counted = [f for f in own_failures if f.request not in finished and self.machines.is_of_candidate(f)]
        num_low_scores = sum(f.kind == "score" for f in counted)
        num_excess_low_scores = max(0, num_low_scores - LOW_SCORES_PER_FINISHED_RUN * self.num_finished(candidate))
        num_errors = len({f.request for f in counted if f.kind not in ("score", "killed")})
        deaths = Counter(f.request for f in counted if f.kind == "killed")
        return num_excess_low_scores + max(num_errors, *deaths.values(), 0)

    @property
    def num_runs_of_removed(self) -> int:
        """Number of finished and pending runs of the candidates that the user removed."""
        return sum(self.num_started(name) for name in self.candidates if name in self.removed)

    @cached_property
    def _finished_runs(self) -> "Dict[str, _FinishedRuns]":
        runs: Dict[str, List[Evaluation]] = {name: [] for name in self.candidates}
        for evaluation in self.evaluations:
            runs.setdefault(evaluation.request.candidate, []).append(evaluation)
        return {name: _FinishedRuns(tuple(evaluations), self.sign) for name, evaluations in runs.items()}

    def scores(self, candidate: str) -> np.ndarray:
        """Return the finished scores of one candidate by replicate, times `sign`: higher is better. Read only.

        The order in which runs finish has no influence. Shape: `(num_finished,)`.
        """
        return self._finished_runs[candidate].scores

    def split_seeds(self, candidate: str) -> np.ndarray:
        """Return the split seeds of `scores`. Shape: `(num_finished,)`."""
        return self._finished_runs[candidate].split_seeds

    def counts(self, candidate: str) -> Counts:
        """Return the counts of one candidate's finished runs by replicate."""
        return self._finished_runs[candidate].counts

    def evaluations_of(self, candidate: str) -> Sequence[Evaluation]:
        """Return the finished runs of one candidate in the order in which they finished."""
        return self._finished_runs[candidate].runs

    @property
    def mean_seconds(self) -> Optional[float]:
        """The mean duration of the finished runs whose duration is known; None if there are none."""
        seconds = [evaluation.seconds for evaluation in self.evaluations if evaluation.seconds > 0]
        return sum(seconds) / len(seconds) if seconds else None

    def num_finished(self, candidate: str) -> int:
        return len(self.evaluations_of(candidate))

    @cached_property
    def own(self) -> "History":
        """The runs that this selection made. Those made before it began do not show that a command works here."""
        evaluations = tuple(run for run in self.evaluations if not run.request.is_brought)
        failures = tuple(failure for failure in self.failures if not failure.request.is_brought)
        return replace(self, evaluations=evaluations, failures=failures)

    def has_finished_own(self, candidate: str) -> bool:
        """Return whether a run of this selection has finished for a candidate, even if it counts as a failure."""
        is_failure = any(f.request.candidate == candidate and f.kind == "score" for f in self.own.failures)
        return is_failure or self.own.num_finished(candidate) > 0

    def num_units(self, candidate: str) -> int:
        """Return the number of units of evidence of one candidate: the splits that it has finished runs on."""
        return self._finished_runs[candidate].num_units

    def num_started_units(self, candidate: str) -> int:
        """Return the number of splits that one candidate has finished or pending runs on."""
        pending = {request.split_seed for request in self.pending if request.candidate == candidate}
        return self.num_units(candidate) + len(pending.difference(self.split_seeds(candidate).tolist()))

    def num_pending(self, candidate: str) -> int:
        return sum(r.candidate == candidate for r in self.pending)

    def num_started(self, candidate: str) -> int:
        """Return the number of finished and pending runs of one candidate. Failures do not count."""
        return self.num_finished(candidate) + self.num_pending(candidate)

    def started_by(self, candidates: Iterable[str]) -> Dict[str, int]:
        """Return `num_started` of each of these candidates."""
        return {name: self.num_started(name) for name in candidates}

    @cached_property
    def num_begun(self) -> Dict[str, int]:
        """The number of replicates of each candidate that have begun, failed ones included."""
        num_begun = dict.fromkeys(self.candidates, 0)
        ended: Sequence[Outcome] = [*self.evaluations, *self.failures]
        for request in (*(run.request for run in ended), *self.pending):
            num_begun[request.candidate] = max(num_begun[request.candidate], request.replicate + 1)
        return num_begun

    @property
    def total_started(self) -> int:
        """Number of finished and pending runs of all candidates, which a budget limits.

        Runs of candidates that dropped out after failures or were removed by the user count too.
        """
        return len(self.evaluations) + len(self.pending)

    def with_finished(self, evaluations: Iterable[Evaluation]) -> "History":
        """Return this history after these runs have finished too, and are no longer pending.

        The scores of the other candidates are not collected again, because a replay takes thousands of such steps.
        """
        new_evaluations = tuple(evaluations)
        finished_requests = {evaluation.request for evaluation in new_evaluations}
        pending = tuple(request for request in self.pending if request not in finished_requests)
        new_history = self._copy_with(evaluations=(*self.evaluations, *new_evaluations), pending=pending)
        finished_runs = dict(self._finished_runs)
        for evaluation in new_evaluations:
            name = evaluation.request.candidate
            finished_runs[name] = _FinishedRuns((*finished_runs[name].runs, evaluation), self.sign)
        new_history.__dict__["_finished_runs"] = finished_runs
        return new_history

    def with_pending(self, requests: Iterable[Request]) -> "History":
        """Return this history with these requests pending too."""
        return self._copy_with(pending=(*self.pending, *requests))

    def with_withdrawn(self, *, max_failures: int) -> "History":
        """Return this history without the candidates that the user removed or that have `max_failures` failures that
        count.

        Their names stay in `candidates`, and their runs stay in `evaluations`; only `active` excludes them.
        """
        failed_candidates = {failure.request.candidate for failure in self.failures}
        dropped_candidates = {name for name in failed_candidates if self.num_counted_failures(name) >= max_failures}
        return self._copy_with(withdrawn=self.removed | dropped_candidates)

    def _copy_with(self, **changes: Any) -> "History":
        """Return a copy with these changes. What was gathered of the runs goes along."""
        new_history = replace(self, **changes)
        if "_finished_runs" in self.__dict__:
            new_history.__dict__["_finished_runs"] = self._finished_runs
        return new_history

    def first_evaluations(self, num_evaluations: int) -> "History":
        """Return the history at the moment when `num_evaluations` runs had finished, without pending ones."""
        return replace(self, evaluations=self.evaluations[:num_evaluations], pending=(), failures=())


class _FinishedRuns:
    """The finished runs of one candidate in the order in which they finished, and what follows from them by replicate:
    read only, shape `(num_finished,)` each."""

    def __init__(self, runs: Tuple[Evaluation, ...], sign: int) -> None:
        self.runs, self.sign = runs, sign

    @cached_property
    def by_replicate(self) -> List[Evaluation]:
        return sorted(self.runs, key=lambda evaluation: evaluation.request.replicate)

    @cached_property
    def scores(self) -> np.ndarray:
        return _read_only(self.sign * np.array([evaluation.score for evaluation in self.by_replicate], dtype=float))

    @cached_property
    def split_seeds(self) -> np.ndarray:
        return _read_only(np.array([evaluation.request.split_seed for evaluation in self.by_replicate], dtype=np.int64))

    @cached_property
    def num_units(self) -> int:
        return len({run.request.split_seed for run in self.runs})

    @cached_property
    def counts(self) -> Counts:
        metrics_by_run = [run.metrics for run in self.by_replicate]
        keys = sorted({key for metrics in metrics_by_run for key in metrics if key.startswith(COUNT_PREFIX)})
        rows = [[metrics.get(key, 0) for key in keys] for metrics in metrics_by_run]
        values = np.array(rows, dtype=float).reshape(len(rows), len(keys))
        num_without = sum(metrics.keys().isdisjoint(keys) for metrics in metrics_by_run)
        return Counts(tuple(key.removeprefix(COUNT_PREFIX) for key in keys), values, num_without)


def _read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values
