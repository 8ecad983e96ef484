import pytest

from tests.conftest import REPOSITORY

SCRIPTS = str(REPOSITORY / "scripts")
BENCHMARKS = str(REPOSITORY / "scripts" / "benchmarks")


@pytest.fixture(autouse=True)
def scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """`scripts/` is no package: its modules are found as when one of them is run."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(SCRIPTS)
