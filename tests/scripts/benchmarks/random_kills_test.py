"""That the kills hit what they are meant to, and each target equally often."""

import importlib
from collections import Counter
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.processes import ProcessExecutor
from tests.conftest import until
from tests.executors.light import Light, request, started


@pytest.fixture
def kills() -> ModuleType:
    return importlib.import_module("random_kills")


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
