from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from gaussian_processes import Points
from table_lookup import Protocol, SearchTable, collect, exact_random_search, read_files

from tests.scripts.conftest import cells_of

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


SCORES = np.array([1.0, 5.0, 4.8, 2.0, 5.0, np.nan, 3.0])


def table(*columns: np.ndarray) -> SearchTable:
    scores = np.column_stack(columns)
    return SearchTable("seven", Points(np.arange(float(len(scores)))[:, None]), scores)


def test_the_protocols_by_hand() -> None:
    protocol, seven = Protocol(tolerance=0.2, budget=4), table(SCORES)
    assert protocol.measures([0, 3, 5, 6, 2, 4, 1], seven) == {"ftb": 7, "ftc": 5, "fb": 2.0}  # the first of equals
    assert protocol.measures([1, 0, 3, 2], seven) == {"ftb": 3, "ftc": 3, "fb": 0}  # never before the random points
    assert Protocol(budget=1).measures([5, 1], seven)["fb"] == np.inf
    assert table(SCORES, -SCORES).front.tolist() == [0, 1, 2, 3, 4, 6]
    two = table(SCORES, np.array([0.0, 0, 9, 9, 1, 9, 0]))
    assert two.front.tolist() == [2, 4]
    assert Protocol(budget=4).measures([0, 1, 3, 4, 5, 2, 6], two) == {"fto": 4, "fta": 6, "fbp": 1}


@pytest.mark.parametrize("num_objectives", [1, 2])
def test_random_search_is_the_mean_over_all_orders(num_objectives: int) -> None:
    columns = (np.array([1.0, 5.0, 4.8, 2.0, 4.0, 3.0]), np.array([0.0, 0, 9, 9, 1, 9]))[:num_objectives]
    six, protocol = table(*columns), Protocol(tolerance=0.2, budget=2)
    orders = collect(protocol.measures(order, six) for order in permutations(range(6)))
    exact = exact_random_search(six, protocol)
    assert set(exact) == set(orders)
    for name, moments in exact.items():
        assert moments == pytest.approx((orders[name].mean(), orders[name].std()))


@pytest.mark.parametrize(
    ("objectives", "budget", "expected"),
    [
        (("dev_bleu",), 20, {"ftb": (38.52, 27.85), "ftc": (10.11, 9.47), "fb": (0.1404, 0.2045)}),
        (("dev_bleu", "-dev_gpu_time"), 50, {"fto": (24.35, None), "fta": (112.2, None), "fbp": (1.05, None)}),
    ],
)
def test_the_published_sequences(
    shared_data: Path, objectives: "tuple[str, ...]", budget: int, expected: "dict[str, tuple[float, float]]"
) -> None:
    tables = shared_data / "tables" / "hpo_nmt"
    lines = (tables / "examples" / "example.ss").read_text().splitlines()
    orders = [[int(row) for row in line.split()] for line in lines]
    zh_en = read_files(tables / "zh-en", objectives)
    found = collect(Protocol(budget=budget).measures(order, zh_en) for order in orders)
    for name, (mean, sd) in expected.items():
        digits = 4 if name == "fb" else 2
        assert round(found[name].mean(), digits) == mean
        assert sd is None or round(found[name].std(), digits) == sd


def test_ours_stand_beside_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    for name in ("zh-en", "aa-bb"):
        read = read_files(write_files(tmp_path / name), ("dev_bleu", "-dev_gpu_time"))
        assert (read.name, read.points.inputs.shape, read.front.tolist()) == (name, (24, 3), [0, 23])
        assert read.scores[[0, 23]].tolist() == [[12.9, -100], [13.0, -400]]
        assert np.flatnonzero(~read_files(tmp_path / name, ("gpu_memory",)).succeeded).tolist() == [3]
    monkeypatch.setattr(import_module("reproduce_zhang_duh"), "FRONT_BUDGETS", {"zh-en": 10, "aa-bb": 10})
    text = run_script("reproduce_zhang_duh", "--data", tmp_path, "--trials", 2, "--only", "RS|_M$|^gp")
    (headings, _, *single), (front_headings, _, *front) = (cells_of(part) for part in text.split("### ")[1:])
    assert headings[:5] == ["method", "aa-bb ftb", "aa-bb ftc", "aa-bb fb", "zh-en ftb"]
    assert front_headings[:5] == ["method", "aa-bb fto", "aa-bb fta", "aa-bb fbp", "zh-en fto"]
    rows = {row[0]: row for row in single}
    assert list(rows) == ["RS, exactly", "RS", "BO_EI_M", "GB_EI_M", "GB_EIF_M", "gp_ei, prior_mean 0", "gp_ei"]
    assert rows["RS, exactly"][1].startswith("13±7")
    assert "(" not in rows["BO_EI_M"][1] and "(29±19)" in rows["BO_EI_M"][4]
    assert [row[0] for row in front] == ["RS, exactly", "RS", "BO_M", "GB_M", "gp_ehvi"]
