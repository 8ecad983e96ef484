"""Search, then decide: many configs run once, then a selection among the best. `fiesta search` calls this module.

The first stage has a run directory of its own in `screening/`: its scores were selected on, so no posterior may see
them."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Mapping, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError, command
from fiesta_allennlp.core.names import values_in
from fiesta_allennlp.core.seeding import fresh_seed, second_seed
from fiesta_allennlp.searches.screening import Screening, ScreeningResult
from fiesta_allennlp.searches.search_settings import LEAST_FINALISTS, SearchSettings, stored_search
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.session import Resumed, rehearsed, run_selection
from fiesta_allennlp.selection.settings import overlay
from fiesta_allennlp.selection.store import Meta, reading
from fiesta_allennlp.selection.workspace import already_there, has_begun
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.select import Trainings
from fiesta_allennlp.trainings.settings import Settings

DONE = "budget"
"""`stopped_by` of a screening that ran all its configs."""


@dataclass(frozen=True)
class SearchSummary:
    """The results of both stages. `selection` is None of a search that stopped in the first stage."""

    screening: ScreeningResult
    selection: Optional[Result] = None

    @property
    def last(self) -> Result:
        """The result of the stage that ran last."""
        return self.selection or self.screening


def search(
    options: Mapping[str, Any], root: Path, *, console: Console, recover: bool = False, force: bool = False
) -> SearchSummary:
    """Screen many configs, then select among the best; or resume in the stage that was interrupted.

    `options` are settings that are not defaults. `force` deletes what is in the directory, once the new search has
    passed all checks."""
    directory = RunDirectory(root)
    if has_begun(directory) and not force:  # also refuses a directory in which a selection is running
        if not recover:
            raise already_there(directory)
        return _resume_selecting(options, directory, console)
    if not recover and options.get("seed") is None:
        options = {**options, "seed": fresh_seed()}
    run_selection(Screening, options, directory.screening.root, console=console, recover=recover, force=force)
    screened = ScreeningResult.read(directory.screening.root)
    if screened.stopped_by != DONE:
        return SearchSummary(screened)
    return _select(screened, directory, console)


def _select(screened: ScreeningResult, directory: RunDirectory, console: Console) -> SearchSummary:
    stage = _first_stage(directory)
    settings, sources = stored_search(stage.meta), {candidate.name: candidate.source for candidate in stage.candidates}
    ranked = [config.name for config in screened.candidates if config.score is not None]
    finalists = ranked[: settings.num_finalists(len(screened.candidates))]
    if len(finalists) < LEAST_FINALISTS:
        return SearchSummary(replace(screened, stopped_by="failures"))
    console.print(f"Selecting among the {len(finalists)} best configs.")
    selection_settings = replace(
        settings.selection(),
        candidates=tuple(f"{name}={sources[name]}" for name in finalists),
        seed=second_seed(int(str(stage.meta.seed))),
        max_hours=_hours_left(settings.max_hours, stage.meta),
    )
    return SearchSummary(screened, run_selection(Trainings, selection_settings, directory.root, console=console))


def _resume_selecting(options: Mapping[str, Any], directory: RunDirectory, console: Console) -> SearchSummary:
    """Resume the second stage."""
    if not directory.screening.store.is_file():
        raise StoreError(f"{directory.root} has no screening. If {command('select')} began it, resume it with that.")
    meta = _first_stage(directory).meta
    late = sorted(overlay(options, settings_class=SearchSettings).keys() - {f.name for f in fields(Settings)})
    if late:
        raise ConfigError(f"the screening in {directory.root} is over, so {flag(late[0])} can no longer change.")
    options = {**options, "max_hours": _hours_left(options["max_hours"], meta)} if "max_hours" in options else options
    selected = run_selection(Trainings, options, directory.root, console=console, recover=True)
    return SearchSummary(ScreeningResult.read(directory.screening.root), selected)


def _hours_left(max_hours: Optional[float], meta: Meta) -> Optional[float]:
    return None if max_hours is None else max(1e-6, max_hours - meta.working_seconds / 3600)


def _first_stage(directory: RunDirectory) -> Resumed:
    with reading(directory.screening) as store:
        return Resumed(directory.screening, store.meta(), tuple(store.candidates()))


@dataclass(frozen=True)
class SearchPlan:
    """The result of a dry run, with the values of some points and the command of a first config that is a program."""

    num_points: int
    num_configs: int
    num_finalists: int
    examples: Tuple[str, ...]
    prepared: Screening
    command: str


NUM_EXAMPLES = 3


def plan_search(settings: SearchSettings, console: Console, directory: RunDirectory) -> SearchPlan:
    """Check everything, and build a model, without writing anything that stays. `directory` is where the search would
    be."""
    if settings.seed is None:
        settings = replace(settings, seed=fresh_seed())
    with rehearsed(Screening, settings, console) as prepared:
        candidates, configs = prepared.roster.given, prepared.strategy.configs
        num_finalists = settings.num_finalists(configs)
        examples = tuple(values_in(candidate.source) for candidate in list(candidates.values())[:NUM_EXAMPLES])
        name, candidate = next(iter(candidates.items()))
        run = directory.screening.evaluation(f"{name}-0")
        command = type_of(candidate.config).example_command(prepared.roster.division, run)
        return SearchPlan(len(candidates), configs, num_finalists, examples, prepared, command)
