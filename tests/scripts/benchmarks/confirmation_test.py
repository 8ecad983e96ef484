from importlib import import_module
from pathlib import Path
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of


def test_a_clear_lead_is_confirmed_and_its_counts_are_added_up(tmp_path: Path, run_script: Callable[..., str]) -> None:
    module, results = import_module("confirmation"), tmp_path / "confirmation.csv"
    for _ in range(2):
        run_script("confirmation", "--gaps", 40, "--repetitions", 3, "--results", results)
    rows = module.table_rows(module.read_rows(results, module.ResultRow))
    assert [row[:3] for row in rows] == [("shared", "40", "6"), ("official", "40", "6")]
    assert {row[3] for row in rows} == {"1.000 (0.610-1.000)"} and {row[4] for row in rows} == {"1.000"}
    assert {row[5] for row in rows} == {"0.000 (0.000-0.390)"}
    table = cells_of(run_script("confirmation", "--gaps", 40, "--repetitions", 3, "--results", results))
    assert len(table[-1]) == len(module.HEADINGS)


def test_every_verdict_about_equal_models_is_wrong() -> None:
    module = import_module("confirmation")
    row = module.ResultRow("shared", 0.0, 1, 100, 40, 50, 1, 3, 2, 95, 20.0)
    assert module.cells([row])[5].split()[0] == "0.050"


def test_the_power_of_the_formula_is_the_noncentral_t() -> None:
    module = import_module("confirmation")
    assert module.power_by_formula("official", 1.0) == pytest.approx(0.562, abs=0.001)  # 10 each, one-sided 0.025
    assert module.power_by_formula("shared", 0.0) == pytest.approx(0.025)
