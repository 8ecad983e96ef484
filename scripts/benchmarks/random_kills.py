"""Kills a selection at random moments, resumes it until it is done, and counts what was lost.

    python scripts/benchmarks/random_kills.py --engine slurm --number 20

Runs the real command with programs that sleep, whose scores follow from their seeds, as local processes, in jobs of a
Slurm of one node, or on a Ray cluster of two nodes, all on this machine. It kills (SIGKILL) the command, the process of
a run, the job above one or a node, equally often and at random moments; resumes the selection with `--recover` until it
is done; and compares the final store with that of an undisturbed selection with the same seed.
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
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Tuple

import psutil
from common import make_parser, show
from kill_engines import Engine, find_processes, local_processes, ray_nodes, slurm_node

from fiesta_allennlp.core.directory import RunDirectory

MARK = "KILLED_SELECTION"  # the variable by which the processes of a selection are found
KILLS_PER_SELECTION = 10
NUM_RUNS = 24  # of each selection
MAX_RUNS_BETWEEN = 3  # finished runs between two kills
LONGEST_WAIT = 2.0  # seconds after the last of them: about as long as two runs
LONGEST_END = 30.0  # seconds in which the processes of a selection that has ended may end
SLEEP = "sleep $(($1 % 2)).$(($1 % 10))"
SCORE = "echo '{\"accuracy\": '0.$(($1 % 1000))$(($2 % 1000))$3'}'"

ENGINES: Dict[str, Callable[[], ContextManager[Engine]]] = {
    "processes": local_processes,
    "slurm": slurm_node,
    "ray": ray_nodes,
}


@dataclass
class Counts:
    """The result of all kills. `lost` are finished runs that are gone or were made again, and `left` are processes and
    folders of jobs that are there after the end."""

    kills: Counter = field(default_factory=Counter)
    selections: int = 0
    runs: int = 0
    lost: int = 0
    unequal: int = 0
    left: int = 0


@dataclass
class KilledSelection:
    """One selection that is killed again and again."""

    directory: RunDirectory
    options: List[str]
    engine: Engine = field(default_factory=Engine)
    finished: Dict[Any, Any] = field(default_factory=dict)
    written: Dict[Path, int] = field(default_factory=dict)

    def run(self, kills: List[Tuple[str, int]]) -> List[str]:
        """Run to the end with these kills: the target, and the finished runs before it. Return the targets hit."""
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
            if status != -signal.SIGKILL:
                raise SystemExit(f"{self.directory.root}: exit status {status}, see {self.output}")
            self.finished.update(finished_in(self.directory))

    @property
    def output(self) -> Path:
        return self.directory.root.with_suffix(".txt")

    def _start(self) -> "subprocess.Popen[bytes]":
        recover = ["--recover"] if self.directory.store.exists() else []
        command = [sys.executable, "-m", "fiesta_allennlp", "select", "-s", str(self.directory.root)]
        environment = {**os.environ, MARK: str(self.directory.root)}
        with self.output.open("a") as out:
            return subprocess.Popen([*command, *self.options, *recover], stdout=out, stderr=out, env=environment)

    def _kill(self, process: "subprocess.Popen[bytes]", kills: List[Tuple[str, int]], hit: List[str]) -> None:
        while kills and process.poll() is None:
            target, num_runs = kills[0]
            if not self._wait(process, num_runs):
                return
            is_hit = False
            while not is_hit and process.poll() is None:
                self._note_outcomes()
                with suppress(psutil.NoSuchProcess):
                    is_hit = self.engine.kill(target, psutil.Process(process.pid))
            if is_hit:
                kills.pop(0)
                hit.append(target)
                if target == "command":
                    return

    def _wait(self, process: "subprocess.Popen[bytes]", num_runs: int) -> bool:
        """Wait for a random moment after so many more runs have finished. Return False if the selection ended."""
        wanted, end = self._num_finished() + num_runs, float("inf")
        while process.poll() is None:
            if end == float("inf") and self._num_finished() >= wanted:
                with suppress(psutil.NoSuchProcess):
                    if self.engine.runs(psutil.Process(process.pid)):
                        end = time.monotonic() + random.uniform(0, LONGEST_WAIT)
            if time.monotonic() >= end:
                return True
            time.sleep(0.05)
        return False

    def _outcomes(self) -> Iterator[Path]:
        return self.directory.root.glob("evaluations/*/outcome.json")

    def _num_finished(self) -> int:
        return len(list(self._outcomes()))

    def _note_outcomes(self) -> None:
        for path in self._outcomes():
            self.written[path] = path.stat().st_mtime_ns

    def num_lost(self) -> int:
        """Return the number of runs that were in the store, or whose outcome was, and are not the same now."""
        now = finished_in(self.directory)
        gone = [key for key, values in self.finished.items() if now.get(key) != values]
        again = [path for path, time in self.written.items() if not path.exists() or path.stat().st_mtime_ns != time]
        return len(gone) + len(again)

    def num_left(self) -> int:
        """Return the number of processes of this selection, once they had time to end, and of folders of jobs."""
        end = time.monotonic() + LONGEST_END
        while (processes := find_processes(self._is_own)) and time.monotonic() < end:
            time.sleep(0.5)
        return len(processes) + len(list(self.directory.jobs.glob("*/*")))

    def _is_own(self, process: psutil.Process) -> bool:
        return bool(process.environ().get(MARK) == str(self.directory.root))


def finished_in(directory: RunDirectory) -> Dict[Any, Any]:
    """Return score, metric and seeds of the finished runs in a store, by candidate and replicate. They are read from a
    copy, so that nothing is repaired in passing."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in directory.root.glob("store.sqlite*"):
            shutil.copy(path, scratch)
        if not (Path(scratch) / directory.store.name).exists():
            return {}
        with closing(sqlite3.connect(Path(scratch) / directory.store.name)) as database:
            columns = "candidate, replicate, score, metric, split_seed, random_seed, numpy_seed, pytorch_seed"
            rows = database.execute(f"SELECT {columns} FROM evaluations WHERE status = 'finished'")
            return {row[:2]: row[2:] for row in rows}


