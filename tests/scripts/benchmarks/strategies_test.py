"""The scripts are run by hand, for minutes; here on two repetitions of something small, so that they cannot rot."""

from importlib import import_module
from types import ModuleType
from typing import Callable

import pytest

from fiesta_allennlp.replays.sources import PRESETS
from fiesta_allennlp.selection.strategy_building import build_strategy
from tests.scripts.conftest import cells_of


@pytest.fixture
def script() -> ModuleType:
    return import_module("strategies")


def test_every_row_can_be_built_and_told_apart(script: ModuleType) -> None:
    rows = [row for section in script.SECTIONS.values() for row in section]
    assert len({row.label for row in rows}) == len(rows) == 28
    for row in rows:
        build_strategy(row.settings(500), list(row.candidates))


def test_rows_are_printed_as_a_table(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    options = {"strategy": "sequential_halving", "budget": 8, "processes": 1}
    rows = [script.Row({**options, "splits": splits}, source=PRESETS["tie"]) for splits in ("shared", "independent")]
    monkeypatch.setattr(script, "SECTIONS", {"Ties": rows})
    headings, _, row = cells_of(run_script("strategies", "--repetitions", 2, "--only", "shared"))
    assert (headings, len(row)) == (list(script.HEADINGS), len(script.HEADINGS))
    assert row[:1] + row[2:9] == ["sequential_halving", "shared", "1", "8", "-", "8.0", "8-8", "8.0"]
