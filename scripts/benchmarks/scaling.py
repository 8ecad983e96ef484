"""What the executors cost and how they scale.

Two measurements, each for processes and for Ray (on a local cluster that is started for it):

- the scheduling overhead of one evaluation: a selection with 16 workers whose evaluator does nothing, the seconds from
  outcome to outcome once all workers have begun, store included; and the processor's seconds of all processes together,
  which tell on a busy machine too;
- trainings per hour of the sample's candidates with 1 and with 2 workers, warm, and their ratio.

    python scripts/benchmarks/scaling.py overhead --evaluations 400
    python scripts/benchmarks/scaling.py throughput --evaluations 40

The second one needs a machine that is otherwise idle.
"""

import argparse
import ctypes
import os
import secrets
import statistics
import tempfile
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Iterator, List, Sequence

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
# Read when Ray is imported: else it writes a token into the home, and lets all else on the machine go before its work.
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # a cluster that runs already knows only its own
os.environ.update(RAY_AUTH_MODE="token", RAY_worker_niceness="0")

import psutil
from common import make_parser, print_table
from selections import FailureListener, NoOpEvaluator, prepared_trainings, run_selection

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Outcome
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.executors.base import Evaluator, Executor

EXECUTORS = ("processes", "ray")
OVERHEAD_COLUMNS = ("executor", "ms each", "first 100 after the start", "last 100", "wanted", "ms of the processor")
THROUGHPUT_COLUMNS = ("executor", "1 worker", "2 workers", "ratio", "wanted")


class Stopwatch(FailureListener):
    """Notes when each outcome was written down, and the processor's seconds until the outcomes of these numbers."""

    def __init__(self, *marks: int) -> None:
        self.times: List[float] = []
        self.cpu_seconds: List[float] = []
        self._marks = marks

    def on_outcome(self, outcome: Outcome) -> None:
        super().on_outcome(outcome)
        self.times.append(time.monotonic())
        if len(self.times) in self._marks:
            self.cpu_seconds.append(processor_seconds())

    def seconds_each(self) -> float:
        """The mean seconds between outcomes, the first ones left out: in these the workers start."""
        num_warm_up = self._marks[0]
        return (self.times[-1] - self.times[num_warm_up - 1]) / (len(self.times) - num_warm_up)


def adopt_orphans() -> None:
    """Have what outlives its parent come below this process: the server of a Ray node's fresh processes does."""
    set_child_subreaper = 36  # Linux's PR_SET_CHILD_SUBREAPER
    ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def processor_seconds() -> float:
    """Of this process and of all below it, those that have ended included."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def time_selection(
    name: str, evaluator: Evaluator, candidates: Sequence[str], *, num_workers: int, num_evaluations: int, warm_up: int
) -> Stopwatch:
    """Run a selection that evaluates all candidates equally often, `warm_up` times before it counts."""
    total = warm_up + num_evaluations
    stopwatch = Stopwatch(warm_up, total)
    with tempfile.TemporaryDirectory() as scratch, ray_cluster(num_workers) if name == "ray" else nullcontext():
        directory = RunDirectory(Path(scratch))
        executor = build(Executor, {"type": name}, directory=directory, workers=num_workers)
        strategy = {"type": "non_adaptive_fb", "budget": total}
        run_selection(directory, candidates, strategy, evaluator, executor, stopwatch)
    return stopwatch


@contextmanager
def ray_cluster(num_cpus: int) -> Iterator[None]:
    """A cluster on this machine that takes itself to have so many CPUs: Ray ends workers beyond these when idle."""
    import ray

    ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def overhead(args: argparse.Namespace) -> Iterator[List[str]]:
    """A row for each executor: milliseconds of evaluations that do nothing."""
    warm_up = 16 * args.workers  # some of the workers begin late: each first loads AllenNLP
    for name in args.executors:
        stopwatch = time_selection(
            name,
            NoOpEvaluator(),
            ["a", "b"],
            num_workers=args.workers,
            num_evaluations=args.evaluations,
            warm_up=warm_up,
        )
        times = stopwatch.times
        gaps = [after - before for before, after in zip(times[warm_up:], times[warm_up + 1 :], strict=False)]
        means = (stopwatch.seconds_each(), statistics.mean(gaps[:100]), statistics.mean(gaps[-100:]))
        processor = (stopwatch.cpu_seconds[1] - stopwatch.cpu_seconds[0]) / args.evaluations
        yield [name, *(f"{1000 * mean:.1f}" for mean in means), "under 50", f"{1000 * processor:.1f}"]


def throughput(args: argparse.Namespace) -> Iterator[List[str]]:
    """A row for each executor: trainings of the sample in an hour."""
    with tempfile.TemporaryDirectory() as scratch:
        evaluator = prepared_trainings(sorted(Path("training_configs/sample").glob("*.jsonnet")), Path(scratch))
        candidates = list(evaluator.runs)
        for name in args.executors:
            hourly = []
            for num_workers in (1, 2):
                stopwatch = time_selection(
                    name,
                    evaluator,
                    candidates,
                    num_workers=num_workers,
                    num_evaluations=args.evaluations,
                    warm_up=len(candidates) * num_workers,
                )
                hourly.append(3600 / stopwatch.seconds_each())
            yield [name, *(f"{rate:.0f}" for rate in hourly), f"{hourly[1] / hourly[0]:.2f}", "1.8 or more"]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("overhead", "throughput"))
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=16, help="for the overhead (default 16)")
    parser.add_argument("--executors", nargs="+", choices=EXECUTORS, default=list(EXECUTORS))
    args = parser.parse_args()
    adopt_orphans()
    if args.what == "overhead":
        title = f"Scheduling overhead, {args.workers} workers, {args.evaluations} evaluations that do nothing"
        print_table(OVERHEAD_COLUMNS, overhead(args), title=title)
    else:
        print_table(
            THROUGHPUT_COLUMNS, throughput(args), title=f"Trainings per hour, {args.evaluations} of the sample each"
        )


if __name__ == "__main__":
    main()
