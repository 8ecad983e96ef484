"""Selections among configs and programs: the family of `fiesta select`."""

from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Mapping, Sequence

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import DataChangedError, DataError
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.processes import ProcessExecutor, num_workers
from fiesta_allennlp.records import UNDECIDED, Candidate, Decision, History
from fiesta_allennlp.selection.family import LoopParts, Resumed, SelectionFamily
from fiesta_allennlp.selection.loop import Listeners
from fiesta_allennlp.selection.metrics import check_sign
from fiesta_allennlp.selection.session import run_selection
from fiesta_allennlp.selection.store import Meta, RunStore
from fiesta_allennlp.selection.strategy_building import build_strategy, importing
from fiesta_allennlp.selection.summary import summarise
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.candidates import Roster, equal_candidates, load_candidates, read_roster
from fiesta_allennlp.trainings.config import SEED_KEYS, Config
from fiesta_allennlp.trainings.data_files import found_again
from fiesta_allennlp.trainings.pool import (
    Pool,
    Preparation,
    check_same_pool,
    facts_of,
    preparation_of,
    scored_on,
    vectors_are_there,
)
from fiesta_allennlp.trainings.preparation import prepare_all, with_metric
from fiesta_allennlp.trainings.programs.config import code_of, is_program, notes_on_program
from fiesta_allennlp.trainings.progress_setup import BestModels, MetricNames, outlook, told_of_jobs, watching
from fiesta_allennlp.trainings.settings import Settings
from fiesta_allennlp.trainings.workers import build_executor, check_gpus, evaluator_of, packages_of


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
    def code(self) -> List[str]:
        """The files that the commands of programs name."""
        return sorted({file for config in self.programs.values() for file in code_of(config)})

    @property
    def programs(self) -> Dict[str, Config]:
        """The configs of the candidates that are programs."""
        given = {name: dict(candidate.config) for name, candidate in self.checked.roster.given.items()}
        return {name: config for name, config in given.items() if is_program(config)}

    def metric_names(self, console: Console) -> MetricNames:
        return MetricNames(self.checked.settings, self.programs, self.checked.roster.division, console)

    def evaluator(self, *, is_trial: bool = False) -> Evaluator:
        given = (self.checked.settings, self.checked.roster, self.preparations)
        return evaluator_of(*given, gives_devices=self.executor.gives_devices, is_trial=is_trial)


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
        given = load_candidates(settings, least=least)
        roster = read_roster(
            given, stored, allow_removed=allow_removed, division=settings.division, points=settings.points
        )
        strategy = importing(
            settings.include_package,
            lambda: build_strategy(settings, list(roster.given), minimise=settings.scored_by.minimise),
        )
        if roster.late:
            joined = replace(stored.history, candidates=tuple(roster.names), removed=roster.removed)
            strategy.check_room(joined.withdrawing(max_failures=settings.max_failures))
        return CheckedTrainings(settings, roster, strategy)

    def prepared(
        self, checked: CheckedTrainings, directory: RunDirectory, place: RunDirectory, console: Console
    ) -> ContextManager[PreparedTrainings]:
        notes = _notes_on_configs(checked.roster)
        return prepared_trainings(checked, directory, place, console, prepare=prepare_all, notes=notes)

    def settled(self, prepared: PreparedTrainings, settings: Settings) -> Settings:
        return prepared.checked.settings

    def rows(self, prepared: PreparedTrainings) -> Sequence[Candidate]:
        roster = prepared.checked.roster
        rows: List[Candidate] = []
        for name, candidate in roster.given.items():
            files = {file.path: file.digest for file in roster.data[name].files}
            rows.append(replace(candidate, facts={**facts_of(prepared.preparations[name]), "files": files}))
        return rows

    def meta(self, prepared: PreparedTrainings) -> Mapping[str, Any]:
        return {"removed": sorted(prepared.checked.roster.removed)}

    def code(self, prepared: PreparedTrainings) -> Sequence[str]:
        return prepared.code

    @contextmanager
    def work(self, prepared: PreparedTrainings, store: RunStore, console: Console, *, seed: int) -> Iterator[LoopParts]:
        settings, executor = prepared.checked.settings, prepared.executor
        strategy, directory = prepared.checked.strategy, prepared.directory
        worked = store.meta().working_seconds
        remaining = outlook(strategy, executor, seed=seed, worked=worked, max_hours=settings.max_hours)
        console.print(f"Training {executor.describe()}.", highlight=False, soft_wrap=True)
        with (
            told_of_jobs(executor, directory, console),
            watching(settings, directory, console, remaining=remaining) as listener,
        ):
            yield LoopParts(
                strategy=strategy,
                evaluator=prepared.evaluator(),
                executor=executor,
                listener=Listeners([listener, prepared.metric_names(console)]),
                shared_splits=settings.splits == "shared",
                max_hours=settings.max_hours,
            )

    def summary(self, prepared: PreparedTrainings, history: History, decision: Decision, meta: Meta) -> Dict[str, Any]:
        settings = prepared.checked.settings
        strategy = settings.strategy_params()
        about = {
            "metric": settings.scored_by.typed,
            "strategy": strategy,
            "belief": strategy["belief"],
            "splits": settings.splits,
            "score": settings.score,
            "scored_on": scored_on(prepared.pool.official, prepared.checked.roster.division),
            "seed": meta.seed,
        }
        return summarise(history, decision, about)

    def conclude(self, prepared: PreparedTrainings, history: History, decision: Decision) -> None:
        may_continue = decision.best is None or decision.stopped_by in UNDECIDED
        if prepared.checked.settings.keep == "best" and not may_continue:
            sign = prepared.checked.settings.scored_by.sign
            BestModels(prepared.directory, sign).keep_only([decision.best], history)


