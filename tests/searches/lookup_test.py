from pathlib import Path
from typing import Callable

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.lookup import Lookup, build_searcher, look_up
from fiesta_allennlp.searches.lookup_settings import LookupSettings
from fiesta_allennlp.searches.protocols import Protocol
from fiesta_allennlp.searches.random_search import exact_random_search
from fiesta_allennlp.searches.tables import read_files

Write = Callable[[str], Path]


def test_random_search_agrees_with_its_closed_form(write_files: Write) -> None:
    table, protocol = read_files(write_files("xx"), ("dev_bleu",)), Protocol(budget=5)
    found = Lookup(table, build_searcher({"type": "random"}), protocol, entropy=2).run(200)
    for name, (mean, sd) in exact_random_search(table, protocol).items():
        assert found.mean_and_sd(name)[0] == pytest.approx(mean, abs=3 * sd / 200**0.5)


def test_searches_run_no_row_twice_and_begin_alike(write_files: Write) -> None:
    table = read_files(write_files("xx"), ("dev_bleu",))
    orders = {
        name: Lookup(table, build_searcher({"type": name}), Protocol(budget=20), entropy=1).order(7)
        for name in ("random", "gp_ei", "graph_eif")
    }
    assert len({tuple(order[:3]) for order in orders.values()}) == 1
    assert all(len(set(order)) == len(order) >= 20 for order in orders.values())


def test_a_search_finds_the_best_sooner_than_random_search(write_files: Write) -> None:
    table = read_files(write_files("xx"), ("dev_bleu",))
    found = Lookup(table, build_searcher({"type": "gp_ei"}), Protocol(budget=5), entropy=1).run(20)
    assert found.mean_and_sd("ftb")[0] < 9 < exact_random_search(table, Protocol(budget=5))["ftb"][0]


def test_points_of_a_batch_are_chosen_without_each_others_scores(write_files: Write) -> None:
    table = read_files(write_files("xx"), ("dev_bleu",))
    searcher = build_searcher({"type": "gp_ei"})
    one, four = (Lookup(table, searcher, Protocol(), entropy=1, batch_size=size) for size in (1, 4))
    assert one.order(0) != four.order(0)
    assert len(four.order(0)) % 4 == 0


def test_all_tables_of_a_directory_are_searched(write_files: Write) -> None:
    directory = write_files("xx").parent
    write_files("yy")
    told = []
    settings = LookupSettings(table=str(directory), trials=3, budget=4, searcher="random", entropy=5)
    result = look_up(settings, on_trials=lambda number, total: told.append((number, total)))
    assert list(result.measured) == ["xx", "yy"]
    assert np.array_equal(result.measured["xx"].values["ftb"], result.measured["yy"].values["ftb"])
    assert told == [(1, 6)] * 6
    assert result.random["xx"]["ftb"][0] == pytest.approx((3 * 3 + sum(range(4, 25))) / 24)


def test_fresh_entropy_is_recorded(write_files: Write) -> None:
    first, again = (look_up(LookupSettings(table=str(write_files("xx")), trials=1)) for _ in range(2))
    assert first.settings.entropy != again.settings.entropy


def test_an_interrupt_keeps_the_tables_that_are_done(write_files: Write) -> None:
    directory = write_files("xx").parent
    write_files("yy")
    calls = []

    def interrupt(number: int, total: int) -> None:
        calls.append(number)
        if len(calls) == 3:
            raise KeyboardInterrupt

    result = look_up(LookupSettings(table=str(directory), trials=2, searcher="random"), on_trials=interrupt)
    assert result.interrupted
    assert list(result.measured) == ["xx"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"searcher": "gp_ehvi"}, "this searcher needs 2 objectives but got dev_bleu"),
        ({"searcher": "gp"}, "'type' is 'gp', which nothing is registered as"),
        ({"searcher": {"type": "gp_ei", "kernels": "rbf"}}, "--searcher gp_ei: .*kernels"),
        ({"searcher": "gp_ei", "objective": ("a", "b", "c")}, "--objective: give one or two but got 3: a, b, c"),
        ({"searcher": "gp_ei", "inputs": ("a",)}, "--inputs is for a CSV file"),
        ({"searcher": "gp_ei", "budget": 25}, "xx: has 24 runs, but the budget is 25"),
        ({"table": "runs.csv"}, "--objective is missing: say which column of runs.csv"),
        ({"tolerance": -1.0}, "--tolerance must not be negative but got -1.0"),
    ],
)
def test_what_cannot_work_is_refused(write_files: Write, given: "dict[str, object]", said: str) -> None:
    stem = write_files("xx")
    with pytest.raises(ConfigError, match=said):
        look_up(LookupSettings(**{"table": str(stem), "trials": 1, **given}))  # type: ignore[arg-type]
