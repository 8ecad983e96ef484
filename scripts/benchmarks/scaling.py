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
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
# Read when Ray is imported: else it writes a token into the home, and lets all else on the machine go before its work.
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # a cluster that runs already knows only its own
os.environ.update(RAY_AUTH_MODE="token", RAY_worker_niceness="0")

import psutil
from allennlp.common import Params
from rich.console import Console
from rich.table import Table

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.records import Decision, Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.config import load_config, with_absolute_paths
from fiesta_allennlp.trainings.evaluator import AllenNLPTraining
from fiesta_allennlp.trainings.preparation import prepare_candidate

EXECUTORS = ("processes", "ray")


@dataclass(frozen=True)
class Nothing(Evaluator):
    """A score at once."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return Evaluation(request, float(request.replicate % 7), "nothing")


class Stopwatch:
    """Notes when each outcome was written down, and the processor's seconds until the outcomes of these numbers."""

    def __init__(self, *marks: int) -> None:
        self.times: List[float] = []
        self.processor: List[float] = []
        self._marks = marks

    def on_state(self, history: History, decision: Decision) -> None:
        pass

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            raise SystemExit(f"{outcome.request.name} failed: {outcome.error}")
        self.times.append(time.monotonic())
        if len(self.times) in self._marks:
            self.processor.append(processor_seconds())


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


def watched(
    name: str, evaluator: Evaluator, candidates: List[str], *, num_workers: int, num_evaluations: int, warm_up: int
) -> Stopwatch:
    """Run a selection that evaluates all candidates equally often. The first `warm_up` outcomes are a mark."""
    params: Dict[str, Any] = {"type": name}
    strategy = {"type": "non_adaptive_fb", "budget": num_evaluations, "belief": {"type": "student_t"}}
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        stopwatch = Stopwatch(warm_up, num_evaluations)
        with (
            ray_cluster(num_workers) if name == "ray" else nullcontext(),
            closing(RunStore(directory, create=True)) as store,
            closing(Executor.from_params(Params(params), directory=directory, workers=num_workers)) as executor,
        ):
            store.put_candidates([{"name": name, "source": "", "config": {}, "facts": {}} for name in candidates])
            Selection(
                strategy=Strategy.from_params(Params(strategy)),
                evaluator=evaluator,
                executor=executor,
                store=store,
                directory=directory,
                listener=stopwatch,
                entropy=1,
            ).run()
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


def seconds_each(times: List[float], num_warm_up: int) -> float:
    """The mean seconds between outcomes, the first ones left out: in these the workers start."""
    return (times[-1] - times[num_warm_up - 1]) / (len(times) - num_warm_up)


def measure_overhead(args: argparse.Namespace, console: Console) -> None:
    table = Table(title=f"scheduling overhead, {args.workers} workers, {args.evaluations} evaluations that do nothing")
    columns = ("executor", "ms each", "first 100 after the start", "last 100", "wanted", "ms of the processor")
    for column in columns:
        table.add_column(column, justify="right")
    warm_up = 16 * args.workers  # some of the workers begin late: each first loads AllenNLP
    for name in args.executors:
        num_evaluations = args.evaluations + warm_up
        stopwatch = watched(
            name, Nothing(), ["a", "b"], num_workers=args.workers, num_evaluations=num_evaluations, warm_up=warm_up
        )
        times = stopwatch.times
        gaps = [after - before for before, after in zip(times[warm_up:], times[warm_up + 1 :], strict=False)]
        means = (seconds_each(times, warm_up), statistics.mean(gaps[:100]), statistics.mean(gaps[-100:]))
        processor = (stopwatch.processor[1] - stopwatch.processor[0]) / args.evaluations
        table.add_row(name, *(f"{1000 * mean:.1f}" for mean in means), "under 50", f"{1000 * processor:.1f}")
    console.print(table)


def sample_evaluator(directory: Path) -> Tuple[List[str], AllenNLPTraining]:
    """The sample's candidates, prepared."""
    paths = sorted(Path("training_configs/sample").glob("*.jsonnet"))
    configs = {path.stem: with_absolute_paths(load_config(path)) for path in paths}
    vectors = {
        name: dict(prepare_candidate(config, group_by=None, vectors_directory=directory).vectors)
        for name, config in configs.items()
    }
    return list(configs), AllenNLPTraining(configs, "macro_f1", "sentence_id", vectors)


def measure_throughput(args: argparse.Namespace, console: Console) -> None:
    table = Table(title=f"trainings per hour on the sample, {args.evaluations} trainings each")
    for column in ("executor", "1 worker", "2 workers", "ratio", "wanted"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as scratch:
        candidates, evaluator = sample_evaluator(Path(scratch))
        for name in args.executors:
            hourly = []
            for num_workers in (1, 2):
                warm_up = len(candidates) * num_workers
                stopwatch = watched(
                    name,
                    evaluator,
                    candidates,
                    num_workers=num_workers,
                    num_evaluations=args.evaluations + warm_up,
                    warm_up=warm_up,
                )
                hourly.append(3600 / seconds_each(stopwatch.times, warm_up))
            table.add_row(name, *(f"{rate:.0f}" for rate in hourly), f"{hourly[1] / hourly[0]:.2f}", "1.8 or more")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "throughput"))
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=16, help="for the overhead (default 16)")
    parser.add_argument("--executors", nargs="+", choices=EXECUTORS, default=list(EXECUTORS))
    args = parser.parse_args()
    console = Console(highlight=False, width=110)
    measure = {"overhead": measure_overhead, "throughput": measure_throughput}[args.what]
    measure(args, console)


if __name__ == "__main__":
    import scaling  # under its own name, so that other processes find its evaluator without Ray's pickling

    adopt_orphans()
    scaling.main()
