"""`fiesta confirm`: fresh runs of the winner of a selection and its rivals, as a selection of their own.

The number of runs is fixed before the first of them, so this is equal allocation with a fixed budget.
"""

from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple

from rich.console import Console

from fiesta_allennlp.core.defaults import NUM_FRESH_RUNS
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError, did_you_mean, full_command, join_some
from fiesta_allennlp.core.files import write_json_file
from fiesta_allennlp.core.records import Candidate, Decision, History, Request
from fiesta_allennlp.core.seeding import fresh_seed, make_request
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.confirmation import (
    BegunConfirmation,
    Confirmation,
    ConfirmationPlan,
    PlannedRival,
)
from fiesta_allennlp.selection.confirmation_progress import ConfirmationProgress
from fiesta_allennlp.selection.environment import changed_code, check_current_directory, describe_environment
from fiesta_allennlp.selection.loop import SelectionLoop
from fiesta_allennlp.selection.options import deciding_options, settings_to_json
from fiesta_allennlp.selection.progress import ProgressDisplay
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.session import StoredState, run_selection
from fiesta_allennlp.selection.settings import SHARED
from fiesta_allennlp.selection.store import Meta, RunStore, open_for_reading
from fiesta_allennlp.selection.stored_confirmations import read_confirmations
from fiesta_allennlp.selection.strategy_building import build_strategy, packages_named_in_errors
from fiesta_allennlp.selection.texts import names_text
from fiesta_allennlp.selection.workspace import has_selection
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.confirm_settings import ConfirmSettings
from fiesta_allennlp.trainings.pool import preparation_from_facts
from fiesta_allennlp.trainings.select import TrainingSelection
from fiesta_allennlp.trainings.settings import Settings, TrainingSettings


