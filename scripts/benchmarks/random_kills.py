"""Kills a selection at random moments, resumes it until it is done, and counts what was lost.

A part of `reliability.py`.
"""

import itertools
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple, Union

import psutil
from common import show
from ray_nodes import RayNodes, ray_nodes
from slurm_node import SlurmNode, slurm_node

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.selection.store import RunStore

Nodes = Union[RayNodes, SlurmNode]
"""What can be killed on a cluster."""

REPOSITORY = Path(__file__).resolve().parents[2]
CANDIDATES = [f"training_configs/sample/{name}.jsonnet" for name in ("tdlstm", "lstm", "tdrnn", "ian")]
KILLS_PER_SELECTION = 10
MOST_BETWEEN = 6
"""Trainings between two kills, at most; on average half as many."""
LONGEST_WAIT = 2.0
"""Seconds after the last of them, at most: about as long as two trainings."""
SHORT = json.dumps({"trainer.num_epochs": 1})
SLEEP = "sleep $(($1 % 2)).$(($1 % 10)); echo accuracy 0.$(($1 % 1000))$(($2 % 1000))$3"
"""A program whose score follows from its seeds: it takes up to two seconds, and no processor."""


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


EQUALLY = ("--strategy", "non_adaptive_fb", "--budget", "40")
UNDECIDED = ("--stop", "bayesian", "--confidence", "0.999999", "--max-evaluations", "40")
IN_TURN = ("--strategy", "top_two", "--belief", "student_t", *UNDECIDED)
ON_CLUSTER = ("node", "job", "parent", "worker")
ON_RAY = ("--executor", "ray", "--workers", "auto")
RAY_PLAN = Plan("non_adaptive_fb, 2 Ray nodes", EQUALLY, ON_RAY, targets=ON_CLUSTER, cluster="ray")
ON_SLURM = ("--executor", "slurm", "--workers", "2", "--runs-per-job", "10")
SLURM_PLAN = Plan("non_adaptive_fb, Slurm", EQUALLY, ON_SLURM, targets=ON_CLUSTER, cluster="slurm")
PLANS = (
    Plan("non_adaptive_fb, 2 workers", EQUALLY, ("--workers", "2")),
    RAY_PLAN,
    Plan("top_two, 1 worker", IN_TURN, ("--workers", "1"), ordered=True),
    RAY_PLAN,
)
CLUSTERS: Dict[str, Callable[[], ContextManager[Any]]] = {"ray": ray_nodes, "slurm": slurm_node}


@dataclass(frozen=True)
class Scene:
    """What runs while a selection does: its own process and, on a cluster, the nodes."""

    parent: psutil.Process
    nodes: Optional[Nodes] = None


def trainings(scene: Scene) -> List[psutil.Process]:
    """The processes that train: they are forked, so their command line is that of the process above them."""
    found = []
    for process in scene.nodes.processes() if scene.nodes else scene.parent.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            above = process.parent()
            if above is not None and process.cmdline() == above.cmdline() != []:  # an ended one has no command line
                found.append(process)
    return found


def kill_parent(scene: Scene) -> bool:
    scene.parent.kill()
    return True


def kill_worker(scene: Scene) -> bool:
    victims = trainings(scene)
    if not victims:
        return False
    random.choice(victims).kill()
    return True


def kill_job(scene: Scene) -> bool:
    """Kill what waits for a training on a cluster: Ray's worker, or Slurm's job."""
    victims = scene.nodes.working() if scene.nodes and trainings(scene) else []
    if not victims:
        return False
    random.choice(victims).kill()
    return True


def kill_node(scene: Scene) -> bool:
    if scene.nodes is None or not trainings(scene):
        return False
    scene.nodes.kill_one()
    return True


TARGETS: Dict[str, Callable[[Scene], bool]] = {
    "parent": kill_parent,
    "worker": kill_worker,
    "job": kill_job,
    "node": kill_node,
}
"""What can be killed, and how: false where there is none at the moment."""


