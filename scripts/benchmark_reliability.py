"""What a selection survives: kills at random moments, and two thousand evaluations in one run.

    python scripts/benchmark_reliability.py kills --number 100
    python scripts/benchmark_reliability.py soak --evaluations 2000

`kills` runs the real command on the sample task with small real trainings, kills (SIGKILL) its parent process or one
of its workers again and again at random moments, resumes it with `--recover` until it is done, and compares the final
store with that of an uninterrupted run. `soak` runs one selection whose evaluations do nothing, in real processes, and
shows the parent's memory, open files, processes and time of a step over its first and its last hundred evaluations.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import psutil
from allennlp.common import Params
from rich.console import Console
from rich.table import Table

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.evaluators.base import Evaluator
from fiesta_allennlp.executors.processes import ProcessExecutor
from fiesta_allennlp.records import Decision, Evaluation, History, Outcome, Request
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.run_store import RunStore
from fiesta_allennlp.selection import Selection
from fiesta_allennlp.strategies import Strategy

REPOSITORY = Path(__file__).resolve().parent.parent
CANDIDATES = [f"training_configs/sample/{name}.jsonnet" for name in ("tdlstm", "lstm", "tdrnn", "ian")]
KILLS_PER_SELECTION = 10
MOST_BETWEEN = 6
"""Trainings between two kills, at most; on average half as many."""
LONGEST_WAIT = 2.0
"""Seconds after the last of them, at most: about as long as two trainings."""
SHORT = json.dumps({"trainer.num_epochs": 1})
PLANS: Dict[str, List[str]] = {
    "non_adaptive_fb, 2 workers": ["--strategy", "non_adaptive_fb", "--budget", "40", "--workers", "2"],
    "ttts, 1 worker": ["--strategy", "ttts", "--confidence", "0.999999", "--max-evaluations", "40", "--workers", "1"],
}
"""Selections whose evaluations do not depend on which training finishes first."""


def parent_process(parent: psutil.Process) -> Optional[psutil.Process]:
    return parent


def worker_process(parent: psutil.Process) -> Optional[psutil.Process]:
    """One of the processes that train: children of the fork server, which is the parent's child."""
    workers = []
    for child in parent.children():
        with suppress(psutil.NoSuchProcess):
            workers += [worker for worker in child.children() if worker.status() != psutil.STATUS_ZOMBIE]
    return random.choice(workers) if workers else None


TARGETS: Dict[str, Callable[[psutil.Process], Optional[psutil.Process]]] = {
    "parent": parent_process,
    "worker": worker_process,
}
"""What can be killed: from the parent process to the process to kill, None where there is none at the moment."""


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
            if status != -signal.SIGKILL:
                raise SystemExit(f"{self.directory.root}: exit status {status}, see {self.output}")
            self.finished.update(finished_in(self.directory))

    @property
    def output(self) -> Path:
        return self.directory.root.with_suffix(".txt")

    def _start(self) -> subprocess.Popen:
        recover = ["--recover"] if self.directory.store.exists() else []
        command = [sys.executable, "-m", "fiesta_allennlp", "select", *CANDIDATES, "-s", str(self.directory.root)]
        with self.output.open("a") as out:
            return subprocess.Popen([*command, *self.options, *recover], cwd=REPOSITORY, stdout=out, stderr=out)

    def _kill(self, process: subprocess.Popen, kills: List[Tuple[str, int]], hit: List[str]) -> None:
        while kills and process.poll() is None:
            target, num_trained = kills[0]
            if not self._wait(process, num_trained):
                return
            victim = None
            while victim is None and process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    victim = TARGETS[target](psutil.Process(process.pid))
            if victim is not None:
                self._note_outcomes()
                victim.kill()
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
            if end is None and self._num_trained() >= wanted and worker_process(psutil.Process(process.pid)):
                end = time.monotonic() + random.uniform(0, LONGEST_WAIT)
            if end is not None and time.monotonic() >= end:
                return True
            time.sleep(0.02)
        return False

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


