"""The scripts are run by hand, for minutes; here on something small, so that they cannot rot."""

from importlib import import_module
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest

from tests.scripts.conftest import cells_of


@pytest.fixture
def run_twice(tmp_path: Path, run_script: Callable[..., str]) -> Callable[..., List[Any]]:
    """Runs a benchmark twice, and returns all lines of its file of results."""

    def run(name: str, *arguments: Any) -> List[Any]:
        results = tmp_path / "results.csv"
        for _ in range(2):
            run_script(name, *arguments, "--results", results)
        return import_module("common").read_rows(results, import_module(name).ResultRow)

    return run


@pytest.mark.parametrize(
    ("name", "arguments", "cells"),
    [
        (
            "pairs",
            ("--only", "early", "--gaps", 40, "--repetitions", 5),
            [["40", "6.0", "1.000 (0.722-1.000)", "0.000 (0.000-0.278)"]],
        ),
        (
            "confirmation",
            ("--gaps", 40, "--repetitions", 3),
            [
                [splits, "40", "6", "1.000 (0.610-1.000)", "1.000", "0.000 (0.000-0.390)"]
                for splits in ("shared", "official")
            ],
        ),
    ],
)
def test_a_clear_lead_is_found_and_its_counts_are_pooled(
    name: str, arguments: Any, cells: List[List[str]], run_twice: Callable[..., List[Any]]
) -> None:
    rows = import_module(name).table_rows(run_twice(name, *arguments))
    assert [list(row[: len(row_cells)]) for row, row_cells in zip(rows, cells, strict=True)] == cells


def test_every_call_draws_another_seed_and_appends_its_counts(run_twice: Callable[..., List[Any]]) -> None:
    arguments = ("--set", "tuning", "--only", "^near tie", "--repetitions", 2)
    first, second = lines = run_twice("calibration", *arguments)
    assert first.seed != second.seed
    assert all(line.wrong <= line.named <= line.repetitions == 2 for line in lines)
    (row,) = import_module("calibration").pool_rows(lines, "tuning")
    assert row[:2] == ("near tie, 4", "4")
    assert not import_module("calibration").pool_rows(lines, "reporting")


def test_the_released_scores_are_a_set_of_problems(shared_data: Path, run_twice: Callable[..., List[Any]]) -> None:
    lines = run_twice("calibration", "--set", "released", "--repetitions", 1)
    assert [line.family for line in lines[:3]] == [f"released scores, workers: {number}" for number in (1, 4, 8)]


def test_the_forecast_is_compared_with_the_runs_that_followed(
    run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = import_module("forecasts")
    first = [forecasts.Outcome("start", 8, 6, 9, 0.5, True), forecasts.Outcome("middle", 1, 2, 3, 0.9, True)]
    found = iter([first, [forecasts.Outcome("start", 12, 6, 9, 0.7, False)]])
    monkeypatch.setattr(forecasts, "outcomes", lambda simulator, repetition: next(found))
    assert cells_of(run_script("forecasts", "--repetitions", 2, "--problems", "near tie, 4"))[2:] == [
        ["near tie, 4", "start", "2", "10.0", "6 to 9", "0.00", "0.50", "0.50", "0.60 and 0.50"],
        ["near tie, 4", "middle", "1", "1.0", "2 to 3", "1.00", "0.00", "0.00"],
    ]
    monkeypatch.undo()
    simulator = forecasts.make_simulator(forecasts.PROBLEMS["2 candidates, 3 sds apart"])
    assert [one.moment for repetition in range(4) for one in forecasts.outcomes(simulator, repetition)]


def test_the_columns_of_tables_by_hand() -> None:
    lead, ends = import_module("pairs").lead_interval(np.array([3.0, 4.0, 8.0, 9.0]), np.array([1.0, 3.0, 5.0]))
    # The differences 2, 1 and 3 have the sd 1; t(0.975; 2) is 4.3027.
    assert lead == 2 and ends == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-3)
    confirmation = import_module("confirmation")
    row = confirmation.ResultRow("shared", 0.0, 1, 100, 50, 1, 3, 2, 95)
    assert confirmation.cells([row])[5].split()[0] == "0.050", "every verdict about equal models is wrong"
    # The noncentral t of 10 runs each, one-sided 0.025.
    assert confirmation.power_by_formula("official", 1.0) == pytest.approx(0.562, abs=0.001)
    assert confirmation.power_by_formula("shared", 0.0) == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("settings", "sd"),
    [
        ({"tail_df": 5.0}, 1),
        ({"skew": 2.0}, 1),
        ({"noise_growth": 0.3}, np.exp(0.3)),
        ({"failing": {"a": (0.2, 5)}}, np.sqrt(1 + 25 * 0.2 * 0.8)),
    ],
)
def test_noise_has_mean_0_and_the_standard_deviation_of_its_family(settings: Any, sd: float) -> None:
    family = import_module("families").Family("x", {"a": 0.6, "b": 0.58}, **settings)
    noise = family.noise("a", np.random.default_rng(1), 200_000) / 0.0198
    assert abs(noise.mean()) < 0.02 * sd and noise.std() == pytest.approx(sd, rel=0.02)


def test_no_family_is_for_tuning_and_for_reporting() -> None:
    sets = import_module("families").SETS
    names = [family.name for families in sets.values() for family in families]
    assert len(set(names)) == len(names)
    families = [*sets["tuning"], *sets["reporting"]]
    assert all(max(f.means.values()) - min(f.means.values()) > f.margin for f in families), "a winner can be wrong"


def test_what_a_selection_found_is_written_beside_the_released_scores(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    scores = (("a", 0, 0.45), ("a", 1, 0.56), ("b", 0, 0.7), ("b", 1, 0.8))
    lines = ["candidate,replicate,status,score", *(f"{n},{k},finished,{s}" for n, k, s in scores), "a,2,failed,"]
    (tmp_path / "one" / "scores.csv").write_text("\n".join(lines) + "\n")
    released = {"a": [0.4] * 5 + [0.6] * 5, "b": [0.3] * 5 + [0.5] * 5}
    rows = import_module("real_runs").compared_rows(["one", "one"], released, tmp_path)
    # b: 0.75 (error 0.0289 of 4 runs) and 0.4 (error 0.1 of two splits): (0.75 - 0.4) / 0.1041 = 3.4
    assert ("`b`", "4", "0.750", "0.058", "0.400", "0.105", "+3.4", "1 / 2") in rows


def test_tables_are_filled_between_their_markers() -> None:
    tables = import_module("common").PageTables("sum: (?P<n>\\d)", lambda match: [("a",), (match["n"],)], [])
    page = tables.fill("before\n<!-- sum: 7 -->\nold\n<!-- end -->\nafter\n")
    assert page == "before\n<!-- sum: 7 -->\n| a |\n| --- |\n| 7 |\n<!-- end -->\nafter\n"
    assert tables.fill(page) == page