@dataclass
class Counts:
    """What came of all kills. `lost` are finished trainings that are gone or were trained again."""

    kills: Counter = field(default_factory=Counter)
    selections: int = 0
    evaluations: int = 0
    lost: int = 0
    twice: int = 0
    unequal: int = 0


@dataclass
class Killed:
    """One selection that is killed again and again."""

    directory: RunDirectory
    options: List[str]
    nodes: Optional[Nodes] = None
    finished: Dict[Any, Any] = field(default_factory=dict)
    written: Dict[Path, int] = field(default_factory=dict)

    def run(self, kills: List[Tuple[str, int]]) -> List[str]:
        """Run to the end, with these kills: what, and after how many more trainings. Returns what was hit."""
        hit: List[str] = []
        while True:
            process = self._start()
            try:
                self._kill(process, kills, hit)
                status = process.wait()
            finally:
                process.kill()
            if status == 0:
                return hit
            if status != -signal.SIGKILL and not (hit[-1:] == ["worker"] and self._was_checking()):
                raise SystemExit(f"{self.directory.root}: exit status {status}, see {self.output}")
            self.finished.update(finished_in(self.directory))

    def _was_checking(self) -> bool:
        """Return whether a process that checks a candidate was killed, which ends the command before it has begun."""
        return "the process died" in self.output.read_text().splitlines()[-1]

    @property
    def output(self) -> Path:
        return self.directory.root.with_suffix(".txt")

    def _start(self) -> subprocess.Popen:
        recover = ["--recover"] if self.directory.store.exists() else []
        command = [sys.executable, "-m", "fiesta_allennlp", "select", "-s", str(self.directory.root)]
        with self.output.open("a") as out:
            return subprocess.Popen([*command, *self.options, *recover], cwd=REPOSITORY, stdout=out, stderr=out)

    def _kill(self, process: subprocess.Popen, kills: List[Tuple[str, int]], hit: List[str]) -> None:
        while kills and process.poll() is None:
            target, num_trained = kills[0]
            if not self._wait(process, num_trained):
                return
            done = False
            while not done and process.poll() is None:
                self._note_outcomes()
                with suppress(psutil.NoSuchProcess):
                    done = TARGETS[target](self._scene(process))
            if done:
                kills.pop(0)
                hit.append(target)
                if target == "parent":
                    return

    def _wait(self, process: subprocess.Popen, num_trained: int) -> bool:
        """Wait for a random moment after so many more trainings, or, one time in ten, of the start. False where the
        selection ended."""
        begin = time.monotonic()
        end = begin + random.uniform(0, 20) if random.random() < 0.1 else None
        wanted = self._num_trained() + num_trained
        while process.poll() is None:
            if end is None and self._num_trained() >= wanted:
                with suppress(psutil.NoSuchProcess):
                    if trainings(self._scene(process)):
                        end = time.monotonic() + random.uniform(0, LONGEST_WAIT)
            if end is not None and time.monotonic() >= end:
                return True
            time.sleep(0.02)
        return False

    def _scene(self, process: subprocess.Popen) -> Scene:
        return Scene(psutil.Process(process.pid), self.nodes)

    def _num_trained(self) -> int:
        return len(list(self.directory.root.glob("evaluations/*/outcome.json")))

    def _note_outcomes(self) -> None:
        for path in self.directory.root.glob("evaluations/*/outcome.json"):
            self.written[path] = path.stat().st_mtime_ns

    def num_lost(self) -> int:
        """Evaluations that stood in the store, or whose outcome stood in its directory, and are not the same now."""
        now = finished_in(self.directory)
        gone = {key for key, values in self.finished.items() if now.get(key) != values}
        again = {
            path for path, changed in self.written.items() if not path.exists() or path.stat().st_mtime_ns != changed
        }
        return len(gone) + len(again)


