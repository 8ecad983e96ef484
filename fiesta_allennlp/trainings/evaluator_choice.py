"""Chooses the evaluator that makes the runs of each candidate."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.records import Evaluation, Request
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config, with_absolute_paths
from fiesta_allennlp.trainings.pool import Preparation
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.programs.run import ProgramRun
from fiesta_allennlp.trainings.settings import Settings


@dataclass(frozen=True)
class EitherEvaluator(Evaluator):
    """Runs the candidates of `programs` as programs, and trains all others with AllenNLP."""

    training: Evaluator
    programs: ProgramRun

    def _of(self, request: Request) -> Evaluator:
        return self.programs if request.candidate in self.programs.configs else self.training

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return self._of(request).evaluate(request, directory)

    def for_request(self, request: Request) -> Evaluator:
        return self._of(request).for_request(request)

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        return self._of(request).salvage(request, directory)

    def files(self, request: Request) -> List[str]:
        return self._of(request).files(request)

    def made_files(self, request: Request) -> List[str]:
        return self._of(request).made_files(request)

    def reading(self, places: Mapping[str, str]) -> "EitherEvaluator":
        return EitherEvaluator(self.training.reading(places), self.programs.reading(places))


OF_ALLENNLP, OF_PROGRAMS = "fiesta_allennlp.trainings.allennlp.loaded", "fiesta_allennlp.trainings.programs.run"
"""The modules that workers import first, and the fork server once for all."""


def packages_of(settings: Settings, roster: Roster) -> Tuple[str, ...]:
    """Return what workers import first: AllenNLP if a candidate needs it, and the packages of the user."""
    are_programs = all(is_program(config) for config in roster.configs.values())
    return (OF_PROGRAMS if are_programs else OF_ALLENNLP, *settings.include_package)


TRIAL_RECORDS = 200
"""The records of a program's trial."""


def of_one_epoch(config: Config) -> Config:
    """Return an AllenNLP config with one epoch, if it says how many it has."""
    trainer = config.get("trainer", {})  # a program has none
    has_epochs = "num_epochs" in trainer or trainer.get("type", "gradient_descent") == "gradient_descent"
    return {**config, "trainer": {**trainer, "num_epochs": 1}} if has_epochs and not is_program(config) else config


def evaluator_of(
    settings: Settings,
    roster: Roster,
    preparations: Mapping[str, Preparation],
    *,
    gives_devices: bool,
    is_trial: bool = False,
) -> Evaluator:
    """Return the evaluator of these candidates, programs and AllenNLP configs alike.

    Args:
        preparations: by candidate, removed ones included.
        gives_devices: the executor gives each run its device.
        is_trial: runs are short: of one epoch, or of few records.
    """
    configs = {name: with_absolute_paths(config) for name, config in roster.configs.items()}
    if is_trial:
        configs = {name: of_one_epoch(config) for name, config in configs.items()}
    programs = {name: config for name, config in configs.items() if is_program(config)}
    shared: Dict[str, Any] = {
        "metric": settings.scored_by.name,
        "group_by": next(iter(preparations.values())).pool.group_by,
        "data": roster.data,
        "division": roster.division,
    }
    run = ProgramRun(
        programs,
        keep_models=settings.keep != "none",
        most_records=TRIAL_RECORDS if is_trial else None,
        **shared,
    )
    if len(programs) == len(configs):
        return run
    from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPTraining

    training = AllenNLPTraining(
        configs={name: config for name, config in configs.items() if name not in programs},
        vectors={name: dict(preparation.vectors) for name, preparation in preparations.items()},
        keep_archives=settings.keep != "none",
        free_device=gives_devices,
        **shared,
    )
    return EitherEvaluator(training, run) if programs else training
