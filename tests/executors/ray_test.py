"""Against a real Ray cluster of a head without room for work and two nodes, one of which is killed."""

import errno
import json
import os
import platform
import signal
import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator, List
from unittest.mock import Mock

import psutil
import pytest
from rich.console import Console

from fiesta_allennlp.core.blame import MachineFacts
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError
from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.executors.ray import RayExecutor, connect
from fiesta_allennlp.trainings.programs.run import ProgramRun
from fiesta_allennlp.trainings.select import select
from tests.conftest import REPOSITORY, until
from tests.executors.conftest import Build, failure_of, given, only_failure, pids_in, score_of, scores, until_ended
from tests.executors.killed_confirmation import check_confirmation_survives_its_command
from tests.executors.light import (
    Light,
    Reading,
    is_running,
    request,
    start_selection,
    started,
    wanted_scores,
    write_programs,
)
from tests.programs import program_config
from tests.run_files import num_finished, scores_of

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install fiesta-allennlp[ray]")
pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray")]


Make = Callable[..., RayExecutor]


@pytest.fixture
def make(cluster: Any, build: Build) -> Make:
    return partial(build, RayExecutor)


def test_a_worker_loads_neither_torch_nor_allennlp_unless_told(make: Make) -> None:
    assert score_of(make(), Light("stay light")) == 0


def test_scores_and_files_come_back(make: Make, directory: RunDirectory) -> None:
    assert scores(given(make(workers=2), *["score"] * 3).completed()) == [0, 1, 2]
    assert "this is the log of a-2" in directory.evaluation_log("a-2").read_text()
    assert (directory.evaluation("a-2") / "pid").read_text().isdigit()
    assert not list(directory.root.glob("evaluations/*.part"))


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("raise", "error", "ValueError: no such luck"),
        ("die", "killed", "signal 9"),
        ("find other data", "data", "train.jsonl is gone"),
    ],
)
def test_a_failure_comes_back_with_its_reason_and_its_log(
    make: Make, directory: RunDirectory, what: str, kind: str, words: str
) -> None:
    failure = failure_of(make(), Light(what))
    assert failure.kind == kind and words in failure.error
    assert failure.log_path == "failures/a-0.1.log"
    assert (failure.origin.host, failure.origin.is_only_machine) == (platform.node(), True)
    assert "this is the log of a-0" in (directory.root / failure.log_path).read_text()


def test_without_gpus_asked_for_none_is_seen(make: Make) -> None:
    assert "could not convert string to float: ''" in failure_of(make(), Light("device")).error


def test_a_part_of_a_card_is_set_aside_and_the_card_is_seen(make: Make) -> None:
    executor = make(workers="auto", cpus_per_evaluation=0.25, gpus_per_evaluation=0.5)
    assert executor.slots == 2
    assert score_of(executor, Light("device")) == 0  # what CUDA_VISIBLE_DEVICES was


@pytest.mark.parametrize("ship_data", [False, True])
def test_made_files_are_always_sent_and_data_files_on_demand(
    make: Make, directory: RunDirectory, tmp_path: Path, ship_data: bool
) -> None:
    (tmp_path / "train.txt").write_text("12345")
    (tmp_path / "vectors.txt").write_text("123")
    evaluator = Reading((str(tmp_path / "train.txt"),), (str(tmp_path / "vectors.txt"),))
    assert score_of(make(ship_data=ship_data), evaluator) == 8
    train, vectors = (directory.evaluation("a-0") / "places").read_text().splitlines()
    assert (train == str(tmp_path / "train.txt")) is not ship_data
    assert vectors != str(tmp_path / "vectors.txt")
    assert (Path(train).name, Path(vectors).name) == ("train.txt", "vectors.txt")
    assert not Path(vectors).exists()


def test_a_program_gets_its_sets_and_its_script_on_a_node(
    make: Make, directory: RunDirectory, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reviews)
    (reviews / "score.sh").write_text('cp "$3" "$5/test"; echo "accuracy 0.$4"')
    command = ["sh", "score.sh", "{train}", "{validation}", "{test}", "{seed}", "{directory}"]
    config = program_config(reviews, "", command=command)
    executor = make(ship_data=True, packages=(ProgramRun.__module__,))
    program = ProgramRun(config, "accuracy", working_directory=str(reviews))
    assert score_of(executor, program) == float(f"0.{request(0).random_seed}")
    left = directory.evaluation(request(0).name)
    assert len((left / "output" / "test").read_text().splitlines()) == 20 and not (left / "data").exists()
    sent = json.loads((left / "outcome.json").read_text())["command"][1]
    assert sent.endswith("/score.sh") and sent != str(reviews / "score.sh")


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[str]:
    """A file that this process alone can see."""
    (tmp_path / "train.txt").write_text("12345")
    opened = os.open(tmp_path / "train.txt", os.O_RDONLY)
    high = os.dup2(opened, 900)
    yield f"/proc/self/fd/{high}"
    os.close(high)
    os.close(opened)


def test_a_node_that_lacks_a_data_file_ends_the_selection_and_blames_no_candidate(make: Make, mine: str) -> None:
    evaluator, executor = Reading((mine,), ()), make()
    executor.submit(evaluator, request(0))
    with pytest.raises(DataError, match=f"{mine} .*{socket.gethostname()}.*--ship-data"):
        next(executor.completed())
    assert score_of(make(ship_data=True), evaluator) == 5


