"""The script is run by hand, for minutes; here on two repetitions of a preset, so that it cannot rot."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fiesta_allennlp.evaluators.score_presets import PRESETS
from fiesta_allennlp.strategy_building import build_strategy
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = REPOSITORY / "scripts" / "benchmark_strategies.py"
    spec = importlib.util.spec_from_file_location("benchmark_strategies", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_row_can_be_built_and_told_apart(script: ModuleType) -> None:
    rows = [row for section in script.SECTIONS.values() for row in section]
    assert len({row.label for row in rows}) == len(rows) == 25
    for row in rows:
        build_strategy(row.settings(500), list(row.candidates))


def test_rows_are_printed_as_a_table(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    options = {"strategy": "sequential_halving", "budget": 8, "processes": 1}
    rows = [script.Row({**options, "splits": splits}, source=PRESETS["tie"]) for splits in ("shared", "independent")]
    monkeypatch.setattr(script, "SECTIONS", {"Ties": rows})
    monkeypatch.setattr(sys, "argv", ["benchmark_strategies.py", "--repetitions", "2", "--only", "shared"])
    script.main()
    title, blank, heading, rule, row = capsys.readouterr().out.strip().splitlines()
    assert (title, blank) == ("### Ties", "")
    assert heading.count("|") == rule.count("|") == row.count("|") == len(script.HEADINGS) + 1
    assert row.startswith("| sequential_halving | ")
    assert " | shared | 1 | 8 | - | 8.0 | 8-8 | 8.0 | " in row


def test_the_released_table_is_found(script: ModuleType, shared_data: Path) -> None:
    assert (shared_data / "scores" / script.RELEASED.name).is_file()
