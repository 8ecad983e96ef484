"""A machine that lacks something for a while: real runs, from which their data are taken away."""

from pathlib import Path
from typing import List

import pytest

from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.reports.progress import LiveTable
from tests.commands.conftest import Selections, kinds_of_failures, scores_by_seed
from tests.run_files import scores_of


def test_data_that_are_away_for_a_moment_cost_no_candidate(
    selections: Selections, run: Path, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are away once both candidates have finished a run, until seven failures have been told."""
    options = ["--strategy", "non_adaptive_fb", "--seed", 5, "--budget", 6]
    data, away, original = reviews / "train.jsonl", reviews / "train.away", LiveTable.on_outcome
    told: List[Outcome] = []

    def on_outcome(progress: LiveTable, outcome: Outcome) -> None:
        original(progress, outcome)
        told.append(outcome)
        failures = [each for each in told if isinstance(each, Failure)]
        finished = {each.request.candidate for each in told if each not in failures}
        if len(failures) < 7 and len(finished) == 2 and data.exists():
            data.rename(away)
        if len(failures) == 7 and away.exists():
            away.rename(data)

    monkeypatch.setattr("fiesta_allennlp.selecting.loop.RETRY_PAUSES", (0.01,) * 8)
    monkeypatch.setattr(LiveTable, "on_outcome", on_outcome)
    selections.begin(*options, "--workers", 2)
    assert scores_of(run) == scores_by_seed(5, 6)
    kinds = kinds_of_failures(run)
    assert set(kinds) == {"machine"} and len(kinds) >= 7
