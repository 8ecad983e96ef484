"""Search, then decide: many configs run once, then a selection among the best. `fiesta search` calls this module.

The first stage has a run directory of its own in `screening/`: its scores were selected on, so no posterior may see
them."""

import time
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Tuple, Type

import numpy as np
from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import CandidateError, ConfigError, StoreError, combined_error, full_command
from fiesta_allennlp.core.names import NUMBERED_PREFIX, values_text
from fiesta_allennlp.core.records import Candidate, Decision, History
from fiesta_allennlp.core.seeding import SEARCH_STREAM, fresh_seed, replay_rng, second_stage_seed
from fiesta_allennlp.searches.screener import Screener, failed_configs
from fiesta_allennlp.searches.search_settings import MIN_FINALISTS, SearchSettings, stored_search
from fiesta_allennlp.searches.searchers import Points
from fiesta_allennlp.searches.searchers.base import build_searcher
from fiesta_allennlp.searches.space import PointPool, pool_from_points, read_space
from fiesta_allennlp.selection.candidate_result import CandidateResult
from fiesta_allennlp.selection.jsonnet import cached_evaluations
from fiesta_allennlp.selection.listener import Listener
from fiesta_allennlp.selection.loop import SelectionLoop
from fiesta_allennlp.selection.metrics import Metric, check_metric_sign
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.progress import ProgressDisplay
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.session import StoredState, dry_run, run_selection
from fiesta_allennlp.selection.settings import merge_settings
from fiesta_allennlp.selection.store import Meta, RunStore, open_for_reading
from fiesta_allennlp.selection.strategy_building import build_strategy, build_with_packages
from fiesta_allennlp.selection.texts import duration_text, number_text
from fiesta_allennlp.selection.workspace import already_exists_error, clear_directory, has_selection
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.candidate_values import CandidateSpec, parse_candidate
from fiesta_allennlp.trainings.candidates import (
    check_variables_are_read,
    compare_with_store,
    load_candidate,
    take_candidate_snapshot,
)
from fiesta_allennlp.trainings.config import first_difference
from fiesta_allennlp.trainings.listeners import reporting_jobs
from fiesta_allennlp.trainings.pool import Preparation
from fiesta_allennlp.trainings.select import TrainingSelection
from fiesta_allennlp.trainings.settings import Settings, TrainingSettings


@dataclass(frozen=True)
class ScreenedConfig(CandidateResult):
    """A config that ran once, with the `values` of its point."""

    values: str = ""

    @property
    def score(self) -> Optional[float]:
        """The score of its run; None if that failed."""
        return self.mean


@dataclass(frozen=True)
class ScreeningResult(Result):
    """The content of `screening/selection.json`: the configs that ran, in the order in which they are finalists. Those
    that failed come last."""

    candidates: Tuple[ScreenedConfig, ...]
    candidate_class: ClassVar[Type[CandidateResult]] = ScreenedConfig

    @property
    def failed_from_the_start(self) -> bool:
        """Whether all runs failed, so that the template may still be corrected."""
        return self.stopped_by == "failures" and not self.num_evaluations


INPUTS_KEY = "inputs"
"""The key of a point's inputs in the facts of a candidate."""

MIN_POINTS = 3


