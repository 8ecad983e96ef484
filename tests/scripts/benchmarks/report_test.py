from typing import Callable

import pytest


@pytest.mark.usefixtures("undrawn")
def test_the_report_of_a_small_selection_is_timed(run_script: Callable[..., str]) -> None:
    first, seconds, *sizes = run_script("report", "--candidates", 3, "--evaluations", 12).splitlines()
    assert first.startswith("3 candidates, 12 evaluations, ")
    assert "processor time" in seconds
    assert any("report.md" in line for line in sizes)