def write_programs(directory: Path) -> List[str]:
    """Write four candidates that sleep in a shell. Return their paths."""
    directory.mkdir()
    paths = [directory / f"program{number}.json" for number in range(4)]
    for number, path in enumerate(paths):
        command = ["sh", "-c", f"{SLEEP}; {SCORE}", "sh", "{seed}", "{split_seed}", str(number)]
        path.write_text(json.dumps({"type": "program", "command": command, "metrics": "stdout"}))
    return [str(path) for path in paths]


def kill_many(number: int, engine: Engine, root: Path) -> Counts:
    """Kill so often in all, every target equally often, over as many selections as it takes."""
    told = ["--metric", "accuracy", "--strategy", "non_adaptive_fb", "--budget", str(NUM_RUNS), "--seed", "5"]
    options = [*write_programs(root / "programs"), *told, "--max-failures", "1000"]
    whole = KilledSelection(RunDirectory(root / "whole"), [*options, "--workers", "4"])
    whole.run([])
    counts, waiting = Counts(), Counter(itertools.islice(itertools.cycle(engine.targets), number))
    while waiting.total():
        targets = random.sample([*waiting.elements()], min(KILLS_PER_SELECTION, waiting.total()))
        kills = [(target, random.randint(0, MAX_RUNS_BETWEEN)) for target in targets]
        directory = RunDirectory(root / f"killed-{counts.selections}")
        killed = KilledSelection(directory, [*options, *engine.options], engine)
        hit = killed.run(kills)
        waiting -= Counter(hit)
        runs = finished_in(directory)
        counts.kills.update(hit)
        counts.selections += 1
        counts.runs += len(runs)
        counts.lost += killed.num_lost()
        counts.unequal += runs != finished_in(whole.directory)
        counts.left += killed.num_left()
        show(f"{len(hit)} kills, {NUM_RUNS} runs; {counts}")
    return counts


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = make_parser(__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="processes", help="what makes the runs")
    parser.add_argument("--number", type=int, default=20, help="kills in all (default 20)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ENGINES[args.engine]() as engine:
        show(str(kill_many(args.number, engine, Path(scratch))))


if __name__ == "__main__":
    main()
