from importlib import import_module
from pathlib import Path
from typing import Callable

import numpy as np
import pytest


def test_interval_is_the_one_of_a_report() -> None:
    module = import_module("pairs")
    first, second = np.array([3.0, 4.0, 8.0, 9.0]), np.array([1.0, 3.0, 5.0])
    lead, ends = module.lead_interval(first, second)
    # The differences 2, 1 and 3 have the sd 1; t(0.975; 2) is 4.3027.
    assert lead == 2 and ends == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-3)


def test_a_clear_pair_is_named_and_its_counts_are_pooled(tmp_path: Path, run_script: Callable[..., str]) -> None:
    module, results = import_module("pairs"), tmp_path / "pairs.csv"
    for _ in range(2):
        run_script("pairs", "--only", "early", "--gaps", 40, "--repetitions", 5, "--results", results)
    (row,) = module.table_rows(import_module("common").read_rows(results, module.ResultRow))
    assert row[:4] == ["40", "6.0", "1.000 (0.722-1.000)", "0.000 (0.000-0.278)"]
