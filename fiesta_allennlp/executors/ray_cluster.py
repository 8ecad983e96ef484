"""Connects to a Ray cluster, and finds out what room its nodes have for runs."""

import logging
import os
import secrets
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from fiesta_allennlp.errors import ConfigError, describe

GIB = 2**30


class RayCluster:
    """Shows a cluster as this machine sees it, and what each run takes of it.

    Args:
        address: as for `RayExecutor`. Where this process is connected to a cluster already, that one is used.
        cpus: CPUs that each run takes.
        gpus: GPUs that each run takes.
        memory: GiB of memory that each run takes; None for no limit.

    Raises:
        ConfigError: where a number is out of range, Ray is not installed, or there is no cluster.
    """

    def __init__(self, address: str, *, cpus: float, gpus: float, memory: Optional[float]) -> None:
        self.resources = checked_resources(cpus, gpus, memory)
        self.ray = import_ray()
        self._connected_here = not self.ray.is_initialized()
        if self._connected_here:
            connect(self.ray, address)

    def nodes(self) -> List[Mapping[str, Any]]:
        """Return the nodes that are alive, as Ray describes them."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def room(self) -> int:
        """Return how many runs the whole cluster has room for while nothing else runs on it."""
        return sum(self._fits(node) for node in self.nodes())

    def _fits(self, node: Mapping[str, Any]) -> int:
        """Return how many runs one node has room for."""
        wanted = {name: amount for name, amount in self.resources.items() if amount}
        return min(int(node["Resources"].get(name, 0.0) / amount + 1e-9) for name, amount in wanted.items())

    def check_room(self) -> None:
        """Refuse a cluster without room for a single run.

        Raises:
            ConfigError: with what a run takes.
        """
        if not self.room():
            raise ConfigError(
                f"no node of the Ray cluster has room for one run, which takes {self.wants()}. Start such a "
                "node first, or ask for less with --cpus-per-evaluation, --gpus-per-evaluation or "
                "--memory-per-evaluation."
            )

    def wants(self) -> str:
        """Return what a run takes, in words."""
        wanted = {**self.resources, "GiB of memory": self.resources["memory"] / GIB, "memory": 0.0}
        return ", ".join(f"{amount:g} {name}" for name, amount in wanted.items() if amount)

    def close(self) -> None:
        """Disconnect, where this object connected."""
        if self._connected_here and self.ray.is_initialized():
            self.ray.shutdown()


def checked_resources(cpus: float, gpus: float, memory: Optional[float]) -> Dict[str, float]:
    """Return what each run takes, by Ray's names, with memory in bytes.

    Raises:
        ConfigError: on a number that is out of range.
    """
    if not cpus > 0:
        raise ConfigError(f"--cpus-per-evaluation must be above 0 but got {cpus}.")
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise ConfigError(
            f"--gpus-per-evaluation must be between 0 and 1, or a whole number greater than 1, but got {gpus}."
        )
    if memory is not None and not memory > 0:
        raise ConfigError(f"--memory-per-evaluation must be above 0 GiB but got {memory}.")
    return {"CPU": cpus, "GPU": float(gpus), "memory": float(int((memory or 0.0) * GIB))}


def import_ray() -> Any:
    """Import Ray.

    Raises:
        ConfigError: if Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "--executor ray needs Ray, which is not installed. Install it with: pip install ray"
        ) from error
    return ray


def connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one here without statistics and dashboard.

    Raises:
        ConfigError: where there is no cluster at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        _set_token()
    started_here = {"include_dashboard": False} if address == "local" else {}
    try:
        with _own_signals():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **started_here)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"--ray-address {address}: there is no Ray cluster: {describe(error)}. Start one with `ray start --head` "
            "on this machine, or give --ray-address local to use this machine alone."
        ) from error


def _set_token() -> None:
    """Give a new cluster a token of its own where the user has none: Ray would write one that everybody on the machine
    can read. Other processes of this user find it in the environment, nobody else does."""
    given = [os.environ.get("RAY_AUTH_TOKEN"), os.environ.get("RAY_AUTH_TOKEN_PATH")]
    if not any(given) and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray replaces when it starts: a selection ends on it in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
