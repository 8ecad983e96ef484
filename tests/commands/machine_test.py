"""A machine that lacks something for a while: real trainings, from which their data are taken away."""

from pathlib import Path
from typing import Any, List, Set, Tuple

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.records import Failure, Outcome
from fiesta_allennlp.selection.store import RunStore
from tests.commands.conftest import Selections
from tests.run_files import scores_of

EQUALLY = ("--strategy", "non_adaptive_fb", "--seed", 5, "--budget", 6)


class Taken:
    """The data are away once both candidates have finished a training, until so many failures have been told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, data: Path, *, until_failures: int) -> None:
        self._data, self._away = data, data.with_suffix(".away")
        self._left = until_failures
        self._finished: Set[str] = set()
        original = Progress.on_outcome

        def on_outcome(progress: Progress, outcome: Outcome) -> None:
            original(progress, outcome)
            self._note(outcome)

        monkeypatch.setattr(Progress, "on_outcome", on_outcome)

    def _note(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self._left -= 1
            if not self._left:
                self._away.rename(self._data)
            return
        self._finished.add(outcome.request.candidate)
        if self._left > 0 and self._data.exists() and len(self._finished) == 2:
            self._data.rename(self._away)


def failures_of(run: Path) -> Tuple[List[str], List[str]]:
    """The kinds of all failures, and who is withdrawn."""
    store = RunStore(RunDirectory(run), create=False)
    history = store.history(max_failures=3)
    store.close()
    return [failure.kind for failure in history.failures], sorted(history.withdrawn)


@pytest.fixture
def whole(candidates: List[str], tmp_path: Path, call: Any) -> Path:
    """What an undisturbed selection leaves."""
    path = tmp_path / "whole"
    assert call(*candidates, "-s", path, "--metric", "accuracy", *EQUALLY)[0] == 0
    return path


def test_data_that_are_away_for_a_moment_cost_no_candidate(
    selections: Selections, run: Path, whole: Path, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.selection.loop.PAUSES", (0.01,) * 8)
    Taken(monkeypatch, reviews / "train.jsonl", until_failures=7)
    selections.begin(*EQUALLY, "--workers", 2)
    assert scores_of(run) == scores_of(whole)
    kinds, withdrawn = failures_of(run)
    assert set(kinds) == {"machine"} and len(kinds) >= 7
    assert withdrawn == []