@dataclass
class ScreeningSelection(TrainingSelection):
    """Candidates are the points of a pool. A few of them run, each once, scored on the validation set."""

    name = "screening"
    settings_class = SearchSettings
    candidates_option = "template"

    settings: SearchSettings
    strategy: Screener

    @classmethod
    def check(cls, settings: TrainingSettings, stored: StoredState, *, allow_removed: bool) -> "ScreeningSelection":
        assert isinstance(settings, SearchSettings)
        if settings.metric is not None and not stored.candidates:
            check_metric_sign(settings.metric)
        searcher = build_with_packages(settings.include_package, lambda: build_searcher(settings.searcher_params()))
        candidates = build_with_packages(
            settings.include_package,
            lambda: _load_stored(stored, settings) if stored.candidates else _draw_new(settings, searcher.most_points),
        )
        inputs = np.array([candidate.facts[INPUTS_KEY] for candidate in candidates.values()])
        candidate_set = compare_with_store(candidates, stored, allow_removed=False, division=settings.division)
        if searcher.num_objectives > 1 and settings.second_objective is None:
            raise ConfigError(
                f"--searcher {settings.searcher_params()['type']} is for two objectives. Add --second-objective "
                "seconds, or use gp_ei, graph_ei, graph_eif or random."
            )
        num_configs = min(settings.num_configs or len(candidates), len(candidates))
        _check_second_stage(settings, settings.num_finalists(num_configs), next(iter(candidates.values())))
        screener = Screener(
            searcher,
            Points(inputs),
            num_configs=num_configs,
            sign=settings.scored_by.sign,
            minimises_seconds=settings.second_objective is not None,
        )
        return cls(settings, stored.directory, candidate_set, screener)

    def notes(self) -> Iterator[str]:
        if self.corrected:
            yield "the template was changed, so failed runs start again. No run had finished."

    def prepare(
        self, candidates: Mapping[str, Candidate], directory: RunDirectory, console: Console
    ) -> Dict[str, Preparation]:
        """Build, of all candidates that read their data and vectors alike, the first one alone: a model that cannot be
        built is a failed run later."""
        groups: Dict[str, List[str]] = {}
        for name, candidate in candidates.items():
            groups.setdefault(type_of(candidate.config).preparation_key, []).append(name)
        built = super().prepare({names[0]: candidates[names[0]] for names in groups.values()}, directory, console)
        copies = {name: replace(built[same[0]], num_parameters=None) for same in groups.values() for name in same[1:]}
        return {**built, **copies}

    def further_facts(self, name: str) -> Dict[str, Any]:
        return {INPUTS_KEY: self.candidate_set.active[name].facts[INPUTS_KEY]}

    @contextmanager
    def open_loop(self, store: RunStore, console: Console, *, seed: int) -> Iterator[SelectionLoop]:
        clear_directory(RunDirectory(self.directory.root.parent), keep=self.directory.root)
        settings, screener = self.settings, self.strategy
        console.print(
            f"Screening {screener.num_configs} of {len(screener.points)} configs, {self.executor.describe()}."
        )
        num_before = len(store.history(max_failures=settings.max_failures).evaluations)
        display = ScreeningProgress(
            console, settings.scored_by, num_configs=screener.num_configs, num_before=num_before
        )
        listeners: List[Listener] = [display]
        with reporting_jobs(self.executor, self.directory, console), display:
            yield SelectionLoop(
                strategy=screener,
                evaluator=self.evaluator(),
                executor=self.executor,
                listeners=listeners,
                store=store,
                directory=self.directory,
                seed=seed,
                max_failures=settings.max_failures,
                shared_splits=False,
                max_hours=settings.max_hours,
            )

    def result(self, history: History, decision: Decision, *, seed: str) -> ScreeningResult:
        """Return the configs that ran, in the order in which they are finalists; those that failed last."""
        ranked_names = (*self.strategy.rank_configs(history), *failed_configs(history))
        candidates = self.candidate_set.active
        configs = (
            replace(ScreenedConfig.from_history(history, decision, name), values=values_text(candidates[name].source))
            for name in ranked_names
        )
        metric = self.settings.scored_by.option_text
        return ScreeningResult(
            decision.best, decision.stopped_by, metric, tuple(configs), score="validation", seed=seed
        )

    def conclude(self, history: History, decision: Decision) -> None:
        """Keep nothing, because `keep` is about the second stage."""


class ScreeningProgress(ProgressDisplay):
    """A line for every run: its score, how many have run, the best so far, and about how long the others take."""

    def __init__(self, console: Console, metric: Metric, *, num_configs: int, num_before: int) -> None:
        super().__init__(console, metric.name, describe_forecast=self._status_text)
        self._live = None  # a table would have a row for every point
        self._sign, self._num_configs, self._num_before = metric.sign, num_configs, num_before

    def _status_text(self, history: History) -> str:
        num_finished, best = len(history.evaluations), max(history.evaluations, key=lambda run: self._sign * run.score)
        seconds_per_run = (time.monotonic() - self._start) / max(1, num_finished - self._num_before)
        time_left = f"; about {duration_text(round(seconds_per_run * (self._num_configs - num_finished)))} left"
        text = f"{num_finished} of {self._num_configs}, best {number_text(best.score)}, {best.request.candidate}"
        return text + (time_left if self._num_configs > num_finished else "")


