"""The checks of candidates before the first run, which build each once, and the choice of the metric."""

from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import (
    ConfigError,
    FiestaError,
    ForeignError,
    ModelError,
    PackageError,
    ReaderError,
    all_in_one,
    describe,
    did_you_mean,
    plainly,
)
from fiesta_allennlp.core.records import Candidate, Evaluation, Request
from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.listeners.progress import counting
from fiesta_allennlp.selection.metrics import Metric, check_sign
from fiesta_allennlp.selection.strategy_building import importing
from fiesta_allennlp.selection.summary import scored_on
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.candidate_run import CandidateRun
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.data_files import DataMark, missing_file
from fiesta_allennlp.trainings.pool import (
    Pool,
    Preparation,
    check_same_pool,
    preparation_of,
    vectors_are_there,
)
from fiesta_allennlp.trainings.progress_setup import MetricNames
from fiesta_allennlp.trainings.settings import DEFAULT_METRIC, Settings
from fiesta_allennlp.trainings.workers import build_executor, check_gpus, packages_of


@dataclass(frozen=True)
class EachRun(Evaluator):
    """Runs each candidate as its type does. `runs` are by candidate."""

    runs: Mapping[str, CandidateRun]

    def for_request(self, request: Request) -> Evaluator:
        return self.runs[request.candidate]

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return self.for_request(request).evaluate(request, directory)


@dataclass(frozen=True)
class CheckedTrainings:
    """Settings that passed the checks of files and options."""

    settings: Settings
    roster: Roster
    strategy: Strategy


@dataclass(frozen=True)
class PreparedTrainings:
    """A checked selection after every model has been built. `preparations` include removed candidates."""

    checked: CheckedTrainings
    directory: RunDirectory
    executor: Executor
    preparations: Mapping[str, Preparation]

    @property
    def pool(self) -> Pool:
        return next(iter(self.preparations.values())).pool

    @property
    def scored_on(self) -> str:
        division = self.checked.roster.division
        return scored_on(self.pool.official, is_official=division.is_official, scored=division.scored)

    @property
    def code(self) -> List[str]:
        """The files of code that the configs name."""
        given = self.checked.roster.given.values()
        return sorted({file for candidate in given for file in type_of(candidate.config).code})

    def metric_names(self, evaluator: EachRun, console: Console) -> MetricNames:
        """Return the listener to the runs whose metrics are unknown before the first one."""
        runs = {name: evaluator.runs[name] for name in self.checked.roster.given}
        unknown = {name: run for name, run in runs.items() if self.preparations[name].metrics is None}
        return MetricNames(self.checked.settings, unknown, console)

    def evaluator(self, *, is_trial: bool = False) -> EachRun:
        """Return the evaluator of all candidates, removed ones too. The runs of a trial have one epoch, or few
        records."""
        settings, roster = self.checked.settings, self.checked.roster
        runs = {
            name: type_of(config).run(
                metric=settings.scored_by.name,
                group_by=self.preparations[name].pool.group_by,
                data=roster.data.get(name, DataMark()),
                division=roster.division,
                vectors=dict(self.preparations[name].vectors),
                keep_models=settings.keep != "none",
                free_device=self.executor.gives_devices,
                is_trial=is_trial,
            )
            for name, config in roster.configs.items()
        }
        return EachRun(runs)


def prepare_all(
    candidates: Mapping[str, Candidate],
    checked: CheckedTrainings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
) -> Dict[str, Preparation]:
    """Build each of these candidates once, in its own process. Output goes to `checks/` of `place`, and word vectors to
    `vectors/`; both move to `directory` afterwards. Raise a `ConfigError` that lists all invalid candidates."""
    settings, roster = checked.settings, checked.roster
    num_tasks = f"{len(candidates)} candidate{'s' * (len(candidates) > 1)}"
    builds = any(type_of(candidate.config).builds_model for candidate in candidates.values())
    building = " and building each model once" if builds else ""
    console.print(f"Checking {num_tasks}: reading the data{building} ...")
    room = num_workers("auto", settings.threads_per_worker)  # on this machine, wherever the runs will be made
    tasks = {
        name: (candidate.config, settings.group_by, roster.division, roster.data[name].fingerprint, place.vectors)
        for name, candidate in candidates.items()
    }
    with counting(console, len(candidates)) as count:
        results = run_apart(
            _prepare_task,
            tasks,
            logs={name: place.check_log(name) for name in candidates},
            settings=WorkerSettings(settings.threads_per_worker, packages_of(settings, roster)),
            at_once=room if settings.workers == "auto" else min(room, settings.workers),
            on_done=count,
        )
    wrong = {name: result for name, result in results.items() if isinstance(result, BaseException)}
    if wrong:
        for error in wrong.values():
            if isinstance(error, PackageError):  # which all of them import
                raise error
        refusals = [_refusal(candidates[name], error, place) for name, error in wrong.items()]
        raise ConfigError(all_in_one(refusals, what="invalid candidates")) from next(iter(wrong.values()))
    vectors = directory.vectors.resolve()
    return {
        name: replace(made, vectors=tuple((uri, str(vectors / Path(file).name)) for uri, file in made.vectors))
        for name, made in results.items()
    }


