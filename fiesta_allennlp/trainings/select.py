"""Selections among configs and programs: the family of `fiesta select`, its dry run and its trial."""

import resource
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ContextManager, Iterator, List, Mapping

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import UNDECIDED, Candidate, Decision, Evaluation, History, Outcome, Request
from fiesta_allennlp.core.seeding import fresh_seed, make_request
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.processes import ProcessExecutor
from fiesta_allennlp.listeners.progress import PEAK_MEMORY
from fiesta_allennlp.selection.family import LoopParts, Recorded, Resumed, SelectionFamily
from fiesta_allennlp.selection.metrics import check_sign
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.session import rehearsed, run_selection
from fiesta_allennlp.selection.store import Meta, RunStore
from fiesta_allennlp.selection.strategy_building import build_strategy, importing, told_as_typed
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.candidates import Roster, equal_candidates, load_candidates, read_roster
from fiesta_allennlp.trainings.pool import facts_of
from fiesta_allennlp.trainings.preparation import CheckedTrainings, PreparedTrainings, prepare_all, prepared_trainings
from fiesta_allennlp.trainings.progress_setup import BestModels, outlook, told_of_jobs, watching
from fiesta_allennlp.trainings.settings import Settings


class Trainings(SelectionFamily[Settings, CheckedTrainings, PreparedTrainings]):
    """The family whose candidates are AllenNLP configs or programs, and whose runs are trainings."""

    name = "trainings"
    settings = Settings
    given = "candidates"
    step = "run"

    def check(self, settings: Settings, stored: Resumed, *, allow_removed: bool) -> CheckedTrainings:
        if settings.metric is not None and not stored.candidates:  # an old selection continues as it began
            check_sign(settings.metric)
        least = 1 if stored.candidates and not allow_removed else 2  # a single one is refused for the missing ones
        given = importing(settings.include_package, lambda: load_candidates(settings, least=least))
        roster = read_roster(given, stored, allow_removed=allow_removed, division=settings.division)
        strategy = importing(
            settings.include_package,
            lambda: build_strategy(settings, list(roster.given), minimise=settings.scored_by.minimise),
        )
        if roster.late:
            joined = replace(stored.history, candidates=tuple(roster.names), removed=roster.removed)
            with told_as_typed(settings):
                strategy.check_room(joined.withdrawing(max_failures=settings.max_failures))
        return CheckedTrainings(settings, roster, strategy)

    def prepared(
        self, checked: CheckedTrainings, directory: RunDirectory, place: RunDirectory, console: Console
    ) -> ContextManager[PreparedTrainings]:
        for note in _notes_on_configs(checked.roster):
            console.print(f"Note: {note}")
        return prepared_trainings(checked, directory, place, console, prepare=prepare_all)

    def recorded(self, prepared: PreparedTrainings, settings: Settings) -> Recorded[Settings]:
        roster = prepared.checked.roster
        rows: List[Candidate] = []
        for name, candidate in roster.given.items():
            files = {file.path: file.digest for file in roster.data[name].files}
            rows.append(replace(candidate, facts={**facts_of(prepared.preparations[name]), "files": files}))
        return Recorded(prepared.checked.settings, rows, {"removed": sorted(roster.removed)}, prepared.code)

    @contextmanager
    def work(self, prepared: PreparedTrainings, store: RunStore, console: Console, *, seed: int) -> Iterator[LoopParts]:
        settings, executor = prepared.checked.settings, prepared.executor
        strategy, directory = prepared.checked.strategy, prepared.directory
        worked = store.meta().working_seconds
        remaining = outlook(strategy, executor, seed=seed, worked=worked, max_hours=settings.max_hours)
        console.print(f"Training {executor.describe()}.")
        with (
            told_of_jobs(executor, directory, console),
            watching(settings, directory, console, remaining=remaining) as listeners,
        ):
            evaluator = prepared.evaluator()
            yield LoopParts(
                strategy=strategy,
                evaluator=evaluator,
                executor=executor,
                listeners=[*listeners, prepared.metric_names(evaluator, console)],
                shared_splits=settings.splits == "shared",
                max_hours=settings.max_hours,
            )

    def result(self, prepared: PreparedTrainings, history: History, decision: Decision, meta: Meta) -> Result:
        settings = prepared.checked.settings
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
            sets=tuple(prepared.pool.official),
            seed=str(meta.seed),
        )

    def conclude(self, prepared: PreparedTrainings, history: History, decision: Decision) -> None:
        may_continue = decision.best is None or decision.stopped_by in UNDECIDED
        if prepared.checked.settings.keep == "best" and not may_continue:
            sign = prepared.checked.settings.scored_by.sign
            BestModels(prepared.directory, sign).keep_only([decision.best], history)


def _notes_on_configs(roster: Roster) -> Iterator[str]:
    configs = {name: dict(candidate.config) for name, candidate in roster.given.items()}
    for names in equal_candidates(configs):
        yield (
            f"the configs of {', '.join(names[:-1])} and {names[-1]} are equal apart from seeds, so no number of runs "
            "separates these candidates. Keep them for an A/A test; otherwise correct or remove one."
        )
    for name, config in configs.items():
        yield from (f"{name}: {note}" for note in type_of(config).notes(roster.division))


TRAININGS = Trainings()


select = partial(run_selection, TRAININGS)
"""Select the best of several candidates, or resume a selection. The parameters are those of `run_selection`."""


# Without a store.


@dataclass(frozen=True)
class Plan:
    """The result of a dry run. `least` and `most` are numbers of runs; `commands` has the command of each program's
    first run."""

    prepared: PreparedTrainings
    least: int
    most: int
    commands: Mapping[str, str]


def plan(settings: Settings, console: Console, directory: RunDirectory) -> Plan:
    """Check everything and build every model once for a selection in `directory`. Train nothing and keep nothing."""
    with rehearsed(TRAININGS, settings, console) as prepared:
        console.print(f"Would train {prepared.executor.describe()}.")
    roster = prepared.checked.roster
    least, most = prepared.checked.strategy.bounds(len(roster.given))
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
        made = self.evaluator.evaluate(request, directory)
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        gib = peak / (2**30 if sys.platform == "darwin" else 2**20)  # Linux counts in KiB
        return replace(made, metrics={**made.metrics, PEAK_MEMORY: gib})


def trial(settings: Settings, console: Console) -> Iterator[Outcome]:
    """Make one short run of each candidate, and keep nothing: 200 records of a program's data, or one epoch of an
    AllenNLP config. Yield the outcomes; print under which names programs report the metric."""
    with rehearsed(TRAININGS, settings, console) as prepared:
        if not isinstance(prepared.executor, ProcessExecutor):
            raise ConfigError("--trial runs only on this machine. Remove --executor.")
        seed = fresh_seed() if settings.seed is None else settings.seed
        evaluator = prepared.evaluator(is_trial=True)
        names = prepared.metric_names(evaluator, console)
        for name in prepared.checked.roster.given:
            request = make_request(seed, name, 0, shared_splits=settings.splits == "shared")
            prepared.executor.submit(Measured(evaluator.for_request(request)), request)
        for outcome in prepared.executor.completed():
            names.on_outcome(outcome)
            yield outcome
