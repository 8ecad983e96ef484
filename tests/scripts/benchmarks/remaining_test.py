import sys
from importlib import import_module

import pytest


def test_the_estimate_is_compared_with_the_runs_that_followed(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = import_module("remaining")
    found = iter([[(2, 5, 6, 9), (3, 1, 0, 2)], [(2, 7, 6, 9)]])
    monkeypatch.setattr(remaining, "outcomes", lambda replay, repetition: next(found))
    assert list(remaining.rows("near tie, 4", 2)) == [
        ("near tie, 4", "8", "2", "6.0", "6 to 9", "0.50", "0.50", "0.00"),
        ("near tie, 4", "12", "1", "1.0", "0 to 2", "0.00", "1.00", "0.00"),
    ]
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--problems", "near tie, 4"])
    remaining.main()  # when an estimate is first possible depends on the machine's arithmetic
    for line in capsys.readouterr().out.strip().splitlines()[2:]:
        name, runs, selections, left, _, *shares = line.strip("| ").split(" | ")
        assert name == "near tie, 4" and int(runs) in [4 * rounds for rounds in remaining.ROUNDS]
        assert 1 <= int(selections) <= 2 and float(left) >= 0
        assert sum(map(float, shares)) == pytest.approx(1, abs=0.02)
