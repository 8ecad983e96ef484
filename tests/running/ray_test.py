"""Against a real Ray cluster of a head and a second node, which is killed."""

import os
import signal
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict

import psutil
import pytest
from rich.console import Console

from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.running.jobs import Attempt
from fiesta_allennlp.running.ray import RayExecutor, _connect
from fiesta_allennlp.selecting.session import run_selection
from tests.conftest import REPOSITORY, until
from tests.run_files import num_finished, scores_of
from tests.running.conftest import Build, failure_of, given, pids_in, score_of, scores, until_ended
from tests.running.light import Light, is_running, request, start_selection, started, wanted_scores, write_programs

pytest.importorskip("ray", reason="Ray is not installed: pip install fiesta-allennlp[ray]")
pytestmark = pytest.mark.ray

Make = Callable[..., RayExecutor]


@pytest.fixture
def make(cluster: Any, build: Build, directory: RunDirectory) -> Make:
    directory.root.mkdir(mode=0o700)
    return partial(build, RayExecutor)


def test_scores_and_failures_come_with_their_files(make: Make, directory: RunDirectory) -> None:
    assert scores(given(make(workers=2), "score", "stay light").completed()) == [0, 1]
    assert "log of a-1" in directory.evaluation_log("a-1").read_text()
    for what, kind, words in (
        ("die", "killed", "signal 9"),
        ("find other data", "data", "train.jsonl is gone"),
        ("fill the disk", "disk", ""),
        ("device", "error", "could not convert string to float: ''"),  # no GPU was asked for, so none is seen
        ("leave a child and exit", "killed", "exit status 3"),
    ):
        failure = failure_of(make(), Light(what))
        assert failure.kind == kind and words in failure.error
        assert "log of a-0" in (directory.root / str(failure.log_path)).read_text()
    until_ended(pids_in(directory.evaluation("a-0") / "child", 2))
    assert not list(directory.jobs.iterdir())


def test_a_part_of_a_card_is_set_aside_and_the_card_is_seen(make: Make) -> None:
    executor = make(workers="auto", options={"num_cpus": "0.25", "num_gpus": "0.5"})
    assert executor.slots == 2
    assert score_of(executor, Light("device")) == 0  # what CUDA_VISIBLE_DEVICES was


def test_a_cluster_of_ones_own_gets_a_token_that_no_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would write one into the home if there were none. Who has a token there keeps it."""
    stub, token = SimpleNamespace(init=lambda **options: None), tmp_path / ".ray" / "auth_token"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    token.parent.mkdir()
    token.write_text("a" * 40)
    _connect(stub, "local")
    assert "RAY_AUTH_TOKEN" not in os.environ
    token.unlink()
    _connect(stub, "local")
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64


def test_a_node_that_does_not_see_the_run_directory_ends_the_selection(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is deleted after it was handed on, as where another disk is mounted at its path."""
    hand_to = Attempt.hand_to

    def hand_to_and_hide(attempt: Attempt, job: str) -> None:
        hand_to(attempt, job)
        attempt.directory.rename(directory.root / "hidden")

    executor = make()
    monkeypatch.setattr(Attempt, "hand_to", hand_to_and_hide)
    with pytest.raises(FiestaError, match="node .*a-0/.*must share"):
        list(given(executor, "score").completed())


def test_a_node_that_is_stopped_costs_its_running_evaluation_which_is_started_again_elsewhere(
    make: Make, cluster: Any, second_node: Any, tmp_path: Path
) -> None:
    executor = make(workers="auto")
    assert executor.slots == 2
    given(executor, "wait", "wait")
    until(lambda: len(started(tmp_path)) == 2)
    first = started(tmp_path)
    cluster.remove_node(second_node, allow_graceful=True)
    until(lambda: sum(map(is_running, first)) == 1)
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0, 1]
    assert len(started(tmp_path)) == 3


def test_a_worker_of_ray_that_is_killed_costs_nothing(make: Make, tmp_path: Path) -> None:
    executor = given(make(), "wait")
    until(lambda: len(started(tmp_path)) == 1)
    below = psutil.Process().children(recursive=True)
    (rays_worker,) = [process for process in below if process.name() == "ray::a-0"]
    rays_worker.kill()
    until_ended(started(tmp_path))
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0]
    assert len(started(tmp_path)) == 2


def test_an_abandoned_evaluation_ends_and_frees_its_slot(make: Make, tmp_path: Path) -> None:
    executor = given(make(), "wait", "score", "score")
    until(lambda: bool(started(tmp_path)))
    executor.abandon([request(0), request(1), request(9)])
    until_ended(started(tmp_path)[:1])
    assert scores(executor.completed()) == [2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_gpus": "2"}, "no node .* 1 CPU, 2 GPU"),
        ({"colour": "blue"}, "Invalid option keyword colour"),
        ({"num_cpus": "many"}, "num_cpus"),
        ({"max_retries": "3"}, "--executor-option max_retries: the selection gives"),
    ],
)
def test_options_that_ray_would_not_take_are_refused_in_its_own_words(
    make: Make, options: Dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make(options=options)


def test_a_selection_survives_its_driver_and_a_node(
    cluster: Any, second_node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed, then the selection is recovered and a node is killed: the scores are those of an
    uninterrupted selection on this machine, and nothing has failed."""
    quiet, run, candidates = Console(quiet=True), tmp_path / "run", write_programs(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    on_ray = ("--executor", "ray", "--executor-option", f"address={cluster.address}", "--workers", "auto")
    driver = start_selection(run, candidates, *on_ray)
    until(lambda: num_finished(run) >= 2 or driver.poll() is not None)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL

    def kill_node() -> None:
        before = num_finished(run)
        until(lambda: num_finished(run) >= before + 2)
        cluster.remove_node(second_node, allow_graceful=False)

    killer = threading.Thread(target=kill_node)
    killer.start()
    result = run_selection(TrainingSelection, {}, run, console=quiet, recover=True)
    killer.join()
    assert (result.num_evaluations, result.num_failures) == (6, 0)
    assert scores_of(run) == wanted_scores()
