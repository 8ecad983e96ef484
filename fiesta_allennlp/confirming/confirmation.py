"""What fresh runs say about the winner of a selection: a t-test for each rival.

The number of fresh runs is fixed beforehand, and they choose nothing, so the textbook tests and intervals hold for
them. They do not hold for the runs of the selection, whose scores decided who leads and when it stopped.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Collection, Dict, List, Literal, Mapping, Optional, Tuple

import numpy as np
from rich.console import Console

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.choosing.strategy import Decision, build_strategy
from fiesta_allennlp.choosing.t_tests import CONFIRMATION_LEVEL, INTERVAL_LEVEL, Interval, TTest, holm, run_to_run_sd
from fiesta_allennlp.confirming.confirm_settings import NUM_FRESH_RUNS, ConfirmSettings
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
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, SeenLead, paired_differences
from fiesta_allennlp.selecting.results.candidate_table import Printable
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import judge
from fiesta_allennlp.selecting.session import StoredState, run_selection
from fiesta_allennlp.selecting.store import Meta, open_for_reading
from fiesta_allennlp.selecting.workspace import has_selection
from fiesta_allennlp.version import __version__

FORMAT = 2
"""The number of the format of `confirmation.json`, raised where a key is renamed or removed."""

Verdict = Literal["confirmed", "not confirmed", "contradicted"]
"""Whether fresh runs confirm that the winner is better than a rival, or that the rival is better."""


@dataclass(frozen=True, repr=False)
class ConfirmationPlan(Printable):
    """What a confirmation fixes before its first run, and what the selection saw of the winner and its rivals.
    `is_paired` says whether the candidates share random splits. `seconds` is the time of one run of each candidate, 0
    if it is unknown; `num_runs_before` and `seconds_before` are those of the selection."""

    winner: str
    leads: Tuple[SeenLead, ...]
    num_runs: int
    is_paired: bool
    seconds: float = 0.0
    num_runs_before: int = 0
    seconds_before: float = 0.0

    @property
    def names(self) -> Tuple[str, ...]:
        return (self.winner, *(lead.rival for lead in self.leads))

    def power(self, lead: SeenLead, num_runs: int, *, share: float = 1.0) -> Optional[float]:
        return lead.power(num_runs, share=share, num_rivals=len(self.leads))


@dataclass(frozen=True)
class FreshComparison:
    """The winner compared with one rival on fresh runs.

    Attributes:
        num_pairs: the shared splits of a paired t-test; 0 for Welch's test, which is used where splits are not shared,
            or failed runs left fewer than three pairs.
        difference: winner minus rival. `interval` is its interval at 1 - 0.05 / k for k rivals: by Bonferroni's
            method, the k intervals together have 95%. A confirmed one may contain 0, because Holm's method is sharper.
        p_value: one-sided, for a better winner, or for a better rival where that is the verdict; by Holm's method.
        lead_in_sds: by how many run-to-run sds the winner is better.

    All numbers but counts are None if a candidate has fewer scores than planned.
    """

    rival: str
    verdict: Verdict = "not confirmed"
    num_pairs: int = 0
    difference: Optional[float] = None
    interval: Optional[Interval] = None
    p_value: Optional[float] = None
    lead_in_sds: Optional[float] = None


@dataclass(frozen=True, repr=False)
class Confirmation(Printable):
    """A confirmation: the `result` of its selection with a fixed budget, whose first candidate is the winner to confirm
    and whose others are the rivals. `comparisons` has an entry for each rival once all runs have ended, and before that
    none."""

    result: Result
    num_runs: int
    comparisons: Tuple[FreshComparison, ...]

    @classmethod
    def from_result(cls, result: Result) -> "Confirmation":
        num_runs = result.strategy["budget"] // len(result.candidates)
        is_over = len(result.active) < 2 or all(c.num_evaluations >= num_runs for c in result.active)
        comparisons = compare_with_rivals(result, num_runs) if is_over else ()
        if result.questions:
            comparisons = tuple(replace(comparison, verdict="not confirmed") for comparison in comparisons)
        return cls(result, num_runs, comparisons)

    @classmethod
    def read(cls, directory: RunDirectory) -> "Optional[Confirmation]":
        """Return the confirmation that is itself in a directory; None if it has not begun its first run. Nothing is
        locked or changed."""
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
        return cls.from_result(result)

    @classmethod
    def read_all(cls, directory: RunDirectory) -> "Tuple[Confirmation, ...]":
        """Return the confirmations in the directory of a selection, in order, without one that has not begun."""
        return tuple(filter(None, (cls.read(directory.confirmation(n)) for n in directory.confirmation_numbers)))

    @property
    def winner(self) -> str:
        return self.result.candidates[0].name

    @property
    def is_over(self) -> bool:
        """True once no further run follows."""
        return bool(self.comparisons)

    @property
    def verdicts(self) -> Dict[str, Verdict]:
        """The verdict about each rival; empty until all runs have ended."""
        return {comparison.rival: comparison.verdict for comparison in self.comparisons}

    @property
    def verdict(self) -> Optional[Verdict]:
        """The verdict about all rivals together: confirmed against each of them, or contradicted by one. None until
        all runs have ended."""
        verdicts = set(self.verdicts.values())
        if "contradicted" in verdicts:
            return "contradicted"
        return next(iter(verdicts), None) if len(verdicts) < 2 else "not confirmed"

    def content(self) -> Dict[str, Any]:
        """Return the content of `confirmation.json`."""
        return {
            "format": FORMAT,
            "version": __version__,
            "directory": str(self.result.directory),
            "winner": self.winner,
            "num_runs": self.num_runs,
            "num_finished": self.result.num_evaluations,
            "running": self.result.running,
            "is_over": self.is_over,
            "verdict": self.verdict,
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
        }


def compare_with_rivals(result: Result, num_runs: int) -> Tuple[FreshComparison, ...]:
    """Compare the first candidate of a result with each other one. One with fewer scores than `num_runs` has no test,
    and counts as a rival too."""
    winner, *rivals = result.candidates
    sign, is_paired = result.parsed_metric.sign, result.splits == SHARED
    all_differences = [paired_differences(winner, rival, is_paired=is_paired) for rival in rivals]
    tests: List[Optional[TTest]] = []
    for rival, differences in zip(rivals, all_differences, strict=True):
        test = TTest.paired(differences) if len(differences) else None
        if min(winner.num_evaluations, rival.num_evaluations) < num_runs:
            test = None
        elif test is None:
            test = TTest.welch(np.array(winner.scores), np.array(rival.scores))
        tests.append(test)
    of_winner, of_rival = (holm([test.p_value(s) if test else 1.0 for test in tests]) for s in (sign, -sign))
    comparisons = [FreshComparison(rival.name) for rival in rivals]
    for k, test in enumerate(tests):
        if test is None:
            continue
        is_confirmed, is_contradicted = of_winner[k] <= CONFIRMATION_LEVEL, of_rival[k] <= CONFIRMATION_LEVEL
        sd = run_to_run_sd(all_differences[k], [np.array(candidate.scores) for candidate in (winner, rivals[k])])
        comparisons[k] = FreshComparison(
            rivals[k].name,
            "confirmed" if is_confirmed else "contradicted" if is_contradicted else "not confirmed",
            num_pairs=len(all_differences[k]),
            difference=test.difference,
            interval=test.interval(1 - (1 - INTERVAL_LEVEL) / len(rivals)),
            p_value=of_rival[k] if is_contradicted else of_winner[k],
            lead_in_sds=sign * test.difference / sd if sd else None,
        )
    return tuple(comparisons)


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
        return cls(directory, meta, settings, candidates, Result.from_decision(history, decision, settings.scored_by))

    def plan(self, options: ConfirmSettings) -> ConfirmationPlan:
        """Return what a confirmation with these options fixes. Refuse unknown rivals."""
        winner, is_paired = self.result.leader, self.settings.splits == SHARED
        if winner is None or self.result.rival is None:
            raise ConfigError(
                f"{self.directory.root}: no candidate leads another one yet, so there is nothing to confirm. Continue "
                f"with {full_command('select')} -s {self.directory.root} --recover."
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
        confirmations = Confirmation.read_all(self.directory)
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

    @staticmethod
    def resume(
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
