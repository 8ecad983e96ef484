"""The executor of `examples/executor`, which comes from a package of the user's."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Callable

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from tests.conftest import REPOSITORY
from tests.run_files import scores_of
from tests.running.conftest import Build, failure_of, given, pids_in, until_ended
from tests.running.light import Light, request, start_selection, wanted_scores, write_programs

EXAMPLE = str(REPOSITORY / "examples" / "executor")


@pytest.fixture
def make(build: Build, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.chdir(REPOSITORY)
    return partial(build, import_module("fresh_process").FreshProcessExecutor)


def test_each_end_of_a_run_is_an_outcome(make: Callable[..., Any]) -> None:
    outcomes = given(make(workers=2), "die", "lack", "score").completed()
    ends = {outcome.request.replicate: getattr(outcome, "kind", None) for outcome in outcomes}
    assert ends == {0: "killed", 1: "machine", 2: None}
    assert failure_of(make(time_limit=0.2), Light("hang")).kind == "timeout"


def test_an_abandoned_run_ends_with_its_children(make: Callable[..., Any], directory: RunDirectory) -> None:
    with_child = make()
    with_child.submit(Light("hang"), request(0))
    child = pids_in(directory.evaluation(request(0).name) / "child")
    with_child.abandon([request(0)])
    until_ended(child)
    assert list(with_child.completed()) == []


def test_a_selection_names_it_and_has_the_scores_of_any_other_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{EXAMPLE}:{REPOSITORY}")
    named = ("--include-package", "fresh_process", "--executor", "fresh_process", "--workers", "2", "--budget", "2")
    assert start_selection(tmp_path / "run", write_programs(tmp_path), *named).wait() == 0
    assert scores_of(tmp_path / "run") == {row for row in wanted_scores() if row[1] == "0"}
