"""Selections among configs and programs: the family of `fiesta select`, its dry run and its trial."""

import resource
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import (
    INCONCLUSIVE_REASONS,
    Candidate,
    Decision,
    Evaluation,
    History,
    Outcome,
    Request,
)
from fiesta_allennlp.core.seeding import fresh_seed, make_request
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.selection.loop import Listener, SelectionLoop
from fiesta_allennlp.selection.metrics import check_metric_sign
from fiesta_allennlp.selection.progress import PEAK_MEMORY, ProgressDisplay
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.session import SelectionFamily, StoredSelection, dry_run, run_selection
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.selection.strategy_building import build_strategy, build_with_packages, translated_option_errors
from fiesta_allennlp.selection.summary import collapsed_notes, describe_scored_data
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.candidates import Roster, equal_candidates, load_candidates, read_roster
from fiesta_allennlp.trainings.data_files import DataMark
from fiesta_allennlp.trainings.pool import (
    Pool,
    Preparation,
    check_same_pool,
    facts_of,
    vectors_are_there,
)
from fiesta_allennlp.trainings.preparation import (
    EachRun,
    build_executor,
    check_gpus,
    known_preparations,
    packages_of,
    prepare_all,
    with_metric,
)
from fiesta_allennlp.trainings.progress_setup import BestModels, MetricNames, Notify, outlook, told_of_jobs
from fiesta_allennlp.trainings.settings import Settings


@dataclass
class TrainingSelection(SelectionFamily):
    """A selection among AllenNLP configs or programs, whose runs are trainings. Once it is prepared, it has an
    `executor`, and `preparations`, which include removed candidates."""

    name = "trainings"
    settings_class = Settings
    candidates_option = "candidates"
    run_noun = "run"

    settings: Settings
    directory: RunDirectory
    roster: Roster
    strategy: Strategy
    executor: Executor = field(init=False)
    preparations: Mapping[str, Preparation] = field(init=False)

    @classmethod
    def check(cls, settings: Settings, stored: StoredSelection, *, allow_removed: bool) -> "TrainingSelection":
        if settings.metric is not None and not stored.candidates:  # an old selection continues as it began
            check_metric_sign(settings.metric)
        least = 1 if stored.candidates and not allow_removed else 2  # a single one is refused for the missing ones
        candidates = build_with_packages(settings.include_package, lambda: load_candidates(settings, least=least))
        roster = read_roster(candidates, stored, allow_removed=allow_removed, division=settings.division)
        strategy = build_with_packages(
            settings.include_package,
            lambda: build_strategy(settings, list(roster.given), minimise=settings.scored_by.minimise),
        )
        if roster.late:
            joined_history = replace(stored.history, candidates=tuple(roster.names), removed=roster.removed)
            with translated_option_errors(settings):
                strategy.check_room(joined_history.with_withdrawn(max_failures=settings.max_failures))
        return cls(settings, stored.directory, roster, strategy)

    @contextmanager
    def prepare_runs(self, directory: RunDirectory, console: Console) -> Iterator[None]:
        for note in self.notes():
            console.print(f"Note: {note}")
        settings, active = self.settings, self.roster.given
        packages = packages_of(settings, self.roster)
        built = build_with_packages(
            settings.include_package, lambda: build_executor(settings, self.directory, packages=packages)
        )
        with closing(built) as self.executor:
            check_gpus(active, self.executor)
            ready = known_preparations(self.roster)
            missing = {name: active[name] for name in active if name not in ready or not vectors_are_there(ready[name])}
            if missing:
                vectors = self.directory.vectors.resolve()  # which `directory` becomes
                built_now = self.prepare(missing, directory, console)
                ready.update((name, preparation.moved_to(vectors)) for name, preparation in built_now.items())
                check_same_pool({name: ready[name].pool for name in active})
                for note in ready[next(iter(missing))].pool.notes:
                    console.print(f"Note: {note}")
            self.preparations = ready
            self.settings = with_metric(settings, active, {name: ready[name] for name in active}, console)
            yield

    def notes(self) -> Iterator[str]:
        """Yield what is doubtful about the configs."""
        configs = {name: dict(candidate.config) for name, candidate in self.roster.given.items()}
        for names in equal_candidates(configs):
            yield (
                f"the configs of {', '.join(names[:-1])} and {names[-1]} are equal apart from seeds, so no number of "
                "runs separates these candidates. Keep them for an A/A test; otherwise correct or remove one."
            )
        for name, config in configs.items():
            yield from (f"{name}: {note}" for note in type_of(config).notes(self.roster.division))

    def prepare(
        self, candidates: Mapping[str, Candidate], directory: RunDirectory, console: Console
    ) -> Dict[str, Preparation]:
        return prepare_all(candidates, self.settings, self.roster, directory, console)

    # What the store keeps.

    @property
    def candidates(self) -> List[Candidate]:
        return [
            replace(candidate, facts={**facts_of(self.preparations[name]), **self.further_facts(name)})
            for name, candidate in self.roster.given.items()
        ]

    def further_facts(self, name: str) -> Dict[str, Any]:
        return {"files": {file.path: file.digest for file in self.roster.data[name].files}}

    @property
    def meta(self) -> Mapping[str, Any]:
        return {"removed": sorted(self.roster.removed)}

    @property
    def code_files(self) -> List[str]:
        """The files of code that the configs name."""
        candidates = self.roster.given.values()
        return sorted({file for candidate in candidates for file in type_of(candidate.config).code})

    # The runs.

    @property
    def pool(self) -> Pool:
        return next(iter(self.preparations.values())).pool

    @property
    def scored_on(self) -> str:
        division = self.roster.division
        return describe_scored_data(self.pool.official, is_official=division.is_official, scored=division.scored)

    def metric_names(self, evaluator: EachRun, console: Console) -> MetricNames:
        """Return the listener to the runs whose metrics are unknown before the first one."""
        runs = {name: evaluator.runs[name] for name in self.roster.given}
        unknown_runs = {name: run for name, run in runs.items() if self.preparations[name].metrics is None}
        return MetricNames(self.settings, unknown_runs, console)

    def evaluator(self, *, is_trial: bool = False) -> EachRun:
        """Return the evaluator of all candidates, removed ones too. The runs of a trial have one epoch, or few
        records."""
        settings, roster = self.settings, self.roster
        runs = {
            name: type_of(config).evaluator(
                metric=settings.scored_by.name,
                group_by=self.preparations[name].pool.group_by,
                data=roster.data.get(name, DataMark()),
                division=roster.division,
                vectors=dict(self.preparations[name].vectors),
                keep_models=settings.keeps_models,
                free_device=self.executor.gives_devices,
                is_trial=is_trial,
            )
            for name, config in roster.configs.items()
        }
        return EachRun(runs)

    @contextmanager
    def open_loop(self, store: RunStore, console: Console, *, seed: int) -> Iterator[SelectionLoop]:
        settings, executor, strategy, directory = self.settings, self.executor, self.strategy, self.directory
        metric, worked = settings.scored_by, store.meta().working_seconds
        remaining = outlook(strategy, executor, seed=seed, worked=worked, max_hours=settings.max_hours)
        collapsed = partial(collapsed_notes, minimise=metric.minimise)
        progress = ProgressDisplay(
            console, metric.name, title=metric.display_name, remaining=remaining, collapsed=collapsed
        )
        console.print(f"Training {executor.describe()}.")
        with told_of_jobs(executor, directory, console), progress:
            evaluator = self.evaluator()
            listeners: List[Listener] = [progress, self.metric_names(evaluator, console)]
            if settings.keep == "best":
                listeners.append(BestModels(directory, metric.sign))
            if settings.notify:
                listeners.append(Notify(settings.notify, directory))
            yield SelectionLoop(
                strategy=strategy,
                evaluator=evaluator,
                executor=executor,
                listeners=listeners,
                store=store,
                directory=directory,
                seed=seed,
                max_failures=settings.max_failures,
                shared_splits=settings.splits == "shared",
                max_hours=settings.max_hours,
            )

    def result(self, history: History, decision: Decision, *, seed: str) -> Result:
        settings = self.settings
        strategy = settings.strategy_params()
        return Result.of(
            history,
            decision,
            settings.scored_by,
            strategy=strategy,
            belief=strategy["belief"],
            splits=settings.splits,
            score=settings.score,
            min_score=settings.min_score,
            sets=tuple(self.pool.official),
            seed=seed,
        )

    def conclude(self, history: History, decision: Decision) -> None:
        may_continue = decision.best is None or decision.stopped_by in INCONCLUSIVE_REASONS
        if self.settings.keep == "best" and not may_continue:
            BestModels(self.directory, self.settings.scored_by.sign).keep_only([decision.best], history)


