"""`fiesta confirm`: fresh runs of the winner of a selection and its rivals, as a selection of their own.

The number of runs is fixed before the first of them, so this is equal allocation with a fixed budget.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Mapping, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.choosing.strategy import Decision, build_strategy
from fiesta_allennlp.confirming.confirm_settings import NUM_FRESH_RUNS, ConfirmSettings
from fiesta_allennlp.confirming.confirmation import Confirmation, ConfirmationPlan
from fiesta_allennlp.core.choice_settings import SHARED
from fiesta_allennlp.core.directory import RunDirectory, is_at_work
from fiesta_allennlp.core.errors import ConfigError, StoreError, did_you_mean, full_command, join_some
from fiesta_allennlp.core.files import write_json_file
from fiesta_allennlp.core.options import deciding_options, flag, settings_to_json
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.core.registry import packages_named_in_errors
from fiesta_allennlp.selecting.loop import Display
from fiesta_allennlp.selecting.objections import find_questions
from fiesta_allennlp.selecting.provenance import changed_code, check_current_directory, describe_environment
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, SeenLead
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import judge
from fiesta_allennlp.selecting.session import StoredState, run_selection
from fiesta_allennlp.selecting.store import Meta, open_for_reading
from fiesta_allennlp.selecting.workspace import has_selection


def read_confirmations(directory: RunDirectory) -> Tuple[Confirmation, ...]:
    """Return the confirmations in the directory of a selection, in order. One that has not begun its first run is left
    out. Nothing is locked or changed."""
    confirmations = (read_confirmation(directory.confirmation(number)) for number in directory.confirmation_numbers)
    return tuple(confirmation for confirmation in confirmations if confirmation is not None)


def read_confirmation(directory: RunDirectory) -> Optional[Confirmation]:
    """Return the confirmation that is itself in a directory; None if it has not begun its first run."""
    with open_for_reading(directory) as store:
        meta = store.meta()
        if not meta.is_started:
            return None
        settings = meta.to_settings(Settings)
        history = store.history(max_failures=settings.max_failures)
    running = is_at_work(directory, meta.environments)
    result = Result.from_decision(
        history,
        Decision(best=None, questions=tuple(find_questions(history, settings.allow))),
        settings.scored_by,
        strategy=settings.strategy_params(),
        splits=settings.splits,
        seed=str(meta.seed),
        running=running,
        directory=directory.root,
    )
    return Confirmation.from_result(result)


@dataclass(frozen=True)
class FinishedSelection:
    """A selection that is not running, as its store has it."""

    directory: RunDirectory
    meta: Meta
    settings: Settings
    candidates: Mapping[str, Candidate]
    result: Result

    @classmethod
    def read(cls, root: Path, allowed: Collection[str] = ()) -> "FinishedSelection":
        """Read a selection, with further names that are `allowed`. Refuse what cannot be confirmed: tables, documents,
        and selections at work."""
        directory = _check_directory(root)
        with open_for_reading(directory) as store:
            meta, candidates = store.meta(), {candidate.name: candidate for candidate in store.candidates()}
            _check_kind(meta, root)
            settings = meta.to_settings(Settings)
            history = store.history(max_failures=settings.max_failures)
        with packages_named_in_errors(settings.include_package):
            strategy = build_strategy(settings, list(candidates), minimise=settings.scored_by.minimise)
        allowed = (*settings.allow, *allowed)
        decision = judge(history, strategy.recommend(history), strategy, allowed=allowed)
        result = Result.from_decision(history, decision, settings.scored_by)
        return cls(directory, meta, settings, candidates, result)

    def plan(self, options: ConfirmSettings) -> ConfirmationPlan:
        """Return what a confirmation with these options fixes. Refuse unknown rivals."""
        winner, is_paired = self.result.leader, self.settings.splits == SHARED
        if winner is None or self.result.rival is None:
            raise ConfigError(
                f"{self.directory.root}: no candidate leads another one yet, so there is nothing to confirm. Continue "
                f"with {full_command('select')} --recover."
            )
        if self.result.questions:
            raise ConfigError(f"{self.directory.root}: {' '.join(self.result.questions)}")
        rivals = [self._find_rival(name, winner.name) for name in dict.fromkeys(options.against)] or [self.result.rival]
        sign = self.result.parsed_metric.sign
        leads = tuple(SeenLead.of(winner, rival, sign=sign, is_paired=is_paired) for rival in rivals)
        proposed = [lead.num_runs_for_claim(num_rivals=len(leads)) for lead in leads]
        num_runs = options.runs or (NUM_FRESH_RUNS if None in proposed else max(filter(None, proposed)))
        return ConfirmationPlan(
            winner.name,
            leads,
            num_runs,
            is_paired,
            seconds=sum(candidate.mean_seconds or 0.0 for candidate in (winner, *rivals)),
            num_runs_before=self.result.num_evaluations,
            seconds_before=self.result.seconds,
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

    def begin(
        self,
        plan: ConfirmationPlan,
        *,
        seed: Optional[int],
        resources: Mapping[str, Any],
        console: Console,
        display: Display,
    ) -> RunDirectory:
        """Make the fresh runs of a plan in a directory of their own, and return it."""
        confirmations = read_confirmations(self.directory)
        if confirmations and not confirmations[-1].is_over:
            command = f"{full_command('confirm')} {self.directory.root} --recover"
            raise StoreError(f"{confirmations[-1].result.directory} is not finished. Continue it: {command}")
        if seed is not None and str(seed) in {self.meta.seed, *(entry.result.seed for entry in confirmations)}:
            raise ConfigError(f"--seed {seed} would repeat runs that exist. Use another one, or none.")
        files = sorted({file for name in plan.names for file in type_of(self.candidates[name].config).code})
        environment = describe_environment(self.settings.include_package, files)
        for name in changed_code(self.meta.environments, environment):
            console.print(f"Note: the code of {name} has changed since the selection.")
        begun = [n for n in self.directory.confirmation_numbers if has_selection(self.directory.confirmation(n))]
        directory = self.directory.confirmation(1 + max(begun, default=0))
        candidates = tuple(self.candidates[name] for name in plan.names)
        beginning = StoredState(candidates=candidates, history=History(plan.names))
        settings = self.settings_for(plan, seed=seed, resources=resources)
        run_selection(
            ConfirmationSelection, settings, directory.root, console=console, display=display, beginning=beginning
        )
        return directory

    def settings_for(self, plan: ConfirmationPlan, *, seed: Optional[int], resources: Mapping[str, Any]) -> Settings:
        """Return the settings of the selection for the fresh runs, with other `resources`."""
        fixed: Dict[str, Any] = {
            **dict.fromkeys(deciding_options(Settings, "confidence")),
            **dict.fromkeys(("preset", "points", "study", "top", "max_hours")),
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
    if meta.kind == ConfirmationSelection.name:
        raise ConfigError(f"{root} is a confirmation itself. Pass the directory of its selection, {root.parent}.")
    if meta.kind != TrainingSelection.name:
        raise ConfigError(f"{root}: `documents` made the selection, and only one with training runs can be confirmed.")
    if not meta.is_started:
        raise StoreError(f"{root}: the selection has not begun its first run, so there is nothing to confirm.")
    check_current_directory(meta.environments)


@dataclass
class ConfirmationSelection(TrainingSelection):
    """The fresh runs. The candidates are those of the selection, with its configs exactly as stored, and equal data."""

    name = "confirmation"

    @classmethod
    def load(cls, settings: Settings, stored: StoredState, *, min_count: int) -> Mapping[str, Candidate]:
        return {candidate.name: candidate for candidate in stored.candidates}

    def conclude(self, history: History, result: Result) -> None:
        super().conclude(history, result)
        content = Confirmation.from_result(result).content()
        write_json_file(self.directory.confirmation_json, content, indent=2, allow_nan=False)


def resume_confirmation(
    options: ConfirmSettings, resources: Mapping[str, Any], console: Console, display: Display
) -> RunDirectory:
    """Continue the latest confirmation of the selection in a directory, and return its own directory."""
    for name in ("runs", "against", "seed"):
        if getattr(options, name):
            raise ConfigError(f"{flag(name)} was fixed when the confirmation began. Remove it, or --recover.")
    root = options.directory
    numbers = _check_directory(root).confirmation_numbers
    if not numbers:
        raise StoreError(f"{root} has no confirmation to continue. Begin one: {full_command('confirm')} {root}")
    directory = RunDirectory(root).confirmation(numbers[-1])
    run_selection(ConfirmationSelection, resources, directory.root, console=console, display=display, recover=True)
    return directory
