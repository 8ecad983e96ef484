"""The scripts are run by hand, for minutes; here on something small, so that they cannot rot."""

from importlib import import_module
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of


def test_the_estimate_is_compared_with_the_runs_that_followed(
    run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = import_module("remaining")
    found = iter([[(2, 5, 6, 9), (3, 1, 0, 2)], [(2, 7, 6, 9)]])
    monkeypatch.setattr(remaining, "outcomes", lambda replay, repetition: next(found))
    assert cells_of(run_script("remaining", "--repetitions", 2, "--problems", "near tie, 4"))[2:] == [
        ["near tie, 4", "8", "2", "6.0", "6 to 9", "0.50", "0.50", "0.00"],
        ["near tie, 4", "12", "1", "1.0", "0 to 2", "0.00", "1.00", "0.00"],
    ]
    monkeypatch.undo()
    assert remaining.outcomes(remaining.replayer("near tie, 4"), 0)


def test_a_decision_is_timed() -> None:
    decisions = import_module("decisions")
    assert all(decisions.time_decision(belief, 2, 20, 2) > 0 for belief in ("student_t", "split_paired"))
