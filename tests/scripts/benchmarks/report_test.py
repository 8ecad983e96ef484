import sys
from importlib import import_module

import pytest


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_a_small_selection_is_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    script = import_module("report")
    monkeypatch.setattr(sys, "argv", ["report.py", "--candidates", "3", "--evaluations", "12"])
    script.main()
    first, seconds, *sizes = capsys.readouterr().out.splitlines()
    assert first.startswith("3 candidates, 12 evaluations, ")
    assert "processor time" in seconds
    assert any("report.md" in line for line in sizes)
