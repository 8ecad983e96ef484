"""The scripts are run by hand, for minutes; here on two repetitions of something small, so that they cannot rot."""

import sys
from importlib import import_module
from types import ModuleType

import pytest

from fiesta_allennlp.replays.sources import PRESETS
from fiesta_allennlp.selection.strategy_building import build_strategy


@pytest.fixture
def script() -> ModuleType:
    return import_module("strategies")


def test_every_row_can_be_built_and_told_apart(script: ModuleType) -> None:
    rows = [row for section in script.SECTIONS.values() for row in section]
    assert len({row.label for row in rows}) == len(rows) == 28
    for row in rows:
        build_strategy(row.settings(500), list(row.candidates))


def test_rows_are_printed_as_a_table(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    options = {"strategy": "sequential_halving", "budget": 8, "processes": 1}
    rows = [script.Row({**options, "splits": splits}, source=PRESETS["tie"]) for splits in ("shared", "independent")]
    monkeypatch.setattr(script, "SECTIONS", {"Ties": rows})
    monkeypatch.setattr(sys, "argv", ["strategies.py", "--repetitions", "2", "--only", "shared"])
    script.main()
    title, blank, heading, rule, row = capsys.readouterr().out.strip().splitlines()
    assert (title, blank) == ("### Ties", "")
    assert heading.count("|") == rule.count("|") == row.count("|") == len(script.HEADINGS) + 1
    assert row.startswith("| sequential_halving | ")
    assert " | shared | 1 | 8 | - | 8.0 | 8-8 | 8.0 | " in row
