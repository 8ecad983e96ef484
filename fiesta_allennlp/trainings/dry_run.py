"""The dry run of `fiesta-select`: it checks and builds everything, and trains nothing."""

from dataclasses import dataclass, field
from typing import Any, Mapping

from rich.console import Console

from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.session import rehearsed
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.pool import Pool
from fiesta_allennlp.trainings.preparations import Preparation
from fiesta_allennlp.trainings.programs.config import example_command, is_program
from fiesta_allennlp.trainings.select import TRAININGS
from fiesta_allennlp.trainings.settings import Settings


@dataclass(frozen=True)
class Plan:
    """The result of a dry run. `least` and `most` are numbers of runs. `commands` are, of programs, the command of
    their first run."""

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


def plan(settings: Settings, console: Console) -> Plan:
    """Check everything and build every model once, without writing anything that stays. Trains nothing.

    Raises:
        FiestaError: as `select`.
    """
    with rehearsed(TRAININGS, settings, console) as prepared:
        console.print(f"It would train {prepared.executor.describe()}.", highlight=False, soft_wrap=True)
    least, most = prepared.checked.strategy.bounds(len(prepared.checked.roster.given))
    scored_by = prepared.checked.settings.scored_by
    configs = prepared.checked.roster.configs
    commands = {name: example_command(name, config) for name, config in configs.items() if is_program(config)}
    return Plan(scored_by, prepared.preparations, settings.strategy_params(), least, most, settings.division, commands)
