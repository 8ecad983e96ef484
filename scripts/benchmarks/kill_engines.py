"""The engines on this machine whose runs, jobs and nodes can be killed. A part of `random_kills.py`."""

import os
import random
import secrets
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import psutil

NODE: Dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
SCRIPT = Path(__file__).resolve().parents[1] / "local_slurm.sh"


def find_processes(is_sought: Callable[[psutil.Process], bool]) -> List[psutil.Process]:
    """Return the processes of this machine that pass the test. Those that end meanwhile or cannot be read do not."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if is_sought(process):
                found.append(process)
    return found


class Engine:
    """Local processes. `options` are those of a selection; a subclass finds the processes of its runs and jobs."""

    options: Sequence[str] = ("--workers", "2")
    targets: Tuple[str, ...] = ("command", "run")

    def processes(self, command: psutil.Process) -> List[psutil.Process]:
        """Return all processes that belong to runs."""
        return command.children(recursive=True)

    def jobs(self) -> List[Callable[[], Any]]:
        """Return what ends each job that makes a run."""
        return []

    def kill_node(self) -> None:
        """Kill a node, and put a fresh one in its place."""

    def runs(self, command: psutil.Process) -> List[psutil.Process]:
        """Return the processes that make runs. They are forked, so their command line is that of the process above."""
        found = []
        for process in self.processes(command):
            with suppress(psutil.NoSuchProcess):
                above = process.parent()
                if above is not None and process.cmdline() == above.cmdline() != []:  # an ended one has none
                    found.append(process)
        return found

    def kill(self, target: str, command: psutil.Process) -> bool:
        """Kill one of the targets, and return whether there was one at the moment."""
        runs = self.runs(command)
        kills: Dict[str, List[Callable[[], Any]]] = {
            "command": [command.kill],
            "run": [run.kill for run in runs],
            "job": self.jobs() if runs else [],
            "node": [self.kill_node] if runs else [],
        }
        if kills[target]:
            random.choice(kills[target])()
        return bool(kills[target])


@contextmanager
def local_processes() -> Iterator[Engine]:
    yield Engine()


class SlurmNode(Engine):
    """A Slurm of one node, by the directory of its files. A job dies with its process, or is cancelled."""

    options = ("--executor", "slurm", "--workers", "2")
    targets = ("command", "run", "job", "node")

    def __init__(self, root: Path) -> None:
        self._root = root

    def processes(self, command: psutil.Process) -> List[psutil.Process]:
        config = os.environ["SLURM_CONF"]
        return find_processes(lambda p: p.environ().get("SLURM_CONF") == config and "SLURM_JOB_ID" in p.environ())

    def jobs(self) -> List[Callable[[], Any]]:
        own = [p for p in self.processes(psutil.Process()) if "fiesta_allennlp.running.jobs" in p.cmdline()]
        numbers = {process.environ()["SLURM_JOB_ID"] for process in own}
        cancel = [lambda number=number: subprocess.run(["scancel", number], check=True) for number in numbers]
        return [*(process.kill for process in own), *cancel]

    def kill_node(self) -> None:
        """Kill the daemon of the node, and start it again a moment later."""
        os.kill(int((self._root / "slurmd.pid").read_text()), signal.SIGKILL)
        time.sleep(random.uniform(0, 2))
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        subprocess.run(["slurmd"], check=True, env={**os.environ, "PATH": path})


@contextmanager
def slurm_node() -> Iterator[SlurmNode]:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "slurm"
        subprocess.run([SCRIPT, "start", root], check=True, stdout=subprocess.DEVNULL)
        os.environ["SLURM_CONF"] = str(root / "slurm.conf")
        try:
            yield SlurmNode(root)
        finally:
            subprocess.run([SCRIPT, "stop", root], check=True)


class RayNodes(Engine):
    """The nodes of a Ray cluster beside its head, each with room for one run. A job is Ray's worker above a run."""

    targets = ("command", "run", "job", "node")

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.options = ("--executor", "ray", "--workers", "auto", "--executor-option", f"address={cluster.address}")

    def processes(self, command: psutil.Process) -> List[psutil.Process]:
        return [process for node in self._cluster.worker_nodes for process in _processes_of(node)]

    def jobs(self) -> List[Callable[[], Any]]:
        """Return Ray's own workers that wait for a run: Ray names them after it."""
        idle = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
        names = {process: process.name() for process in self.processes(psutil.Process()) if process.is_running()}
        return [process.kill for process, name in names.items() if name.startswith("ray::") and name not in idle]

    def kill_node(self) -> None:
        """Kill a whole node at once, as when its machine loses its power, and put a fresh one in its place."""
        node = random.choice(list(self._cluster.worker_nodes))
        for process in _processes_of(node):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._cluster.remove_node(node, allow_graceful=False)  # it is dead: this only forgets it
        for _ in range(5):
            with suppress(Exception):  # Ray's own, if the machine is too busy to start a node in time
                self._cluster.add_node(**NODE)
                return


def _processes_of(node: Any) -> List[psutil.Process]:
    """Return the raylet, and all that was started below it."""
    raylet = node.all_processes["raylet"][0].process.pid
    return find_processes(lambda p: p.pid == raylet or p.environ().get("RAY_RAYLET_PID") == str(raylet))


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """Start a cluster of a head that does no work and two nodes."""
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes one into the home
    os.environ.update(RAY_AUTH_MODE="token", RAY_worker_niceness="0")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        yield RayNodes(cluster)
    finally:
        cluster.shutdown()
