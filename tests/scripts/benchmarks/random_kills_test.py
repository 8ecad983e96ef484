"""That the kills hit what they are meant to, on a real Ray cluster and a real Slurm, and each target equally often."""

import importlib
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.processes import ProcessExecutor
from fiesta_allennlp.executors.ray import RayExecutor
from fiesta_allennlp.executors.slurm import SlurmExecutor
from fiesta_allennlp.records import Evaluation
from tests.conftest import LocalSlurm, still_runs, until
from tests.executors.light import Light, request, started


@pytest.fixture
def kills() -> ModuleType:
    return importlib.import_module("random_kills")


@pytest.mark.ray
@pytest.mark.xdist_group("ray")
def test_a_node_is_killed_with_all_that_runs_on_it_and_replaced(
    kills: ModuleType, cluster: Any, second_node: Any, tmp_path: Path
) -> None:
    module = importlib.import_module("ray_nodes")
    nodes = module.RayNodes(cluster)
    scene = kills.Scene(psutil.Process(), nodes)
    executor = RayExecutor(RunDirectory(tmp_path / "run"), workers=2)
    for replicate in range(2):
        executor.submit(Light("wait", str(tmp_path)), request(replicate))
    until(lambda: len(started(tmp_path)) == 2, seconds=120)
    assert sorted(process.pid for process in kills.trainings(scene)) == sorted(started(tmp_path))
    assert sorted(process.name() for process in nodes.working()) == ["ray::a-0", "ray::a-1"]
    processes = module.processes_of(second_node)
    (training,) = [process for process in processes if process.pid in started(tmp_path)]
    before = set(cluster.worker_nodes)
    nodes.kill(second_node)
    (fresh,) = cluster.worker_nodes - before
    until(lambda: not any(map(still_runs, processes)))
    assert cluster.worker_nodes == before - {second_node} | {fresh}
    (other,) = set(started(tmp_path)) - {training.pid}
    assert other in [process.pid for process in kills.trainings(scene)]
    assert list(executor.completed(timeout=3)) == []  # what was lost is started again
    (tmp_path / "go").touch()
    assert sorted(o.score for o in executor.completed() if isinstance(o, Evaluation)) == [0, 1]
    executor.close()
    cluster.remove_node(fresh)


@pytest.mark.slurm
@pytest.mark.xdist_group("slurm")
def test_a_job_and_the_daemon_of_its_node_are_found_and_killed(
    kills: ModuleType, slurm: LocalSlurm, tmp_path: Path
) -> None:
    node = importlib.import_module("slurm_node").SlurmNode(slurm.root)
    scene = kills.Scene(psutil.Process(), node)
    executor = SlurmExecutor(RunDirectory(tmp_path / "run"))
    executor.submit(Light("wait", str(tmp_path)), request(0))
    assert list(executor.completed(timeout=0)) == []
    until(lambda: bool(list(tmp_path.glob("a-0.*"))))
    (started,) = tmp_path.glob("a-0.*")
    _, pid, _ = started.name.split(".")
    assert [process.pid for process in kills.trainings(scene)] == [int(pid)]
    assert kills.kill_node(scene)
    assert [process.pid for process in kills.trainings(scene)] == [int(pid)]
    own, job = node.working()
    assert int(pid) in [child.pid for child in own.children(recursive=True)]
    job.kill()
    until(lambda: not kills.trainings(scene))
    assert list(executor.completed(timeout=2)) == []  # what was lost is started again
    executor.close()


def test_a_worker_on_this_machine_is_found_and_killed(kills: ModuleType, tmp_path: Path) -> None:
    executor = ProcessExecutor(RunDirectory(tmp_path / "run"))
    scene = kills.Scene(psutil.Process())
    assert not kills.kill_worker(scene)
    executor.submit(Light("wait", str(tmp_path)), request(0))
    until(lambda: bool(started(tmp_path)))
    assert [process.pid for process in kills.trainings(scene)] == started(tmp_path)
    assert not kills.kill_node(scene)
    assert kills.kill_worker(scene)
    (failure,) = executor.completed()
    assert "killed by signal 9" in failure.error
    executor.close()


def test_every_target_is_hit_equally_often(kills: ModuleType) -> None:
    waiting, hit = Counter({"parent": 26, "worker": 26, "job": 24, "node": 24}), Counter()
    for number in range(40):
        planned = kills._planned(waiting, kills.PLANS[number % len(kills.PLANS)])
        assert len(planned) <= kills.KILLS_PER_SELECTION
        hit.update(target for target, _ in planned)
        waiting -= Counter(target for target, _ in planned)
    assert hit == {"parent": 26, "worker": 26, "job": 24, "node": 24}
    assert not waiting


def test_plans_of_one_choice_make_the_same_evaluations(kills: ModuleType) -> None:
    assert {plan.choosing for plan in kills.PLANS} == {kills.EQUALLY, kills.IN_TURN}
    assert [plan.ordered for plan in kills.PLANS] == [plan.choosing == kills.IN_TURN for plan in kills.PLANS]