def finished_in(directory: RunDirectory) -> Dict[Any, Any]:
    """What stands in a store, by candidate and replicate: score, metric and seeds, in order of finishing. Read from a
    copy, so that nothing is repaired in passing."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in directory.root.glob("store.sqlite*"):
            shutil.copy(path, scratch)
        if not (Path(scratch) / directory.store.name).exists():
            return {}
        with closing(sqlite3.connect(Path(scratch) / directory.store.name)) as database:
            columns = "candidate, replicate, score, metric, split_seed, random_seed, numpy_seed, pytorch_seed"
            rows = database.execute(
                f"SELECT {columns} FROM evaluations WHERE status = 'finished' ORDER BY finished_order"
            )
            return {row[:2]: row[2:] for row in rows}


def num_twice(directory: RunDirectory) -> int:
    """How many of the finished evaluations stand more than once in the list of all outcomes."""
    store = RunStore(directory, create=False)
    try:
        keys = [(row["candidate"], row["replicate"]) for row in store.rows() if row["status"] == "finished"]
    finally:
        store.close()
    return len(keys) - len(set(keys))


def write_programs(directory: Path) -> List[str]:
    """Write four candidates that sleep. Return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(4):
        command = ["sh", "-c", SLEEP, "sh", "{seed}", "{split_seed}", str(number)]
        paths.append(directory / f"program{number}.json")
        paths[-1].write_text(json.dumps({"type": "program", "command": command, "metrics": "stdout"}))
    return [str(path) for path in paths]


def kill_many(
    number: int, targets: Sequence[str], root: Path, *, cluster: str = "ray", programs: bool = False
) -> Counts:
    """Kill so often in all, every target equally often, over as many selections as it takes."""
    candidates = write_programs(root / "programs") if programs else [*CANDIDATES, "-o", SHORT]
    counts, waiting = Counts(), Counter(itertools.islice(itertools.cycle(targets), number))
    references: Dict[Tuple[str, ...], Dict[Any, Any]] = {}
    plans = PLANS if cluster == "ray" else (SLURM_PLAN,)
    with CLUSTERS[cluster]() if {"node", "job"} & {*targets} else nullcontext() as nodes:
        for index, plan in enumerate(itertools.cycle(plan for plan in plans if nodes or not plan.cluster)):
            if not waiting.total():
                break
            kills = _planned(waiting, plan)
            if not kills:
                continue
            options = [*candidates, "--metric", "accuracy", "--seed", "5", "--max-failures", "1000", *plan.choosing]
            if plan.choosing not in references:
                whole = Killed(RunDirectory(root / f"whole-{len(references)}"), [*options, "--workers", "1"])
                whole.run([])
                references[plan.choosing] = finished_in(whole.directory)
            reference = references[plan.choosing]
            there = nodes if plan.cluster else None
            told = [*options, *plan.working, *(there.options if there else [])]
            killed = Killed(RunDirectory(root / f"killed-{index}"), told, there)
            hit = killed.run(kills)
            waiting -= Counter(hit)
            _count(counts, killed, hit, reference, ordered=plan.ordered)
            show(f"{plan.name}: {len(hit)} kills, {len(reference)} evaluations; {counts}")
    return counts


def _planned(waiting: Counter, plan: Plan) -> List[Tuple[str, int]]:
    """What to kill in one selection, and after how many more trainings: of what is left the most, in random order."""
    left = Counter({target: waiting[target] for target in plan.targets})
    targets = []
    for _ in range(min(KILLS_PER_SELECTION, left.total())):
        targets.append(max(left, key=lambda target: left[target]))
        left[targets[-1]] -= 1
    random.shuffle(targets)
    return [(target, random.randint(0, MOST_BETWEEN)) for target in targets]


def _count(counts: Counts, killed: Killed, hit: List[str], reference: Dict[Any, Any], *, ordered: bool) -> None:
    now = finished_in(killed.directory)
    same = list(now.items()) == list(reference.items()) if ordered else now == reference
    counts.kills.update(hit)
    counts.selections += 1
    counts.evaluations += len(now)
    counts.lost += killed.num_lost()
    counts.twice += num_twice(killed.directory)
    counts.unequal += not same
