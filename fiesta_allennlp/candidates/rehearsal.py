"""Rehearsals of a selection, which keep nothing: a dry run, and a trial of one short run of each candidate."""

from dataclasses import dataclass
from typing import Dict, Iterator, Mapping, Optional

from rich.console import Console

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.choosing.forecast import forecast_open_selection
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History, Outcome
from fiesta_allennlp.core.seeding import fresh_seed, make_request
from fiesta_allennlp.selecting.results.facts import forecast_text
from fiesta_allennlp.selecting.session import StoredState, dry_run


@dataclass(frozen=True)
class Plan:
    """The result of a dry run. `least` and `most` are numbers of runs; `commands` has the command of each program's
    first run."""

    prepared: TrainingSelection
    least: int
    most: int
    commands: Mapping[str, str]
    expected: str = ""


def plan(
    settings: Settings, console: Console, directory: RunDirectory, beginning: Optional[StoredState] = None
) -> Plan:
    """Check everything and build every model once for a selection in `directory`. Train nothing and keep nothing."""
    with dry_run(TrainingSelection, settings, console, beginning) as prepared:
        console.print(f"Would train {prepared.executor.describe()}.")
    expected = ""
    if prepared.brought is not None:
        console.print(*(f"Note: {sentence}" for sentence in prepared.brought.sentences))
        history = History(tuple(prepared.candidate_set.active), sign=prepared.settings.scored_by.sign)
        history, strategy = history.with_outcomes(prepared.brought.outcomes), prepared.strategy
        decision = strategy.recommend(history)
        expected = forecast_text(
            forecast_open_selection(strategy, history, decision, seed=settings.seed or 0, workers=0)
        )
    candidate_set = prepared.candidate_set
    least, most = prepared.strategy.bounds(len(candidate_set.active))
    commands: Dict[str, str] = {}
    for name, config in candidate_set.configs.items():
        command = type_of(config).example_command(candidate_set.division, directory.evaluation(f"{name}-0"))
        commands.update({name: command} if command else {})
    return Plan(prepared, least, most, commands, expected)


def trial(settings: Settings, console: Console) -> Iterator[Outcome]:
    """Make one short run of each candidate, and keep nothing: 200 records of a program's data, or one epoch of an
    AllenNLP config. Yield the outcomes."""
    with dry_run(TrainingSelection, settings, console) as prepared:
        if not prepared.executor.is_local:
            raise ConfigError("--trial runs only on this machine. Remove --executor.")
        seed = fresh_seed() if settings.seed is None else settings.seed
        if not prepared.pool.official:
            console.print("Note: these programs load their own data, so a trial makes a whole run of each.")
        evaluator = prepared.evaluator(is_trial=True)
        for name in prepared.candidate_set.active:
            request = make_request(seed, name, 0, shared_splits=settings.splits == "shared")
            prepared.executor.submit(evaluator.for_request(request), request)
        yield from prepared.executor.completed()
