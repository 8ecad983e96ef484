import os
import sys
from importlib import import_module
from typing import Callable, List

import pytest

from tests.conftest import REPOSITORY

BENCHMARKS = str(REPOSITORY / "scripts" / "benchmarks")
sys.path += [str(REPOSITORY / "scripts"), BENCHMARKS]
"""`scripts/` is no package: its modules are found as when one of them is run."""


@pytest.fixture(autouse=True)
def processes_find_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([BENCHMARKS, str(REPOSITORY)]))


@pytest.fixture
def run_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """Runs a script with arguments. Returns what it printed."""

    def run(name: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        import_module(name).main()
        return str(capsys.readouterr().out)

    return run


def cells_of(text: str) -> List[List[str]]:
    """The cells of each row of the Markdown tables in a text, headings and rules included."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
