"""What a selection survives: kills at random moments, and two thousand evaluations in one run.

    python scripts/benchmarks/reliability.py kills --number 100
    python scripts/benchmarks/reliability.py soak --evaluations 2000

`kills` runs the real command on the sample task with small real trainings, on this machine and on a Ray cluster of two
nodes in turn. It kills (SIGKILL) the parent process, a worker or a whole Ray node again and again at random moments,
equally often; puts a fresh node in the place of a killed one; resumes the selection with `--recover` until it is done;
and compares the final store with that of an uninterrupted run. Without Ray: `--targets parent,worker`.

`soak` runs one selection whose evaluations do nothing, in real processes, and shows the parent's memory, open files,
processes and time of a step over its first and its last hundred evaluations.
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
import psutil
from allennlp.common import Params
from random_kills import TARGETS, kill_many
from rich.console import Console
from rich.table import Table

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.processes import ProcessExecutor
from fiesta_allennlp.records import Decision, Evaluation, History, Outcome, Request
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.strategies import Strategy

CANDIDATES = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Nothing(Evaluator):
    """A score at once, from the request's seeds alone."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        directory.mkdir(parents=True, exist_ok=True)
        return Evaluation(request, float(np.random.default_rng(request.random_seed).normal(0.6, 0.02)), "score")


@dataclass(frozen=True)
class Sample:
    """The parent after one evaluation. `step` is the time from its outcome to waiting for the next one; `processor` is
    what the parent itself was at work of it, also on a busy machine."""

    megabytes: float
    files: int
    processes: int
    step: float
    processor: float


class Watched(ProcessExecutor):
    """Notes how long the parent was busy between two outcomes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.samples: List[Sample] = []
        self._since: Optional[Tuple[float, float]] = None

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        if self._since is not None:
            clock, processor = self._since
            self._sample(time.perf_counter() - clock, time.thread_time() - processor)
            self._since = None
        for outcome in super().completed(timeout=timeout):
            self._since = time.perf_counter(), time.thread_time()
            yield outcome

    def _sample(self, step: float, processor: float) -> None:
        me = psutil.Process()
        megabytes = me.memory_info().rss / 2**20
        self.samples.append(Sample(megabytes, me.num_fds(), len(me.children(recursive=True)), step, processor))


class Silent:
    def on_state(self, history: History, decision: Decision) -> None:
        pass

    def on_outcome(self, outcome: Outcome) -> None:
        pass


def soak(num_evaluations: int, workers: int, root: Path) -> List[Sample]:
    """One selection of so many evaluations. Returns a sample for each."""
    directory = RunDirectory(root / "soak")
    store = RunStore(directory, create=True)
    store.put_candidates([{"name": name, "source": name, "config": {}, "facts": {}} for name in CANDIDATES])
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
        "of it at work, ms": lambda sample: 1000 * sample.processor,
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
