"""A Ray cluster on this machine whose nodes can be killed and replaced. A part of `random_kills.py`."""

import os
import random
import secrets
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List

import psutil

NODE: Dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
NUM_NODES = 2
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_worker_niceness": "0",  # else whatever runs beside the nodes goes before them
}


class RayNodes:
    """The nodes of a `ray.cluster_utils.Cluster` beside its head: each has room for one training."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    @property
    def options(self) -> List[str]:
        """What a selection is told of the cluster."""
        return ["--ray-address", str(self._cluster.address)]

    def processes(self) -> List[psutil.Process]:
        """All that runs on the nodes."""
        return [process for node in self._cluster.worker_nodes for process in processes_of(node)]

    def working(self) -> List[psutil.Process]:
        """Ray's own workers that wait for a training: Ray names them after it."""
        idle = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
        names = {process: process.name() for process in self.processes() if process.is_running()}
        return [process for process, name in names.items() if name.startswith("ray::") and name not in idle]

    def kill_one(self) -> None:
        self.kill(random.choice(list(self._cluster.worker_nodes)))

    def kill(self, node: Any) -> None:
        """Kill a whole node at once, as when its machine loses its power, and put a fresh one in its place."""
        for process in processes_of(node):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._cluster.remove_node(node, allow_graceful=False)  # it is dead: this only forgets it
        self._cluster.add_node(**NODE)


def processes_of(node: Any) -> List[psutil.Process]:
    """The raylet, and all that was started below it."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.pid == raylet or process.environ().get("RAY_RAYLET_PID") == str(raylet):
                found.append(process)
    return found


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """A cluster of a head that does no work and `NUM_NODES` nodes."""
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray writes one into the home
    os.environ.update(ENVIRONMENT)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(NUM_NODES):
            cluster.add_node(**NODE)
        yield RayNodes(cluster)
    finally:
        cluster.shutdown()
