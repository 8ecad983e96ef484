"""What the tests of executors share: their runs, a real Ray cluster and a real Slurm."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, List

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.running.executor import Evaluator, Executor
from tests.conftest import REPOSITORY, until
from tests.running.light import PACKAGES, Light, is_running, request

Build = Callable[..., Any]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def build(directory: RunDirectory) -> Iterator[Build]:
    """Build executors of a class in the run directory, and close them after the test."""
    made: List[Executor] = []

    def build_one(kind: Callable[..., Executor], **options: Any) -> Executor:
        made.append(kind(directory, **{"packages": PACKAGES, **options}))
        return made[-1]

    yield build_one
    for executor in made:
        executor.close()


def given(executor: Any, *whats: str, first: int = 0) -> Any:
    """The executor with these runs submitted, whose replicates count from `first` on, and whose place is beside the run
    directory."""
    for replicate, what in enumerate(whats, start=first):
        executor.submit(Light(what, str(executor.directory.root.parent)), request(replicate))
    return executor


def begun(executor: Any, *whats: str, **options: Any) -> Any:
    """The same once the runs were handed on and none has an outcome yet."""
    assert list(given(executor, *whats, **options).completed(timeout=0)) == []
    return executor


def only_failure(executor: Executor) -> Failure:
    """The failure that is the only outcome."""
    (outcome,) = executor.completed()
    assert isinstance(outcome, Failure)
    return outcome


def failure_of(executor: Executor, evaluator: Evaluator) -> Failure:
    """The failure that comes of a run."""
    executor.submit(evaluator, request(0))
    return only_failure(executor)


def pids_in(path: Path, number: int = 1) -> List[int]:
    """The processes that a run wrote into a file, once there are so many of them."""
    until(lambda: path.exists() and len(path.read_text().split()) == number)
    return [int(pid) for pid in path.read_text().split()]


def until_ended(pids: Iterable[int]) -> None:
    left = list(pids)
    until(lambda: not any(map(is_running, left)))


def scores(outcomes: Iterable[Outcome]) -> List[float]:
    """The scores among outcomes, in order of size."""
    return sorted(outcome.score for outcome in outcomes if isinstance(outcome, Evaluation))


def score_of(executor: Executor, evaluator: Evaluator) -> float:
    """The score that comes of a run."""
    executor.submit(evaluator, request(0))
    (outcome,) = executor.completed()
    assert isinstance(outcome, Evaluation), outcome
    return outcome.score


SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
"""A small node of a Ray cluster."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real Ray cluster of a head, which says that it has a GPU. This process is connected to it: all executors share
    Ray's workers, which take seconds to start."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install fiesta-allennlp[ray]")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**SMALL, "num_gpus": 1, "include_dashboard": False})
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def second_node(cluster: Any) -> Iterator[Any]:
    """With the fixture `light` it is fit for runs of `tests/running/light.py` alone."""
    node = cluster.add_node(**SMALL)
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)


@dataclass(frozen=True)
class LocalSlurm:
    """The daemons of a Slurm on this machine, by the directory of their files."""

    root: Path
    has_accounting: bool = False

    def end(self, daemon: str, ending: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon."""
        pid = int((self.root / f"{daemon}.pid").read_text())
        os.kill(pid, ending)
        until_ended([pid])

    def start(self, daemon: str, *options: str) -> None:
        """Start a daemon again."""
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        subprocess.run([daemon, *options], check=True, env={**os.environ, "PATH": path})
        until(lambda: node_state() in ("idle", "mixed", "allocated"))


def node_state() -> str:
    """The state of the only node of Slurm; empty if the controller does not answer."""
    return subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def slurm_daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSlurm]:
    """A real Slurm of one node on this machine, if it is installed; with accounting, if that is."""
    root, script = tmp_path_factory.mktemp("slurm"), REPOSITORY / "scripts" / "local_slurm.sh"
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    has_accounting = all(shutil.which(program, path=path) for program in ("mariadbd", "slurmdbd"))
    options = ["accounting"] if has_accounting else []
    started = subprocess.run([script, "start", root, *options], capture_output=True, text=True)
    if started.returncode:
        pytest.skip(f"no Slurm can be started here: {started.stderr.strip()[-300:]}")
    yield LocalSlurm(root, has_accounting)
    subprocess.run([script, "stop", root], check=True)
    assert not root.exists()


@pytest.fixture
def slurm(slurm_daemons: LocalSlurm, monkeypatch: pytest.MonkeyPatch) -> LocalSlurm:
    """The same, found by the commands of Slurm, and asked often. Its jobs find this package."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_daemons.root / "slurm.conf"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    for name in ("FIRST_INTERVAL_SECONDS", "MAX_INTERVAL_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(f"fiesta_allennlp.running.slurm.{name}", 0.3)
    return slurm_daemons