Prepare = Callable[..., Dict[str, Preparation]]  # with the arguments of `prepare_all`


@contextmanager
def prepared_trainings(
    checked: CheckedTrainings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
    *,
    prepare: Prepare,
    notes: Iterable[str] = (),
) -> Iterator[PreparedTrainings]:
    """Implement `SelectionFamily.prepared`. `notes` are printed before the first model is built."""
    settings, roster = checked.settings, checked.roster
    packages = packages_of(settings, roster)
    built = importing(settings.include_package, lambda: build_executor(settings, directory, packages=packages))
    with closing(built) as executor:
        check_gpus(roster.given, executor)
        room = num_workers("auto", settings.threads_per_worker)
        if isinstance(executor, ProcessExecutor) and executor.slots > room and not executor.gives_devices:
            crowded = (
                f"--workers {executor.slots} exceeds the {room} runs that this machine's cores can make at full speed."
            )
            notes = [crowded, *notes]
        for note in notes:
            console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
        known = _known(roster)
        fresh = {
            name: candidate
            for name, candidate in roster.given.items()
            if name not in known or not vectors_are_there(known[name])
        }
        if fresh:
            known.update(prepare(fresh, roster, settings, directory, place, console))
            _check_data(roster)
            check_same_pool({name: known[name].pool for name in roster.given})
        taking_part = {name: known[name] for name in roster.given}
        settings = with_metric(settings, roster.given, taking_part, console)
        yield PreparedTrainings(replace(checked, settings=settings), directory, executor, known)


def _notes_on_configs(roster: Roster) -> Iterator[str]:
    configs = {name: dict(candidate.config) for name, candidate in roster.given.items()}
    for names in equal_candidates(configs):
        yield (
            f"the configs of {', '.join(names[:-1])} and {names[-1]} are equal apart from seeds, so no number of runs "
            "separates these candidates. Keep them for an A/A test; otherwise correct or remove one."
        )
    seeded = [name for name, config in configs.items() if any(key in config for key in SEED_KEYS)]
    if seeded:
        yield f"every run gets its own seeds, which replace the seeds in the config of {', '.join(seeded)}."
    for name, config in configs.items():
        if is_program(config):
            yield from (f"{name}: {note}" for note in notes_on_program(config, roster.division))


def _known(roster: Roster) -> Dict[str, Preparation]:
    """Return the preparations in the store, by candidate. The data of given candidates have been checked, so they get
    their current fingerprint, which older stores computed from names."""
    known = {name: preparation_of(candidate.facts) for name, candidate in roster.stored.items()}
    for name in roster.given.keys() & known.keys():
        pool = replace(known[name].pool, data=roster.data[name].fingerprint)
        known[name] = replace(known[name], pool=pool)
    return known


def _check_data(roster: Roster) -> None:
    """Refuse data that changed while the candidates were being checked."""
    for name, mark in roster.data.items():
        try:
            found_again(mark, {})
        except (DataChangedError, OSError) as error:
            raise DataError(
                f"candidate '{name}': {', '.join(map(str, mark.data_paths))} changed during the check. Run the command "
                "again once the files are complete."
            ) from error


TRAININGS = Trainings()


select = partial(run_selection, TRAININGS)
"""Select the best of several candidates, or resume a selection. The parameters are those of `run_selection`."""