@dataclass(frozen=True)
class FinishedSelection:
    """A selection that is not running, as its store has it."""

    directory: RunDirectory
    meta: Meta
    settings: Settings
    candidates: Mapping[str, Candidate]
    history: History
    result: Result
    confirmations: Tuple[Confirmation, ...]

    @classmethod
    def read(cls, root: Path) -> "FinishedSelection":
        """Read a selection. Refuse what cannot be confirmed: tables, documents, and selections at work."""
        directory = _check_directory(root)
        with open_for_reading(directory) as store:
            meta, candidates = store.meta(), {candidate.name: candidate for candidate in store.candidates()}
            _check_kind(meta, root)
            settings = meta.to_settings(Settings)
            history = store.history(max_failures=settings.max_failures)
        metric = settings.scored_by
        with packages_named_in_errors(settings.include_package):
            strategy = build_strategy(settings, list(candidates), minimise=metric.minimise)
        result = Result.from_decision(history, strategy.recommend(history), metric)
        confirmations = read_confirmations(directory, selection_seed=str(meta.seed))
        return cls(directory, meta, settings, candidates, history, result, confirmations)

    def plan(self, options: ConfirmSettings) -> ConfirmationPlan:
        """Return what a confirmation with these options fixes. Refuse unknown rivals."""
        winner, is_paired = self.result.leader, self.settings.splits == SHARED
        if winner is None or self.result.rival is None:
            raise ConfigError(
                f"{self.directory.root}: no candidate leads another one yet, so there is nothing to confirm. Continue "
                f"with {full_command('select')} --recover."
            )
        rivals = [self._find_rival(name, winner.name) for name in dict.fromkeys(options.against)] or [self.result.rival]
        preparation = preparation_from_facts(self.candidates[winner.name].facts)
        sizes = preparation.pool.targets
        has_share = not self.settings.on_official_splits and sizes.get(self.settings.score)
        return ConfirmationPlan(
            winner=winner.name,
            rivals=tuple(self._plan_rival(winner, rival, is_paired=is_paired) for rival in rivals),
            num_runs=options.runs or NUM_FRESH_RUNS,
            metric=self.result.metric,
            is_paired=is_paired,
            was_decided=self.result.decided,
            selection_seed=str(self.meta.seed),
            test_share=sizes[self.settings.score] / sum(sizes.values()) if has_share else None,
            changed_code=self._changed_code((winner.name, *(rival.name for rival in rivals))),
        )

    def _find_rival(self, name: str, winner: str) -> CandidateResult:
        if name == winner:
            raise ConfigError(f"--against {name}: {name} is the winner itself. Name other candidates.")
        rival = next((c for c in self.result.candidates if c.name == name), None)
        if rival is None:
            hint = did_you_mean(name, self.candidates, max_names=2)
            known = join_some([other for other in self.candidates if other != winner])
            raise ConfigError(f"--against: unknown candidate '{name}'.{hint} Rivals of {winner}: {known}.")
        return rival

    def _plan_rival(self, winner: CandidateResult, rival: CandidateResult, *, is_paired: bool) -> PlannedRival:
        verdicts = (confirmation.verdicts_of(winner.name, rival.name) for confirmation in self.confirmations)
        known = max(filter(None, verdicts), key=len, default=())
        pair = frozenset({winner.name, rival.name})
        num_begun = sum(pair in begun.plan.pairs for begun in self.meta.confirmations)
        earlier = (*known, *(None,) * (num_begun - len(known)))  # the deleted ones came after those that are known
        sign = self.result.parsed_metric.sign
        return PlannedRival.from_selection(winner, rival, sign=sign, is_paired=is_paired, earlier=earlier)

    def _changed_code(self, names: Sequence[str]) -> Tuple[str, ...]:
        files = sorted({file for name in names for file in type_of(self.candidates[name].config).code})
        return tuple(changed_code(self.meta.environments, describe_environment(self.settings.include_package, files)))

    def check_may_begin(self, plan: ConfirmationPlan) -> None:
        """Refuse a second confirmation of a pair, and one beside an unfinished one."""
        command = f"{full_command('confirm')} {self.directory.root}"
        for confirmation in self.confirmations:
            if not confirmation.is_over:
                raise StoreError(
                    f"{confirmation.directory} is not finished: {confirmation.num_finished} of "
                    f"{confirmation.num_planned} runs. Continue it: {command} --recover"
                )
            for pair in confirmation.plan.pairs & plan.pairs:
                raise StoreError(
                    f"{join_some(sorted(pair), ' and ')} were confirmed already, in {confirmation.directory}. Runs "
                    "that are repeated until they please confirm nothing. With --again, every report says that it is "
                    "not the first."
                )
        for begun in self.meta.deleted_confirmations(self.confirmations):
            for pair in begun.plan.pairs & plan.pairs:
                raise StoreError(
                    f"a confirmation of {names_text(sorted(pair))} began at {begun.began}, and its directory is gone. "
                    "Restore it. With --again, every report says that the next one is not the first."
                )

    def next_directory(self) -> RunDirectory:
        """Return the place of a new confirmation, after all that began."""
        begun = [n for n in self.directory.confirmation_numbers if has_selection(self.directory.confirmation(n))]
        return self.directory.confirmation(1 + max(begun, default=0))

    def draw_seed(self, plan: ConfirmationPlan, seed: Optional[int]) -> int:
        """Return a master seed whose runs repeat no split and no seed of earlier runs. Refuse one that would."""
        taken = set(map(_seeds_of, _requests(self.history)))
        for confirmation in self.confirmations:
            taken |= self._planned_seeds(confirmation.plan, int(confirmation.seed))
        for begun in self.meta.deleted_confirmations(self.confirmations):
            taken |= self._planned_seeds(begun.plan, int(begun.seed))
        taken_numbers = {number for numbers in taken for number in numbers}
        while True:
            drawn = fresh_seed() if seed is None else seed
            new_numbers = {number for numbers in self._planned_seeds(plan, drawn) for number in numbers}
            if not new_numbers & taken_numbers:
                return drawn
            if seed is not None:
                raise ConfigError(f"--seed {seed} would repeat runs that exist. Use another one, or none.")

    def _planned_seeds(self, plan: ConfirmationPlan, seed: int) -> "FrozenSet[Tuple[int, ...]]":
        """Return the seeds of the runs of a plan, and of as many runs again, which take the place of failed ones."""
        requests = (
            make_request(seed, name, replicate, shared_splits=plan.is_paired)
            for name in plan.names
            for replicate in range(2 * plan.num_runs)
        )
        return frozenset(map(_seeds_of, requests))

    def settings_for(self, plan: ConfirmationPlan, *, seed: int, resources: Mapping[str, Any]) -> Settings:
        """Return the settings of the selection for the fresh runs, with other `resources`."""
        fixed: Dict[str, Any] = {
            **dict.fromkeys(deciding_options(Settings, "confidence")),
            **dict.fromkeys(("preset", "points", "max_hours")),
            "candidates": tuple(f"{name}={self.candidates[name].source}" for name in plan.names),
            "strategy": "non_adaptive_fb",
            "belief": self.settings.strategy_params()["belief"],
            "budget": plan.num_runs * len(plan.names),
            "seed": seed,
        }
        return Settings.from_layers({**settings_to_json(self.settings), **fixed}, resources)


def _check_directory(root: Path) -> RunDirectory:
    if root.is_file():
        raise ConfigError(
            f"{root} is a table of scores, and nobody here can make its runs. Confirm a selection of "
            f"{full_command('select')}, which knows how its candidates run."
        )
    directory = RunDirectory(root)
    if directory.store.is_file():
        has_selection(directory)  # refuses one that is running
    return directory


