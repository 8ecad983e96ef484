"""The observers of a selection: its display, the keeper of the best models, and the check of units."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Collection, ContextManager, Iterator, List, Optional

from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import History, Outcome
from fiesta_allennlp.core.settings.metrics import have_two_units
from fiesta_allennlp.selecting.objections import UNITS


class Listener:
    """An observer of a selection, such as a progress display. A subclass leaves out what it does not observe."""

    def on_state(self, history: History, decision: Decision) -> None:
        """Called after every change of what is finished or pending."""

    def on_outcome(self, outcome: Outcome) -> None:
        """Called for every finished run and failure once it is recorded."""


Display = Callable[..., ContextManager[Listener]]
"""Opens the display of a running selection, such as the live table, from its arguments."""


@contextmanager
def no_display(*args: Any, **options: Any) -> Iterator[Listener]:
    """Show nothing."""
    yield Listener()


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


class BroughtUnits(Listener):
    """Ends a selection if the first new run of a candidate has another unit than the runs that were made before."""

    def on_state(self, history: History, decision: Decision) -> None:
        brought = [run.score for run in history.evaluations if run.request.is_brought]
        for name in history.candidates if brought else ():
            own = [run for run in history.evaluations_of(name) if not run.request.is_brought]
            if len(own) == 1 and have_two_units([*brought, own[0].score]):
                raise FiestaError(
                    f"{own[0].request.name}: the score is {own[0].score:g}, but those of --scores are from "
                    f"{min(brought):g} to {max(brought):g}: percents among fractions? No run is lost. Correct the "
                    f"table and start again, or continue with --recover --allow {UNITS.name}."
                )