select = partial(run_selection, TrainingSelection)
"""Select the best of several candidates, or resume a selection. The parameters are those of `run_selection`."""


# Without a store.


@dataclass(frozen=True)
class Plan:
    """The result of a dry run. `least` and `most` are numbers of runs; `commands` has the command of each program's
    first run."""

    prepared: TrainingSelection
    least: int
    most: int
    commands: Mapping[str, str]


def plan(settings: Settings, console: Console, directory: RunDirectory) -> Plan:
    """Check everything and build every model once for a selection in `directory`. Train nothing and keep nothing."""
    with dry_run(TrainingSelection, settings, console) as prepared:
        console.print(f"Would train {prepared.executor.describe()}.")
    roster = prepared.roster
    least, most = prepared.strategy.bounds(len(roster.given))
    commands = {
        name: type_of(config).example_command(roster.division, directory.evaluation(f"{name}-0"))
        for name, config in roster.configs.items()
    }
    return Plan(prepared, least, most, {name: command for name, command in commands.items() if command})


@dataclass(frozen=True)
class Measured(Evaluator):
    """An evaluator that adds the peak memory of its process, and of the programs that it started, to the metrics."""

    evaluator: Evaluator

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        evaluation = self.evaluator.evaluate(request, directory)
        peak = max(resource.getrusage(scope).ru_maxrss for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        gib = peak / (2**30 if sys.platform == "darwin" else 2**20)  # Linux counts in KiB
        return replace(evaluation, metrics={**evaluation.metrics, PEAK_MEMORY: gib})


def trial(settings: Settings, console: Console) -> Iterator[Outcome]:
    """Make one short run of each candidate, and keep nothing: 200 records of a program's data, or one epoch of an
    AllenNLP config. Yield the outcomes; print under which names programs report the metric."""
    with dry_run(TrainingSelection, settings, console) as prepared:
        if not prepared.executor.is_local:
            raise ConfigError("--trial runs only on this machine. Remove --executor.")
        seed = fresh_seed() if settings.seed is None else settings.seed
        if not prepared.pool.official:
            console.print("Note: these programs load their own data, so a trial makes a whole run of each.")
        evaluator = prepared.evaluator(is_trial=True)
        names = prepared.metric_names(evaluator, console)
        for name in prepared.roster.given:
            request = make_request(seed, name, 0, shared_splits=settings.splits == "shared")
            prepared.executor.submit(Measured(evaluator.for_request(request)), request)
        for outcome in prepared.executor.completed():
            names.on_outcome(outcome)
            yield outcome