def _check_kind(meta: Meta, root: Path) -> None:
    if meta.kind == "confirmation":
        raise ConfigError(f"{root} is a confirmation itself. Pass the directory of its selection, {root.parent}.")
    if meta.kind != TrainingSelection.name:
        raise ConfigError(f"{root}: `documents` made the selection, and only one with training runs can be confirmed.")
    if not meta.is_started:
        raise StoreError(f"{root}: the selection has not begun its first run, so there is nothing to confirm.")
    check_current_directory(meta.environments)


def _requests(history: History) -> List[Request]:
    finished, failed = (
        [outcome.request for outcome in outcomes] for outcomes in (history.evaluations, history.failures)
    )
    return [*finished, *failed, *history.pending]


def _seeds_of(request: Request) -> Tuple[int, ...]:
    return request.split_seed, request.random_seed, request.numpy_seed, request.pytorch_seed


@dataclass
class ConfirmationSelection(TrainingSelection):
    """The fresh runs. The candidates are those of the selection, with its configs exactly as stored, and equal data."""

    name = "confirmation"

    plan: ConfirmationPlan = field(init=False)

    @classmethod
    def check(cls, settings: Settings, stored: StoredState) -> "ConfirmationSelection":
        assert stored.meta.confirmation is not None
        selection = super().check(settings, stored)
        assert isinstance(selection, cls)
        selection.plan = stored.meta.confirmation
        return selection

    @classmethod
    def load(cls, settings: TrainingSettings, stored: StoredState, *, min_count: int) -> Mapping[str, Candidate]:
        return {candidate.name: candidate for candidate in stored.candidates}

    def notes(self) -> Iterator[str]:
        yield from super().notes()
        for name in self.plan.changed_code:
            yield f"the code of {name} has changed since the selection. If that changes scores, select again."

    @contextmanager
    def open_loop(self, store: RunStore, console: Console, *, seed: int) -> Iterator[SelectionLoop]:
        with super().open_loop(store, console, seed=seed) as loop:
            record_beginning(RunDirectory(self.directory.root.parent), self.plan, seed=str(seed))
            yield loop

    @property
    def meta(self) -> Mapping[str, Any]:
        return {**super().meta, "confirmation": asdict(self.plan)}

    def progress(self, console: Console, *, seconds_before: float, seed: int) -> ProgressDisplay:
        return ConfirmationProgress(console, self.read)

    def conclude(self, history: History, decision: Decision) -> None:
        super().conclude(history, decision)
        path, content = self.directory.confirmation_json, self.read(history).content()
        write_json_file(path, content, indent=2, allow_nan=False, default=asdict)

    def read(self, history: History) -> Confirmation:
        """Return what the fresh runs say."""
        return Confirmation.from_history(
            self.plan, history, directory=str(self.directory.root), seed=str(self.settings.seed)
        )


def record_beginning(directory: RunDirectory, plan: ConfirmationPlan, *, seed: str) -> None:
    """Record in a selection that a confirmation began, unless it has the record."""
    with open_for_reading(directory) as stored:
        meta = stored.meta()
    if seed in {begun.seed for begun in meta.confirmations} or meta.seed != plan.selection_seed:
        return
    begun = BegunConfirmation(plan, seed, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    with closing(RunStore(directory, create=False)) as store:
        store.set_meta(confirmations=[asdict(entry) for entry in (*store.meta().confirmations, begun)])


def begin_confirmation(
    selection: FinishedSelection,
    plan: ConfirmationPlan,
    *,
    seed: Optional[int],
    resources: Mapping[str, Any],
    console: Console,
) -> RunDirectory:
    """Make the fresh runs of a plan in a directory of their own, and return it."""
    directory = selection.next_directory()
    master_seed = selection.draw_seed(plan, seed)
    settings = selection.settings_for(plan, seed=master_seed, resources=resources)
    candidates = tuple(selection.candidates[name] for name in plan.names)
    beginning = StoredState(meta=Meta(confirmation=plan), candidates=candidates, history=History(plan.names))
    run_selection(ConfirmationSelection, settings, directory.root, console=console, beginning=beginning)
    return directory


def resume_confirmation(options: ConfirmSettings, resources: Mapping[str, Any], console: Console) -> RunDirectory:
    """Continue the latest confirmation of the selection in a directory, and return its own directory."""
    options.check_can_resume()
    root = options.directory
    numbers = _check_directory(root).confirmation_numbers
    if not numbers:
        raise StoreError(f"{root} has no confirmation to continue. Begin one: {full_command('confirm')} {root}")
    directory = RunDirectory(root).confirmation(numbers[-1])
    run_selection(ConfirmationSelection, resources, directory.root, console=console, recover=True)
    return directory
