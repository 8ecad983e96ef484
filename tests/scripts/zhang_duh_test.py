from itertools import permutations
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from searchers import Points
from table_lookup import Measures, Protocol, SearchTable, exact_random_search, read_files

from tests.scripts.conftest import cells_of

NUM_ROWS = 24


def write_files(stem: Path) -> Path:
    """Writes a table of 24 systems, of which row 23 is the best, into files that begin with `stem`, and returns it."""
    rows = np.arange(NUM_ROWS)
    inputs = np.column_stack([rows % 2, rows // 2 % 3 / 2, rows // 6 / 3])
    evals = np.column_stack([np.where(rows == 23, 13, 10 + 0.9 * inputs.sum(axis=1)), *np.ones((5, NUM_ROWS))])
    for ending, columns in ((".hyps_scaled", inputs), (".evals", evals)):
        np.savetxt(f"{stem}{ending}", columns, delimiter="\t", fmt="%g")
    return stem


def table(*scores: float) -> SearchTable:
    return SearchTable("seven", Points(np.arange(float(len(scores)))[:, None]), np.array(scores))


def test_the_protocols_by_hand() -> None:
    protocol, seven = Protocol(tolerance=0.2, budget=4), table(1.0, 5.0, 4.8, 2.0, 5.0, np.nan, 3.0)
    assert protocol.measures([0, 3, 5, 6, 2, 4, 1], seven) == {"ftb": 7, "ftc": 5, "fb": 2.0}  # the first of equals
    assert protocol.measures([1, 0, 3, 2], seven) == {"ftb": 3, "ftc": 3, "fb": 0}  # never before the random points
    assert Protocol(budget=1).measures([5, 1], seven)["fb"] == np.inf


def test_random_search_is_the_mean_over_all_orders() -> None:
    six, protocol = table(1.0, 5.0, 4.8, 2.0, 4.0, 3.0), Protocol(tolerance=0.2, budget=2)
    orders = Measures.from_trials([protocol.measures(order, six) for order in permutations(range(6))])
    exact = exact_random_search(six, protocol)
    assert set(exact) == set(orders.values)
    for name, moments in exact.items():
        assert moments == pytest.approx(orders.mean_and_sd(name))


def test_the_published_sequences(shared_data: Path) -> None:
    tables = shared_data / "tables" / "hpo_nmt"
    lines = (tables / "examples" / "example.ss").read_text().splitlines()
    orders = [[int(row) for row in line.split()] for line in lines]
    zh_en = read_files(tables / "zh-en")
    found = Measures.from_trials([Protocol().measures(order, zh_en) for order in orders])
    for name, moments, digits in (("ftb", (38.52, 27.85), 2), ("ftc", (10.11, 9.47), 2), ("fb", (0.1404, 0.2045), 4)):
        assert tuple(round(moment, digits) for moment in found.mean_and_sd(name)) == moments


def test_ours_stand_beside_the_papers(tmp_path: Path, run_script: Callable[..., str]) -> None:
    for name in ("zh-en", "aa-bb"):
        read = read_files(write_files(tmp_path / name))
        assert (read.name, read.points.inputs.shape, read.best, read.scores[23]) == (name, (24, 3), 23, 13.0)
    text = run_script("reproduce_zhang_duh", "--data", tmp_path, "--trials", 2, "--only", "RS|_M$|^gp")
    headings, _, *table_rows = cells_of(text)
    assert headings[:5] == ["method", "aa-bb ftb", "aa-bb ftc", "aa-bb fb", "zh-en ftb"]
    rows = {row[0]: row for row in table_rows}
    assert list(rows) == ["RS, exactly", "RS", "BO_EI_M", "GB_EI_M", "GB_EIF_M", "gp_ei, prior_mean 0", "gp_ei"]
    assert rows["RS, exactly"][1].startswith("13±7")
    assert "(" not in rows["BO_EI_M"][1] and "(29±19)" in rows["BO_EI_M"][4]
