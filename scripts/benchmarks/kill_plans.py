"""The selections that are killed, and the clusters on which they work. A part of `random_kills.py`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Tuple, Union

from fiesta_workers import Workers, fiesta_workers
from ray_nodes import RayNodes, ray_nodes
from slurm_node import SlurmNode, slurm_node

Nodes = Union[RayNodes, SlurmNode, Workers]
"""What can be killed on a cluster."""


@dataclass(frozen=True)
class Plan:
    """A selection that chooses the same evaluations whichever finishes first; if `ordered`, in the same order too.

    `targets` are what can be killed while it works, and `cluster` is where it does; empty for this machine.
    """

    name: str
    choosing: Tuple[str, ...]
    working: Tuple[str, ...]
    targets: Tuple[str, ...] = ("parent", "worker")
    ordered: bool = False
    cluster: str = ""


CLUSTERS: Dict[str, Callable[[Path], ContextManager[Any]]] = {
    "ray": lambda root: ray_nodes(),
    "slurm": lambda root: slurm_node(),
    "workers": fiesta_workers,
}
WORKING = {
    "ray": ("--executor", "ray", "--workers", "auto"),
    "slurm": ("--executor", "slurm", "--workers", "2", "--runs-per-job", "10"),
    "workers": ("--executor", json.dumps({"type": "workers", "seconds_of_silence": 10}), "--workers", "2"),
}


def plans_for(cluster: str, runs: int) -> List[Plan]:
    """The selections to kill in turn: on Ray and here, or on another cluster alone."""
    equally = ("--strategy", "non_adaptive_fb", "--budget", str(runs))
    undecided = ("--stop", "bayesian", "--confidence", "0.999999", "--max-evaluations", str(runs))
    in_turn = ("--strategy", "top_two", "--belief", "student_t", *undecided)
    there = Plan(cluster, equally, WORKING[cluster], targets=("node", "job", "parent", "worker"), cluster=cluster)
    here = Plan("2 workers", equally, ("--workers", "2"))
    alone = Plan("top_two, 1 worker", in_turn, ("--workers", "1"), ordered=True)
    return [here, there, alone, there] if cluster == "ray" else [there]
