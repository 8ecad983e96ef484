"""A synthetic table in the form of Zhang and Duh's files."""

from pathlib import Path
from typing import Callable

import numpy as np
import pytest

NUM_ROWS = 24


@pytest.fixture
def write_files(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a table of 24 systems under a name. Returns what its files begin with.

    The best is row 23. The front of score and time are rows 0 and 23: all others are slower than row 0, and not better.
    """

    def write(name: str) -> Path:
        stem = tmp_path / name
        inputs = np.array([[i % 2, (i // 2) % 3 / 2, i // 6 / 3] for i in range(NUM_ROWS)])
        scores = np.round(10 + np.minimum(inputs.sum(axis=1), 2.9) + 0.1 * (np.arange(NUM_ROWS) == 23), 3)
        seconds = np.where(np.arange(NUM_ROWS) == 0, 100, 300 - np.arange(NUM_ROWS))
        seconds[23] = 400
        scores[0] = 12.9
        evals = np.column_stack([scores, seconds, *np.ones((4, NUM_ROWS))])
        evals[3, 4] = 0
        for ending, rows in ((".hyps_scaled", inputs), (".evals", evals)):
            np.savetxt(f"{stem}{ending}", rows, delimiter="\t", fmt="%g")
        np.savetxt(f"{stem}.fronts", np.isin(np.arange(NUM_ROWS), [0, 23]), fmt="%d")
        return stem

    return write
