"""That the overhead is measured, on a few evaluations."""

import importlib
import os
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.scripts.conftest import BENCHMARKS


def test_the_overhead_is_told_by_the_clock_and_by_the_processor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([BENCHMARKS, str(REPOSITORY)]))  # for the workers
    script = importlib.import_module("scaling")
    options = ["--evaluations", "8", "--workers", "1", "--executors", "processes"]
    monkeypatch.setattr(sys, "argv", ["scaling.py", "overhead", *options])
    script.main()
    row = next(line for line in capsys.readouterr().out.splitlines() if "under 50" in line)
    name, *numbers, wanted, processor = [cell.strip() for cell in row.strip("| ").split("|")]
    assert (name, wanted) == ("processes", "under 50")
    assert all(float(number) > 0 for number in [*numbers, processor])
