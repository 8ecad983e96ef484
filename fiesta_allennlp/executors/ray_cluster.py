"""How the executor comes to Ray: importing it, connecting, what an evaluation may ask for, and whether the nodes have
the data files."""

import logging
import os
import secrets
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence

from fiesta_allennlp.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.isolation.ray_node import check_files

GIB = 2**30


def checked_resources(cpus: float, gpus: float, memory: Optional[float]) -> Dict[str, float]:
    """What each evaluation takes, by Ray's names: memory in bytes.

    # Raises

    `ConfigError` : on a number that is out of range.
    """
    if not cpus > 0:
        raise ConfigError(f"--cpus-per-evaluation must be above 0 but got {cpus}.")
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise ConfigError(f"--gpus-per-evaluation must be between 0 and 1, or a whole number above, but got {gpus}.")
    if memory is not None and not memory > 0:
        raise ConfigError(f"--memory-per-evaluation must be above 0 GiB but got {memory}.")
    return {"CPU": cpus, "GPU": float(gpus), "memory": float(int((memory or 0.0) * GIB))}


def import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "--executor ray needs Ray, which is not installed. Type: pip install fiesta-allennlp[ray]"
        ) from error
    return ray


def connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one here; its own statistics and dashboard stay off.

    # Raises

    `ConfigError` : where there is no cluster at the address.
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
    """Ray takes SIGTERM for itself when it starts; a selection ends on it in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_nodes(ray: Any, nodes: Iterable[str], paths: Sequence[str]) -> None:
    """Ask these nodes, given by their ids, for these files, all at once.

    A node that gives no answer, as one that has just gone, is passed over: every training looks again.

    # Raises

    `DataError` : with the first node that lacks a file.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(check_files)
    places = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    for answer in [ask.options(scheduling_strategy=place).remote(list(paths)) for place in places]:
        try:
            ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            raise_if_ours(error)
        except ray.exceptions.RayError:
            continue


def raise_if_ours(error: Any) -> None:
    """Raise the error that this package raised on a node on purpose, where a task's error is such a one."""
    if isinstance(error.cause, FiestaError):
        raise error.cause from error
