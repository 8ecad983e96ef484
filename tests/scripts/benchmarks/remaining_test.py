import sys
from importlib import import_module

import pytest


def test_the_estimate_stands_beside_the_runs_that_followed(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = import_module("remaining")
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--problems", "near tie, 4"])
    remaining.main()
    row = capsys.readouterr().out.strip().splitlines()[2].split(" | ")
    assert row[:3] == ["| near tie, 4", "4", "2"]
    assert sum(map(float, row[5:7])) + float(row[7].rstrip(" |")) == pytest.approx(1, abs=0.02)