def _draw_new(settings: SearchSettings, max_points: float) -> Dict[str, Candidate]:
    """Return the candidates that a template is at the points of the pool, by name."""
    pool, template = _read_pool(settings), Path(settings.template)
    if len(pool.points) < MIN_POINTS:
        raise ConfigError(f"a search needs at least {MIN_POINTS} points but got {len(pool.points)}.")
    if len(pool.points) > max_points:
        raise ConfigError(
            f"--searcher {settings.searcher_params()['type']} compares all pairs of points, so it supports at most "
            f"{max_points:,} points but got {len(pool.points):,}. Use --searcher random, or reduce --pool or --configs."
        )
    specs = [
        CandidateSpec(template, point, f"{NUMBERED_PREFIX}{row}") for row, point in enumerate(pool.points, start=1)
    ]
    load_candidate(specs[0], settings)  # reports an error that all of them share only once
    candidates: Dict[str, Candidate] = {}
    refusals: Dict[str, str] = {}
    with cached_evaluations([template, settings.overrides], [point.variables for point in pool.points]):
        for spec, inputs in zip(specs, pool.inputs.tolist(), strict=True):
            try:
                candidates[spec.name] = replace(load_candidate(spec, settings), facts={INPUTS_KEY: inputs})
            except CandidateError as error:
                refusals[error.label] = error.reason
        if refusals:
            raise combined_error(refusals, noun="points of the space are invalid")
        check_variables_are_read(specs, settings.overrides)
    return candidates


def _read_pool(settings: SearchSettings) -> PointPool:
    if settings.space is None:
        return pool_from_points(settings.points)
    assert settings.seed is not None  # every new search has one
    return read_space(settings.space).draw_pool(settings.num_drawn_points, replay_rng(settings.seed, SEARCH_STREAM, 0))


def _load_stored(stored: StoredState, settings: SearchSettings) -> Dict[str, Candidate]:
    """Return the candidates of the store. Make the first one again, so that a changed template is noticed, and then all
    of them."""
    first, *others = stored.candidates
    rebuilt = _rebuild(first, settings)
    if first_difference(first.config, rebuilt.config) is not None:
        others = [_rebuild(candidate, settings) for candidate in others]
    return {candidate.name: candidate for candidate in (rebuilt, *others)}


def _rebuild(candidate: Candidate, settings: SearchSettings) -> Candidate:
    spec = parse_candidate(candidate.source, name=candidate.name)
    return replace(load_candidate(spec, settings), facts=candidate.facts)


def _check_second_stage(settings: SearchSettings, num_finalists: int, example_candidate: Candidate) -> None:
    """Check the second stage now, not after hours."""
    stage = settings.second_stage_settings()
    names = [f"finalist {index}" for index in range(1, num_finalists + 1)]
    build_with_packages(
        settings.include_package, lambda: build_strategy(stage, names, minimise=stage.scored_by.minimise)
    )
    take_candidate_snapshot(load_candidate(parse_candidate(example_candidate.source), stage), stage.division)


STOPPED_BY_BUDGET = "budget"
"""`stopped_by` of a screening that ran all its configs."""


@dataclass(frozen=True)
class StageResults:
    """The results of both stages. `selection` is None of a search that stopped in the first stage."""

    screening: ScreeningResult
    selection: Optional[Result] = None

    @property
    def last_result(self) -> Result:
        """The result of the stage that ran last."""
        return self.selection or self.screening


