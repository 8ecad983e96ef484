"""The dry run of `fiesta-select`, which trains nothing, and its trial, which makes one short run of each candidate."""

import resource
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Iterator, Mapping

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.processes import ProcessExecutor
from fiesta_allennlp.listeners.progress import PEAK_MEMORY
from fiesta_allennlp.records import Evaluation, Outcome, Request
from fiesta_allennlp.seeding import fresh_seed, make_request
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.session import rehearsed
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.pool import Pool, Preparation, scored_on
from fiesta_allennlp.trainings.programs.config import example_command, is_program
from fiesta_allennlp.trainings.select import TRAININGS
from fiesta_allennlp.trainings.settings import Settings


@dataclass(frozen=True)
class Plan:
    """The result of a dry run. `least` and `most` are numbers of runs; `commands` has the command of each program's
    first run."""

    metric: Metric
    preparations: Mapping[str, Preparation]
    strategy: Mapping[str, Any]
    least: int
    most: int
    division: Division = AT_OFFICIAL_RATIOS
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def pool(self) -> Pool:
        return next(iter(self.preparations.values())).pool

    @property
    def scored_on(self) -> str:
        return scored_on(self.pool.official, self.division)


def plan(settings: Settings, console: Console, directory: RunDirectory) -> Plan:
    """Check everything and build every model once for a selection in `directory`. Train nothing and keep nothing."""
    with rehearsed(TRAININGS, settings, console) as prepared:
        console.print(f"Would train {prepared.executor.describe()}.", highlight=False, soft_wrap=True)
    checked, roster = prepared.checked, prepared.checked.roster
    least, most = checked.strategy.bounds(len(roster.given))
    commands = {
        name: example_command(config, roster.division, directory.evaluation(f"{name}-0"))
        for name, config in roster.configs.items()
        if is_program(config)
    }
    strategy, metric = settings.strategy_params(), checked.settings.scored_by
    return Plan(metric, prepared.preparations, strategy, least, most, roster.division, commands)


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
        names = prepared.metric_names(console)
        evaluator = Measured(prepared.evaluator(is_trial=True))
        for name in prepared.checked.roster.given:
            prepared.executor.submit(evaluator, make_request(seed, name, 0, shared_splits=settings.splits == "shared"))
        for outcome in prepared.executor.completed():
            names.on_outcome(outcome)
            yield outcome