def kill_many(number: int, targets: List[str], root: Path, console: Console) -> Counts:
    """Kill so often in all, each target in turn, over as many selections as it takes."""
    counts, planned = Counts(), itertools.islice(itertools.cycle(targets), number)
    references: Dict[str, Dict[Any, Any]] = {}
    waiting = list(planned)
    for index in itertools.count():
        if not waiting:
            return counts
        plan = list(PLANS)[index % len(PLANS)]
        options = [*PLANS[plan], "--metric", "accuracy", "--entropy", "5", "-o", SHORT, "--max-failures", "1000"]
        if plan not in references:
            whole = Killed(RunDirectory(root / f"whole-{len(references)}"), options)
            whole.run([])
            references[plan] = finished_in(whole.directory)
        reference = references[plan]
        kills = [(target, random.randint(0, MOST_BETWEEN)) for target in waiting[:KILLS_PER_SELECTION]]
        killed = Killed(RunDirectory(root / f"killed-{index}"), options)
        hit = killed.run(kills)
        waiting = waiting[len(hit) :]
        _count(counts, killed, hit, reference, ordered="1 worker" in plan)
        console.print(f"{plan}: {len(hit)} kills, {len(reference)} evaluations; {counts}", soft_wrap=True)
    return counts


def _count(counts: Counts, killed: Killed, hit: List[str], reference: Dict[Any, Any], *, ordered: bool) -> None:
    now = finished_in(killed.directory)
    same = list(now.items()) == list(reference.items()) if ordered else now == reference
    counts.kills.update(hit)
    counts.selections += 1
    counts.evaluations += len(now)
    counts.lost += killed.num_lost()
    counts.twice += num_twice(killed.directory)
    counts.unequal += not same


@dataclass(frozen=True)
class Nothing(Evaluator):
    """A score at once, from the request's seeds alone."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        directory.mkdir(parents=True, exist_ok=True)
        return Evaluation(request, float(np.random.default_rng(request.random_seed).normal(0.6, 0.02)), "score")


@dataclass(frozen=True)
class Sample:
    """The parent after one evaluation. `step` is the time from its outcome to waiting for the next one."""

    megabytes: float
    files: int
    processes: int
    step: float


class Watched(ProcessExecutor):
    """Notes how long the parent was busy between two outcomes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.samples: List[Sample] = []
        self._since: Optional[float] = None

    def completed(self) -> Iterator[Outcome]:
        if self._since is not None:
            self._sample(time.perf_counter() - self._since)
        for outcome in super().completed():
            self._since = time.perf_counter()
            yield outcome

    def _sample(self, step: float) -> None:
        me = psutil.Process()
        megabytes = me.memory_info().rss / 2**20
        self.samples.append(Sample(megabytes, me.num_fds(), len(me.children(recursive=True)), step))


class Silent:
    def on_state(self, history: History, decision: Decision) -> None:
        pass

    def on_outcome(self, outcome: Outcome) -> None:
        pass


def soak(num_evaluations: int, workers: int, root: Path) -> List[Sample]:
    """One selection of so many evaluations. Returns a sample for each."""
    directory = RunDirectory(root / "soak")
    names = [Path(path).stem for path in CANDIDATES]
    store = RunStore(directory, create=True)
    store.put_candidates([{"name": name, "source": name, "config": {}, "facts": {}} for name in names])
    params = {
        "type": "ttts",
        "belief": {"type": "student_t"},
        "max_evaluations": num_evaluations,
        "confidence": 1 - 1e-12,
    }
    executor = Watched(directory, workers=workers)
    try:
        Selection(
            strategy=Strategy.from_params(Params(params)),
            evaluator=Nothing(),
            executor=executor,
            store=store,
            directory=directory,
            listener=Silent(),
            entropy=5,
        ).run()
    finally:
        store.close()
    return executor.samples


def soak_table(samples: List[Sample]) -> Table:
    count = min(100, len(samples) // 2)
    table = Table("", f"first {count}", f"last {count}", title=f"the parent over {len(samples)} steps")
    rows: Dict[str, Callable[[Sample], float]] = {
        "memory, MB": lambda sample: sample.megabytes,
        "open files": lambda sample: sample.files,
        "processes below it": lambda sample: sample.processes,
        "step, ms": lambda sample: 1000 * sample.step,
    }
    for name, value in rows.items():
        first, last = [list(map(value, part)) for part in (samples[:count], samples[-count:])]
        cells = [f"{statistics.median(v):.1f} (at most {max(v):.1f})" for v in (first, last)]
        table.add_row(name, *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kills", "soak"))
    parser.add_argument("--number", type=int, default=100, help="kills in all (default 100)")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)} (default all, in turn)")
    parser.add_argument("--evaluations", type=int, default=2000, help="of the soak (default 2000)")
    parser.add_argument("--workers", type=int, default=2, help="of the soak (default 2)")
    parser.add_argument("--directory", type=Path, help="where to keep the runs (default: a temporary one)")
    args = parser.parse_args()
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as scratch:
        root = args.directory or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        if args.what == "soak":
            console.print(soak_table(soak(args.evaluations, args.workers, root)))
        else:
            console.print(kill_many(args.number, args.targets.split(","), root, console))
        console.print(f"{time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    main()
