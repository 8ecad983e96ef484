"""Kills a selection at random moments, resumes it until it is done, and counts what was lost.

    python scripts/benchmarks/random_kills.py --number 100
    python scripts/benchmarks/random_kills.py --number 18 --cluster slurm --programs

Runs the real command on the sample task with small real trainings, on this machine and on a Ray cluster of two nodes in
turn. It kills (SIGKILL) the parent process, a worker, Ray's worker above one or a whole Ray node again and again at
random moments, equally often; puts a fresh node in the place of a killed one; resumes the selection with `--recover`
until it is done; and compares the final store with that of an uninterrupted run. Without Ray:
`--targets parent,worker`. With `--cluster slurm` all selections run on a Slurm of one node, whose jobs are killed or
cancelled, and whose daemon is killed and started again. With `--cluster workers` they are made by two processes of
`fiesta worker`, which are killed alone or with all that they have started, and replaced. `--programs` trains nothing,
so that more kills fit into an hour.
"""

import itertools
import json
import os
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
from typing import Any, Dict, List, Optional, Sequence, Tuple

import psutil
from common import make_parser, show
from fiesta_workers import MARK
from kill_plans import CLUSTERS, Nodes, Plan, plans_for

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.selection.store import RunStore

REPOSITORY = Path(__file__).resolve().parents[2]
CANDIDATES = [f"training_configs/sample/{name}.jsonnet" for name in ("tdlstm", "lstm", "tdrnn", "ian")]
KILLS_PER_SELECTION = 10
MOST_BETWEEN = 6
"""Trainings between two kills, at most; on average half as many."""
LONGEST_END = 30.0
"""Seconds in which the processes of a selection that has ended may end."""
LONGEST_WAIT = 2.0
"""Seconds after the last of them, at most: about as long as two trainings."""
SHORT = json.dumps({"trainer.num_epochs": 1})
SLEEP = "sleep $(($1 % 2)).$(($1 % 10)); echo accuracy 0.$(($1 % 1000))$(($2 % 1000))$3"
"""A program whose score follows from its seeds: it takes up to two seconds, and no processor."""


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


TARGETS = ("parent", "worker", "job", "node")
"""What can be killed. The job is what waits for a training on a cluster: Ray's worker, Slurm's job, `fiesta worker`."""


def kill(target: str, scene: Scene) -> bool:
    """Kill one of these, and return whether there was one at the moment."""
    if target == "parent":
        scene.parent.kill()
        return True
    victims: List[Any] = trainings(scene)
    if scene.nodes and victims and target == "node":
        scene.nodes.kill_one()
        return True
    if scene.nodes and victims and target == "job":
        victims = scene.nodes.working()
    if victims:
        random.choice(victims).kill()
    return bool(victims)


@dataclass
class Counts:
    """What came of all kills. `lost` are finished trainings that are gone or were trained again, and `left` are
    processes and files of a queue that are there after the end."""

    kills: Counter = field(default_factory=Counter)
    selections: int = 0
    evaluations: int = 0
    lost: int = 0
    twice: int = 0
    unequal: int = 0
    left: int = 0


@dataclass
class KilledSelection:
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
        own = {**os.environ, MARK: str(self.directory.root)}
        with self.output.open("a") as out:
            return subprocess.Popen(
                [*command, *self.options, *recover], cwd=REPOSITORY, stdout=out, stderr=out, env=own
            )

    def _kill(self, process: subprocess.Popen, kills: List[Tuple[str, int]], hit: List[str]) -> None:
        while kills and process.poll() is None:
            target, num_trained = kills[0]
            if not self._wait(process, num_trained):
                return
            done = False
            while not done and process.poll() is None:
                self._note_outcomes()
                with suppress(psutil.NoSuchProcess):
                    done = kill(target, self._scene(process))
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

    def num_left(self) -> int:
        """Processes of this selection, once they had time to end, and files of its queue except logs of jobs."""
        end = time.monotonic() + LONGEST_END
        while (processes := self._processes()) and time.monotonic() < end:
            time.sleep(0.5)
        queues = [*self.directory.queue.glob("*/*"), *self.directory.slurm.glob("*/*")]
        return len(processes) + sum(path.name != "jobs" for path in queues)

    def _processes(self) -> List[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.directory.root):
                    found.append(process)
        return found


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
    number: int, targets: Sequence[str], root: Path, *, cluster: str = "ray", programs: bool = False, runs: int = 40
) -> Counts:
    """Kill so often in all, every target equally often, over as many selections as it takes."""
    candidates = write_programs(root / "programs") if programs else [*CANDIDATES, "-o", SHORT]
    counts, waiting = Counts(), Counter(itertools.islice(itertools.cycle(targets), number))
    references: Dict[Tuple[str, ...], Dict[Any, Any]] = {}
    with CLUSTERS[cluster](root) if {"node", "job"} & {*targets} else nullcontext() as nodes:
        plans = [plan for plan in plans_for(cluster, runs) if nodes or not plan.cluster]
        for index, plan in enumerate(itertools.cycle(plans)):
            if not waiting.total():
                break
            kills = _planned(waiting, plan)
            if not kills:
                continue
            options = [*candidates, "--metric", "accuracy", "--seed", "5", "--max-failures", "1000", *plan.choosing]
            if plan.choosing not in references:
                whole = KilledSelection(RunDirectory(root / f"whole-{len(references)}"), [*options, "--workers", "1"])
                if not whole.directory.selection_json.exists():  # from an earlier call with this directory
                    whole.run([])
                references[plan.choosing] = finished_in(whole.directory)
            reference = references[plan.choosing]
            there = nodes if plan.cluster else None
            told = [*options, *plan.working, *(there.options if there else [])]
            killed = KilledSelection(RunDirectory(root / f"killed-{os.getpid()}-{index}"), told, there)
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


def _count(
    counts: Counts, killed: KilledSelection, hit: List[str], reference: Dict[Any, Any], *, ordered: bool
) -> None:
    now = finished_in(killed.directory)
    same = list(now.items()) == list(reference.items()) if ordered else now == reference
    counts.kills.update(hit)
    counts.selections += 1
    counts.evaluations += len(now)
    counts.lost += killed.num_lost()
    counts.twice += num_twice(killed.directory)
    counts.unequal += not same
    counts.left += killed.num_left()


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = make_parser(__doc__)
    parser.add_argument("--number", type=int, default=100, help="kills in all (default 100)")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)} (default all, in turn)")
    parser.add_argument("--cluster", choices=CLUSTERS, default="ray", help="what has the nodes (default ray)")
    parser.add_argument("--programs", action="store_true", help="candidates that sleep, instead of small trainings")
    parser.add_argument("--runs", type=int, default=40, help="of each selection that is killed (default 40)")
    parser.add_argument("--directory", type=Path, help="where to keep the runs (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = args.directory or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        targets, options = args.targets.split(","), {"programs": args.programs, "runs": args.runs}
        show(str(kill_many(args.number, targets, root, cluster=args.cluster, **options)))


if __name__ == "__main__":
    main()
