"""What a selection survives: kills at random moments, and two thousand evaluations in one run.

    python scripts/benchmarks/reliability.py kills --number 100
    python scripts/benchmarks/reliability.py soak --evaluations 2000

`kills` runs the real command on the sample task with small real trainings, on this machine and on a Ray cluster of two
nodes in turn. It kills (SIGKILL) the parent process, a worker, Ray's worker above one or a whole Ray node again and
again at random moments, equally often; puts a fresh node in the place of a killed one; resumes the selection with
`--recover` until it is done; and compares the final store with that of an uninterrupted run. Without Ray:
`--targets parent,worker`. With `--cluster slurm` all selections run on a Slurm of one node, whose jobs are killed or
cancelled, and whose daemon is killed and started again. With `--cluster workers` they are made by two processes of
`fiesta worker`, which are killed alone or with all that they have started, and replaced. `--programs` trains nothing,
so that more kills fit into an hour.

`soak` runs one selection whose evaluations do nothing, in real processes, and shows the parent's memory, open files,
processes and time of a step over its first and its last hundred evaluations.
"""

import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import psutil
from common import make_parser, print_table, show
from kill_plans import CLUSTERS
from random_kills import TARGETS, kill_many

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Outcome
from fiesta_allennlp.executors.processes import ProcessExecutor

CANDIDATES = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class ParentSample:
    """The parent after one evaluation. `step_seconds` is the time from its outcome to waiting for the next one;
    `cpu_seconds` is what the parent itself was at work of it, also on a busy machine."""

    megabytes: float
    num_open_files: int
    num_processes: int
    step_seconds: float
    cpu_seconds: float


MEASURES: Dict[str, Callable[[ParentSample], float]] = {
    "memory, MB": lambda sample: sample.megabytes,
    "open files": lambda sample: sample.num_open_files,
    "processes below it": lambda sample: sample.num_processes,
    "step, ms": lambda sample: 1000 * sample.step_seconds,
    "of it at work, ms": lambda sample: 1000 * sample.cpu_seconds,
}


class SamplingExecutor(ProcessExecutor):
    """Notes how long the parent was busy between two outcomes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.samples: List[ParentSample] = []
        self._outcome_times: Optional[Tuple[float, float]] = None

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        if self._outcome_times is not None:
            clock, processor = self._outcome_times
            self._sample(time.perf_counter() - clock, time.thread_time() - processor)
            self._outcome_times = None
        for outcome in super().completed(timeout=timeout):
            self._outcome_times = time.perf_counter(), time.thread_time()
            yield outcome

    def _sample(self, step: float, processor: float) -> None:
        me = psutil.Process()
        megabytes = me.memory_info().rss / 2**20
        self.samples.append(ParentSample(megabytes, me.num_fds(), len(me.children(recursive=True)), step, processor))


def soak(num_evaluations: int, workers: int, root: Path) -> List[ParentSample]:
    """One selection of so many evaluations. Returns a sample for each."""
    from selections import FailureListener, NoOpEvaluator, run_selection  # which loads AllenNLP

    directory = RunDirectory(root / "soak")
    strategy = {
        "type": "top_two",
        "max_evaluations": num_evaluations,
        "confidence": 1 - 1e-12,
        "stop": {"type": "bayesian"},
    }
    executor = SamplingExecutor(directory, workers=workers)
    run_selection(directory, CANDIDATES, strategy, NoOpEvaluator(), executor, FailureListener())
    return executor.samples


def show_soak(samples: List[ParentSample]) -> None:
    """Medians of the first and the last hundred samples, with the largest of them."""
    count = min(100, len(samples) // 2)
    sample_groups = (samples[:count], samples[-count:])
    rows = []
    for name, value in MEASURES.items():
        columns = [list(map(value, part)) for part in sample_groups]
        rows.append([name, *(f"{statistics.median(column):.1f} (at most {max(column):.1f})" for column in columns)])
    headings = ("", f"first {count}", f"last {count}")
    print_table(headings, rows, title=f"The parent over {len(samples)} steps")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("kills", "soak"))
    parser.add_argument("--number", type=int, default=100, help="kills in all (default 100)")
    parser.add_argument("--targets", default=",".join(TARGETS), help=f"of {', '.join(TARGETS)} (default all, in turn)")
    parser.add_argument("--cluster", choices=CLUSTERS, default="ray", help="what has the nodes (default ray)")
    parser.add_argument("--programs", action="store_true", help="candidates that sleep, instead of small trainings")
    parser.add_argument("--runs", type=int, default=40, help="of each selection that is killed (default 40)")
    parser.add_argument("--evaluations", type=int, default=2000, help="of the soak (default 2000)")
    parser.add_argument("--workers", type=int, default=2, help="of the soak (default 2)")
    parser.add_argument("--directory", type=Path, help="where to keep the runs (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = args.directory or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        if args.what == "soak":
            show_soak(soak(args.evaluations, args.workers, root))
        else:
            targets, options = args.targets.split(","), {"programs": args.programs, "runs": args.runs}
            show(str(kill_many(args.number, targets, root, cluster=args.cluster, **options)))
        show(f"{time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    main()
