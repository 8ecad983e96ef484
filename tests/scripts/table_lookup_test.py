import sys
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.searchers.base import Points
from tests.scripts.conftest import SCRIPTS
from tests.scripts.zhang_duh_files import write_files

sys.path.append(SCRIPTS)

from table_lookup import Measured, Protocol, SearchTable, exact_random_search, read_files

FRONT = ("dev_bleu", "-dev_gpu_time")

SCORES = np.array([1.0, 5.0, 4.8, 2.0, 5.0, np.nan, 3.0])


@pytest.fixture
def stem(tmp_path: Path) -> Path:
    """A synthetic table."""
    return write_files(tmp_path / "xx")


def table(*columns: np.ndarray) -> SearchTable:
    scores = np.column_stack(columns)
    return SearchTable("seven", Points(np.arange(float(len(scores)))[:, None]), ("a", "b")[: len(columns)], scores)


def test_the_protocols_of_one_objective_by_hand() -> None:
    protocol, seven = Protocol(tolerance=0.2, budget=4), table(SCORES)
    assert protocol.measures([0, 3, 5, 6, 2, 4, 1], seven) == {"ftb": 7, "ftc": 5, "fb": 2.0}  # the first of equals
    assert protocol.measures([1, 0, 3, 2], seven) == {"ftb": 3, "ftc": 3, "fb": 0}  # never before the random points
    assert Protocol(budget=1).measures([5, 1], seven)["fb"] == np.inf


def test_the_protocols_of_two_objectives_by_hand() -> None:
    seven = table(SCORES, -SCORES)
    assert seven.front.tolist() == [0, 1, 2, 3, 4, 6]
    front = table(SCORES, np.array([0.0, 0, 9, 9, 1, 9, 0]))
    assert front.front.tolist() == [2, 4]
    assert Protocol(budget=4).measures([0, 1, 3, 4, 5, 2, 6], front) == {"fto": 4, "fta": 6, "fbp": 1}


def test_a_search_goes_on_until_the_measures_are_settled() -> None:
    protocol, seven = Protocol(budget=4), table(SCORES)
    assert not protocol.is_settled([1, 0, 3], seven)
    assert protocol.is_settled([1, 0, 3, 2], seven)
    assert not protocol.is_settled([0, 3, 2, 4, 6], seven)
    with pytest.raises(ConfigError, match="seven: has 7 runs, but the budget is 8 after 3 random ones"):
        Protocol(budget=8).check(seven)


@pytest.mark.parametrize("num_objectives", [1, 2])
def test_random_search_is_the_mean_over_all_orders(num_objectives: int) -> None:
    columns = (np.array([1.0, 5.0, 4.8, 2.0, 4.0, 3.0]), np.array([0.0, 0, 9, 9, 1, 9]))[:num_objectives]
    six, protocol = table(*columns), Protocol(tolerance=0.2, budget=2)
    orders = Measured.of([protocol.measures(order, six) for order in permutations(range(6))])
    exact = exact_random_search(six, protocol)
    assert set(exact) == set(orders.values)
    for name, moments in exact.items():
        assert moments == pytest.approx(orders.mean_and_sd(name))


def test_random_search_with_a_failed_run() -> None:
    # Of the pairs among four runs, three have the best, two of the others the second, and one the third; none has none.
    scores = np.array([3.0, 2.0, 1.0, np.nan])
    bests = [np.nanmax(scores[list(pair)]) for pair in combinations(range(4), 2)]
    exact = exact_random_search(table(scores), Protocol(tolerance=0, budget=2))
    assert exact["fb"][0] == pytest.approx(3 - np.mean(bests))


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
    if not tables.is_dir():
        pytest.skip(f"no {tables}")
    lines = (tables / "examples" / "example.ss").read_text().splitlines()
    orders = [[int(row) for row in line.split()] for line in lines]
    zh_en = read_files(tables / "zh-en", objectives)
    found = Measured.of([Protocol(budget=budget).measures(order, zh_en) for order in orders])
    for name, (mean, sd) in expected.items():
        digits = 4 if name == "fb" else 2
        assert round(found.mean_and_sd(name)[0], digits) == mean
        assert sd is None or round(found.mean_and_sd(name)[1], digits) == sd


def test_the_closed_form_of_random_search_on_a_published_table(shared_data: Path) -> None:
    tables = shared_data / "tables" / "hpo_nmt"
    if not tables.is_dir():
        pytest.skip(f"no {tables}")
    single = exact_random_search(read_files(tables / "zh-en", ("dev_bleu",)), Protocol())
    # 7 of the 118 systems are close. The first of m among n is at (n + 1) / (m + 1) on average, but never before 3.
    rounded = {name: [round(moment, 2) for moment in moments] for name, moments in single.items()}
    assert rounded == {"ftb": [59.53, 34.02], "ftc": [15.05, 12.49], "fb": [0.26, 0.26]}
    assert 119 / 8 < single["ftc"][0] < 119 / 8 + 0.2
    front = read_files(tables / "zh-en", ("dev_bleu", "-dev_gpu_time"))
    exact = exact_random_search(front, Protocol(budget=50))
    assert exact["fta"][0] == pytest.approx(3 * 119 / 4)
    assert exact["fbp"][0] == pytest.approx(3 * 50 / 118)
    assert round(exact["fto"][0], 1) == 29.8


def test_the_files_of_a_table(stem: Path) -> None:
    table = read_files(stem, FRONT)
    assert (table.name, table.points.inputs.shape, table.objectives) == ("xx", (24, 3), FRONT)
    assert table.scores[0].tolist() == [12.9, -100]
    assert table.scores[23].tolist() == [13.0, -400]
    assert table.front.tolist() == [0, 23]


def test_memory_of_zero_is_unknown(stem: Path) -> None:
    table = read_files(stem, ("dev_bleu", "-gpu_memory"))
    assert np.flatnonzero(~table.succeeded).tolist() == [3]
    assert 3 not in table.front
