"""The observers of a selection: the live table, and others that the settings ask for, such as a command of the user."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Collection, List, Optional

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import Evaluation, History, Outcome
from fiesta_allennlp.selection.listener import Listener
from fiesta_allennlp.selection.texts import number_text
from fiesta_allennlp.strategies.decision import Decision

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BestModelKeeper(Listener):
    """Deletes the model of every run that is not the best of its candidate: the archive of an AllenNLP run, or the
    directory `model` of a program. `sign` is -1 if the lowest score is the best."""

    directory: RunDirectory
    sign: int = 1

    def on_state(self, history: History, decision: Decision) -> None:
        self.keep_only(history.candidates, history)

    def keep_only(self, candidates: Collection[Optional[str]], history: History) -> None:
        """Delete all models except the best one of each of these candidates."""
        for name in history.candidates:
            runs = [evaluation for evaluation in history.evaluations if evaluation.request.candidate == name]
            runs_with_models = [run for run in runs if any(path.exists() for path in self._models(run))]
            best = max(runs_with_models, key=lambda run: self.sign * run.score, default=None)
            unused_runs = [f for f in history.failures if f.kind == "score" and f.request.candidate == name]
            other_runs: List[Outcome] = [run for run in runs_with_models if run is not best or name not in candidates]
            for run in [*unused_runs, *other_runs]:
                for path in self._models(run):
                    delete(path)

    def _models(self, run: Outcome) -> List[Path]:
        return [self.directory.archive(run.request.name), self.directory.model(run.request.name)]


class MetricNotes(Listener):
    """Prints once which other metrics of a run may be meant by the name of the metric, such as `test_accuracy` beside
    `accuracy`, which may be of the training set."""

    def __init__(self, metric: str, console: Console) -> None:
        self._metric, self._console, self._is_done = metric, console, False

    def on_outcome(self, outcome: Outcome) -> None:
        if self._is_done or not isinstance(outcome, Evaluation) or self._metric not in outcome.metrics:
            return
        self._is_done = True
        others = [f"{name} = {number_text(value)}" for name, value in outcome.metrics.items() if self._is_longer(name)]
        if others:
            compared = f"the metric is {self._metric} = {number_text(outcome.score)}"
            self._console.print(f"Note: {compared}. {outcome.request.candidate} also reports {join_some(others)}.")

    def _is_longer(self, name: str) -> bool:
        return name != self._metric and name.endswith(f"_{self._metric}")
