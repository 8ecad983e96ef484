"""The display of fresh runs: how many have ended, and neither a score nor who leads, because they choose nothing."""

from typing import Callable

from rich.console import Console

from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.selection.candidate_table import Table
from fiesta_allennlp.selection.confirmation import Confirmation
from fiesta_allennlp.selection.confirmation_texts import progress_in_words
from fiesta_allennlp.selection.progress import ProgressDisplay
from fiesta_allennlp.strategies.decision import Decision


def progress_table(confirmation: Confirmation, title: str = "") -> Table:
    """Return how many runs of each candidate have ended."""
    num_runs = confirmation.plan.num_runs
    rows = [[c.name, f"{c.num_finished} of {num_runs}", str(c.num_failed)] for c in confirmation.candidates]
    return Table(("candidate", "fresh runs", "failed"), rows, title=title or None, wrapped=("candidate",))


class ConfirmationProgress(ProgressDisplay):
    """The display of a confirmation at work. `read` returns what its history says."""

    def __init__(self, console: Console, read: Callable[[History], Confirmation]) -> None:
        super().__init__(console, "")
        self._read = read

    @property
    def _facts_text(self) -> str:
        return f"; {progress_in_words(self._read(self._history))}"

    def on_state(self, history: History, decision: Decision) -> None:
        super().on_state(history, Decision(best=None))

    def _finished_text(self, run: Evaluation) -> str:
        return f"{run.request.name} finished in {run.seconds:.1f} s"

    def _build_table(self) -> Table:
        confirmation, num_pending = self._read(self._history), len(self._history.pending)
        title = f"{progress_in_words(confirmation)}, {num_pending} running, {self._elapsed_text()} elapsed"
        return progress_table(confirmation, title)
