"""How selections stand: finished, interrupted, by documents, running in another process, and none."""

from pathlib import Path
from typing import Any, Callable, List

import pytest

from tests.golden import make_selection, project
from tests.selections import ENVIRONMENT, write_selection


@pytest.fixture
def status(in_process: Callable[..., Any]) -> Any:
    return in_process("status")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("finished", ["is the best with probability", "The last run finished"]),
        ("interrupted", ["Interrupted after"]),
        ("failed", ["failed"]),
        ("documents", ["queries"]),
    ],
)
def test_a_selection_is_shown_and_left_as_it_is(status: Any, tmp_path: Path, name: str, said: List[str]) -> None:
    if name == "interrupted":
        write_selection(tmp_path / name, {"a": [0.8, 0.9], "b": [0.6, 0.7]}, pending=[("a", 2)]).close()
    else:
        make_selection(tmp_path, name)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / name).rglob("*")}
    with project(tmp_path):
        output = status.done(tmp_path / name, "--follow", "--every", 1000)
    for words in said:
        assert words in output
    assert ("pending" in output) == (name == "interrupted"), "no column without a number"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / name).rglob("*")} == before


def test_a_running_selection_says_so_and_is_not_locked(status: Any, tmp_path: Path) -> None:
    here = {"environments": [ENVIRONMENT]}
    store = write_selection(tmp_path, {"a": [0.8, 0.9], "b": [0.6, 0.7]}, pending=[("a", 2), ("a", 3)], meta=here)
    code, output = status(tmp_path)
    store.close()
    assert code == 0
    assert "running" in output and "After 4 runs of 2 candidates, a leads" in output
    rows = [line.split()[:3] for line in output.splitlines() if line.split()[:1] in (["a"], ["b"])]
    assert rows == [["a", "2", "2"], ["b", "2", "0.6500"]]  # finished, and running if any


def test_what_is_no_selection_is_said(status: Any, tmp_path: Path) -> None:
    assert "'store.sqlite' is missing" in status.refused(tmp_path)
    assert "--every" in status.refused(tmp_path, "--every", 0)
