"""A synthetic table in the form of Zhang and Duh's files."""

from pathlib import Path

import numpy as np

NUM_ROWS = 24


def write_files(stem: Path) -> Path:
    """Writes a table of 24 systems into files that begin with `stem`, and returns it.

    The best is row 23. The front of score and time are rows 0 and 23: all others are slower than row 0, and not better.
    """
    rows = np.arange(NUM_ROWS)
    inputs = np.column_stack([rows % 2, rows // 2 % 3 / 2, rows // 6 / 3])
    scores = np.where(rows == 23, 13, 10 + 0.9 * inputs.sum(axis=1))
    scores[0] = 12.9
    seconds = 300 - rows
    seconds[[0, 23]] = 100, 400
    evals = np.column_stack([scores, seconds, *np.ones((4, NUM_ROWS))])
    evals[3, 4] = 0  # unknown memory
    for ending, columns in ((".hyps_scaled", inputs), (".evals", evals), (".fronts", np.isin(rows, [0, 23]))):
        np.savetxt(f"{stem}{ending}", columns, delimiter="\t", fmt="%g")
    return stem