def search(
    options: Mapping[str, Any], root: Path, *, console: Console, recover: bool = False, force: bool = False
) -> StageResults:
    """Screen many configs, then select among the best; or resume in the stage that was interrupted.

    `options` are settings that are not defaults. `force` deletes what is in the directory, once the new search has
    passed all checks."""
    directory = RunDirectory(root)
    if has_selection(directory) and not force:  # also refuses a directory in which a selection is running
        if not recover:
            raise already_exists_error(directory)
        return _resume_selecting(options, directory, console)
    if not recover and options.get("seed") is None:
        options = {**options, "seed": fresh_seed()}
    run_selection(ScreeningSelection, options, directory.screening.root, console=console, recover=recover, force=force)
    screening = ScreeningResult.read(directory.screening.root)
    if screening.stopped_by != STOPPED_BY_BUDGET:
        return StageResults(screening)
    return _select_among_finalists(screening, directory, console)


def _select_among_finalists(screening: ScreeningResult, directory: RunDirectory, console: Console) -> StageResults:
    first_stage = _read_first_stage(directory)
    settings = stored_search(first_stage.meta)
    source_by_name = {candidate.name: candidate.source for candidate in first_stage.candidates}
    ranked = [config.name for config in screening.candidates if config.score is not None]
    finalists = ranked[: settings.num_finalists(len(screening.candidates))]
    if len(finalists) < MIN_FINALISTS:
        return StageResults(replace(screening, stopped_by="failures"))
    console.print(f"Selecting among the {len(finalists)} best configs.")
    selection_settings = replace(
        settings.second_stage_settings(),
        candidates=tuple(f"{name}={source_by_name[name]}" for name in finalists),
        seed=second_stage_seed(int(str(first_stage.meta.seed))),
        max_hours=_hours_left(settings.max_hours, first_stage.meta),
    )
    return StageResults(
        screening, run_selection(TrainingSelection, selection_settings, directory.root, console=console)
    )


def _resume_selecting(options: Mapping[str, Any], directory: RunDirectory, console: Console) -> StageResults:
    """Resume the second stage."""
    if not directory.screening.store.is_file():
        raise StoreError(
            f"{directory.root} has no screening. If {full_command('select')} began it, resume it with that."
        )
    meta = _read_first_stage(directory).meta
    search_only = sorted(
        merge_settings(options, settings_class=SearchSettings).keys() - {f.name for f in fields(Settings)}
    )
    if search_only:
        raise ConfigError(f"the screening in {directory.root} is over, so {flag(search_only[0])} can no longer change.")
    options = {**options, "max_hours": _hours_left(options["max_hours"], meta)} if "max_hours" in options else options
    selection = run_selection(TrainingSelection, options, directory.root, console=console, recover=True)
    return StageResults(ScreeningResult.read(directory.screening.root), selection)


def _hours_left(max_hours: Optional[float], meta: Meta) -> Optional[float]:
    return None if max_hours is None else max(1e-6, max_hours - meta.working_seconds / 3600)


def _read_first_stage(directory: RunDirectory) -> StoredState:
    with open_for_reading(directory.screening) as store:
        return StoredState(directory.screening, store.meta(), tuple(store.candidates()))


@dataclass(frozen=True)
class SearchPlan:
    """The result of a dry run, with the values of some points and the command of a first config that is a program."""

    num_points: int
    num_configs: int
    num_finalists: int
    examples: Tuple[str, ...]
    prepared: ScreeningSelection
    command: str


NUM_EXAMPLES = 3


def plan_search(settings: SearchSettings, console: Console, directory: RunDirectory) -> SearchPlan:
    """Check everything, and build a model, without writing anything that stays. `directory` is where the search would
    be."""
    if settings.seed is None:
        settings = replace(settings, seed=fresh_seed())
    with dry_run(ScreeningSelection, settings, console) as prepared:
        candidates, num_configs = prepared.candidate_set.active, prepared.strategy.num_configs
        num_finalists = settings.num_finalists(num_configs)
        examples = tuple(values_text(candidate.source) for candidate in list(candidates.values())[:NUM_EXAMPLES])
        name, candidate = next(iter(candidates.items()))
        example_run = directory.screening.evaluation(f"{name}-0")
        command = type_of(candidate.config).example_command(prepared.candidate_set.division, example_run)
        return SearchPlan(len(candidates), num_configs, num_finalists, examples, prepared, command)
