"""What makes the runs: each candidate's own kind of evaluator."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.records import Evaluation, Request
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import with_absolute_paths
from fiesta_allennlp.trainings.evaluator import AllenNLPTraining
from fiesta_allennlp.trainings.preparation import Preparation
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.programs.run import ProgramRun
from fiesta_allennlp.trainings.settings import Settings


@dataclass(frozen=True)
class EitherEvaluator(Evaluator):
    """Runs the candidates of `programs` as programs, and trains all others with AllenNLP."""

    training: AllenNLPTraining
    programs: ProgramRun

    def _of(self, request: Request) -> Evaluator:
        return self.programs if request.candidate in self.programs.configs else self.training

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return self._of(request).evaluate(request, directory)

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        return self._of(request).salvage(request, directory)

    def files(self, request: Request) -> List[str]:
        return self._of(request).files(request)

    def made_files(self, request: Request) -> List[str]:
        return self._of(request).made_files(request)

    def reading(self, places: Mapping[str, str]) -> "EitherEvaluator":
        return EitherEvaluator(self.training.reading(places), self.programs.reading(places))


def evaluator_of(
    settings: Settings, roster: Roster, preparations: Mapping[str, Preparation], *, gives_devices: bool
) -> Evaluator:
    """What makes the runs of these candidates, the programs and the AllenNLP configs among them.

    Args:
        preparations: by candidate, removed ones included.
        gives_devices: the executor gives each run its device.
    """
    configs = {name: with_absolute_paths(config) for name, config in roster.configs.items()}
    programs = {name: config for name, config in configs.items() if is_program(config)}
    shared: Dict[str, Any] = {
        "metric": settings.scored_by.name,
        "group_by": next(iter(preparations.values())).pool.group_by,
        "data": roster.data,
        "division": settings.division,
    }
    training = AllenNLPTraining(
        configs={name: config for name, config in configs.items() if name not in programs},
        vectors={name: dict(preparation.vectors) for name, preparation in preparations.items()},
        keep_archives=settings.keep != "none",
        free_device=gives_devices,
        **shared,
    )
    run = ProgramRun(programs, working_directory=os.getcwd(), keep_models=settings.keep != "none", **shared)
    return EitherEvaluator(training, run) if programs else training
