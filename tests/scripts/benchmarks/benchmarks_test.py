"""The scripts are run by hand, for minutes; here on something small, so that they cannot rot."""

from importlib import import_module
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of


def test_the_forecast_is_compared_with_the_runs_that_followed(
    run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = import_module("forecasts")
    first = [forecasts.Outcome("start", 8, 6, 9, 0.5, True), forecasts.Outcome("middle", 1, 2, 3, 0.9, True)]
    found = iter([first, [forecasts.Outcome("start", 12, 6, 9, 0.7, False)]])
    monkeypatch.setattr(forecasts, "outcomes", lambda simulator, repetition: next(found))
    assert cells_of(run_script("forecasts", "--repetitions", 2, "--problems", "near tie, 4"))[2:] == [
        ["near tie, 4", "start", "2", "10.0", "6 to 9", "0.00", "0.50", "0.50", "0.60 and 0.50"],
        ["near tie, 4", "middle", "1", "1.0", "2 to 3", "1.00", "0.00", "0.00"],
    ]
    monkeypatch.undo()
    simulator = forecasts.make_simulator(forecasts.PROBLEMS["2 candidates, 3 sds apart"])
    assert [one.moment for repetition in range(4) for one in forecasts.outcomes(simulator, repetition)]