def _refusal(candidate: Candidate, error: BaseException, place: RunDirectory) -> str:
    log = place.check_log(candidate.name)
    is_clear = isinstance(error, FiestaError) and not isinstance(error, (ForeignError, ModelError, ReaderError))
    where = "" if is_clear or not place.store.exists() or not log.exists() else f" Full log: {log}"
    text = missing_file(candidate.config, describe(error)) or f"{plainly(error)}{where}"
    return f"candidate '{candidate.name}' ({candidate.source}): {text}"


def _prepare_task(config: Config, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
    return type_of(config).prepare(group_by=group_by, division=division, data=data, vectors=vectors)


LOSS = "loss"  # which AllenNLP's trainer reports for every model


def with_metric(
    settings: Settings, candidates: Mapping[str, Candidate], preparations: Mapping[str, Preparation], console: Console
) -> Settings:
    """Return the settings with a metric that every candidate reports: the one that the user chose, the default, or else
    the only one that all of them report, which the console then prints."""
    if settings.metric is None:
        settings = replace(settings, metric=_metric_of(candidates, preparations, console))
    metric = settings.scored_by
    refusals: List[str] = []
    for name, preparation in preparations.items():
        reported = None if preparation.metrics is None else sorted({*preparation.metrics, LOSS})
        if reported is not None and metric.name not in reported:
            refusals.append(
                f"candidate '{name}': its model does not report the metric '{metric.name}'. It reports: "
                f"{', '.join(reported)}.{did_you_mean(metric.name, reported)} Choose one of these with --metric NAME, "
                "or with --metric=-NAME if lower is better."
            )
    if refusals:
        raise ConfigError(all_in_one(refusals, what="invalid candidates"))
    return settings


def _metric_of(candidates: Mapping[str, Candidate], preparations: Mapping[str, Preparation], console: Console) -> str:
    reported = [set(made.metrics) for made in preparations.values() if made.metrics is not None]
    if len(reported) < len(preparations):
        raise ConfigError(
            "--metric is missing. The metrics of a program are unknown before its first run, so set it: --metric NAME, "
            "or --metric=-NAME if lower is better."
        )
    shared = set.intersection(*reported)
    if DEFAULT_METRIC in shared:
        return DEFAULT_METRIC
    if len(shared) != 1:
        raise ConfigError(
            f"--metric is missing. The metrics that all candidates report: {', '.join(sorted({*shared, LOSS}))}. "
            "Choose one with --metric NAME, or with --metric=-NAME if lower is better."
        )
    (found,) = shared
    check_sign(found)
    for candidate in candidates.values():
        type_of(candidate.config).check_metric(Metric(found))
    console.print(f"Comparing by {found}, the only metric that all candidates report.")
    return found


Prepare = Callable[..., Dict[str, Preparation]]  # with the arguments of `prepare_all`


@contextmanager
def prepared_trainings(
    checked: CheckedTrainings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
    *,
    prepare: Prepare,
) -> Iterator[PreparedTrainings]:
    """Implement `SelectionFamily.prepared`."""
    settings, roster = checked.settings, checked.roster
    packages = packages_of(settings, roster)
    built = importing(settings.include_package, lambda: build_executor(settings, directory, packages=packages))
    with closing(built) as executor:
        check_gpus(roster.given, executor)
        known = _known(roster)
        fresh = {
            name: candidate
            for name, candidate in roster.given.items()
            if name not in known or not vectors_are_there(known[name])
        }
        if fresh:
            known.update(prepare(fresh, checked, directory, place, console))
            check_same_pool({name: known[name].pool for name in roster.given})
            for note in known[next(iter(fresh))].pool.notes:
                console.print(f"Note: {note}")
        taking_part = {name: known[name] for name in roster.given}
        settings = with_metric(settings, roster.given, taking_part, console)
        yield PreparedTrainings(replace(checked, settings=settings), directory, executor, known)


def _known(roster: Roster) -> Dict[str, Preparation]:
    """Return the preparations in the store, by candidate. The data of given candidates have been checked, so they get
    their current fingerprint, which older stores computed from names."""
    known = {name: preparation_of(candidate.facts) for name, candidate in roster.stored.items()}
    for name in roster.given.keys() & known.keys():
        pool = replace(known[name].pool, data=roster.data[name].fingerprint)
        known[name] = replace(known[name], pool=pool)
    return known