def test_a_cluster_of_ones_own_gets_a_token_that_no_file_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    found: List[str] = []
    started_by_ray = Mock(init=lambda **kwargs: found.append(os.environ.get("RAY_AUTH_TOKEN", "")))
    connect(started_by_ray, "auto")
    connect(started_by_ray, "local")
    assert found[0] == "" and len(found[1]) == 64
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("of the user")
    connect(started_by_ray, "local")
    assert found[2] == ""


def test_a_full_disk_is_told_whichever_it_is(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    executor = make()
    failure = failure_of(executor, Light("fill the disk"))
    assert failure.kind == "disk" and socket.gethostname() in failure.error
    monkeypatch.setattr(executor, "_write_files", Mock(side_effect=full))
    failure = failure_of(executor, Light("score"))
    assert failure.kind == "disk" and "No space left on device" in failure.error


def test_a_node_that_is_stopped_costs_its_running_evaluation_which_is_started_again_elsewhere(
    make: Make, cluster: Any, second_node: Any, tmp_path: Path
) -> None:
    """Of one that is killed, see `tests/scripts/benchmarks/random_kills_test.py`."""
    executor = make(workers="auto")
    assert executor.slots == 2
    given(executor, "wait", "wait", place=tmp_path)
    until(lambda: len(started(tmp_path)) == 2, seconds=120)
    first = started(tmp_path)
    cluster.remove_node(second_node, allow_graceful=True)
    until(lambda: sum(map(is_running, first)) == 1)
    assert list(executor.completed(timeout=3)) == []
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0, 1]
    assert len(started(tmp_path)) == 3
    until(lambda: make(workers="auto").slots == 1)


def test_an_evaluation_that_is_lost_time_and_again_fails_in_the_end(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.executors.queueing.MAX_LOSSES", 2)
    executor = given(make(), "wait", place=tmp_path)
    for attempt in (1, 2):
        until(lambda attempt=attempt: len(started(tmp_path)) == attempt, seconds=120)
        (training,) = [psutil.Process(pid) for pid in started(tmp_path) if is_running(pid)]
        below = psutil.Process().children(recursive=True)
        (rays_worker,) = [process for process in below if process.name() == "ray::a-0"]
        rays_worker.kill()
        until(lambda training=training: not is_running(training.pid))
        if attempt == 1:
            assert list(executor.completed(timeout=3)) == []
    failure = only_failure(executor)
    assert failure.kind == "killed" and "lost 2 times" in failure.error


@pytest.mark.usefixtures("second_node")
def test_runs_keep_away_from_nodes_that_are_broken(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = make(workers=1)
    nodes = executor._fitting_nodes()
    assert len(nodes) == 2
    node_of_task = ray.remote(num_cpus=1)(lambda: ray.get_runtime_context().get_node_id())
    named = [{**node, "NodeManagerHostname": f"node{k}"} for k, node in enumerate(nodes)]
    monkeypatch.setattr(executor, "_fitting_nodes", lambda: named)
    for index in range(len(nodes)):
        others = {Machine(f"node{k}"): "no luck" for k in range(len(nodes)) if k != index}
        executor.use_machines(MachineFacts(broken=others))
        task = node_of_task.options(**executor._node_options(request(0))).remote()
        assert ray.get(task) == nodes[index]["NodeID"]
        assert score_of(executor, Light("score")) == 0
    executor.use_machines(MachineFacts(failed_on={("a", 0): frozenset(Machine(f"node{k}") for k in range(len(nodes)))}))
    assert executor._node_options(request(0)) == {}, "it has failed on all of them"
    with pytest.raises(FiestaError, match="no machine is left"):
        executor.use_machines(MachineFacts(broken={Machine(f"node{k}"): "no luck" for k in range(len(nodes))}))


def test_an_abandoned_evaluation_ends_and_frees_its_slot(make: Make, tmp_path: Path) -> None:
    executor = given(make(), "wait", "score", "score", place=tmp_path)
    until(lambda: bool(started(tmp_path)))
    executor.abandon([request(0), request(1), request(9)])
    until_ended(started(tmp_path)[:1])
    assert scores(executor.completed()) == [2]


def test_what_a_training_left_running_ends_with_it(make: Make, directory: RunDirectory) -> None:
    failure_of(make(), Light("leave a child and exit"))
    until_ended(pids_in(directory.evaluation("a-0") / "child", 2))


def test_more_than_any_node_has_is_refused(make: Make) -> None:
    with pytest.raises(ConfigError, match="1 CPU, 2 GPU"):
        make(gpus_per_evaluation=2)
    assert make(workers="auto", cpus_per_evaluation=0.25).slots == 4
    with pytest.raises(ConfigError, match="1 CPU, 100000 GiB of memory"):
        make(memory_per_evaluation=100_000)


@pytest.mark.parametrize(
    ("option", "value"), [("cpus_per_evaluation", 0), ("gpus_per_evaluation", 1.5), ("memory_per_evaluation", 0)]
)
def test_numbers_out_of_range_are_refused(directory: RunDirectory, option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"--{option.replace('_', '-')} must be .* got {value}"):
        RayExecutor(directory, **{option: value})


# The whole command.


def test_a_selection_survives_its_driver_and_a_node(
    cluster: Any, second_node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is killed, then the selection is recovered and a node is killed: the scores are those of an
    uninterrupted selection on this machine, and nothing has failed."""
    quiet, run, candidates = Console(quiet=True), tmp_path / "run", write_programs(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    on_ray = ("--executor", "ray", "--ray-address", cluster.address, "--workers", "auto", "--ship-data")
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
    result = select({}, run, console=quiet, recover=True)
    killer.join()
    assert (result.num_evaluations, result.num_failures) == (8, 0)
    assert scores_of(run) == wanted_scores()
    check_confirmation_survives_its_command(run)
