"""Which trained models stay on the disk with `--keep best`: never more than one of each candidate."""

from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.files import delete
from fiesta_allennlp.records import Decision, Evaluation, History, Outcome, Request


class BestArchives:
    """A listener of the selection that deletes the model of every evaluation which is not the best of its candidate:
    the archive of a training, and the directory `model` of a program.

    Args:
        directory: of the run.
        history: what finished before; of it too only the best of each candidate is kept.
        sign: -1 where the lowest score is the best.
    """

    def __init__(self, directory: RunDirectory, history: History, *, sign: int = 1) -> None:
        self._directory = directory
        self._sign = sign
        self._best: Dict[str, Tuple[float, str]] = {}
        for evaluation in history.evaluations:
            self.on_outcome(evaluation)

    def on_state(self, history: History, decision: Decision) -> None:
        """Nothing changes."""

    def on_waiting(self, requests: Sequence[Request]) -> None:
        """Nothing changes."""

    def on_outcome(self, outcome: Outcome) -> None:
        name = outcome.request.name
        if not isinstance(outcome, Evaluation) or not self._models(name):
            return
        candidate = outcome.request.candidate
        before = self._best.get(candidate)
        if before is None or self._sign * outcome.score > before[0]:
            self._best[candidate] = (self._sign * outcome.score, name)
            name = before[1] if before is not None else ""
        if name:
            self._delete(name)

    def keep_only(self, winner: Optional[str]) -> None:
        """Delete all models except one of this candidate."""
        for candidate, (_, name) in self._best.items():
            if candidate != winner:
                self._delete(name)

    def _models(self, name: str) -> List[Path]:
        return [path for path in (self._directory.archive(name), self._directory.model(name)) if path.exists()]

    def _delete(self, name: str) -> None:
        for path in self._models(name):
            delete(path)
