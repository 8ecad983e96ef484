"""Trainings needed by `fiesta_allennlp.functional` and by the package published with the FIESTA paper, side by side.

Both choose among the 8 TDSA models of the paper from their released scores: an evaluation is a random score of its
model, and none comes twice. Repetition r gives both the same scores in the same order, so that most of the chance is
common to both. Also times one decision of each: what is believed, and the next model. Prints Markdown; Ctrl-C ends the
repetitions and prints what there is.

    pip install --no-deps --target published fiesta-nlp==0.0.1
    python scripts/benchmark_published.py --package published
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import signal
import sys
import timeit
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import numpy as np

import fiesta_allennlp.functional as ours
from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.strategies import TopTwoThompson

DEFAULT_SAMPLES = 100_000
NUM_TIMED_EVALUATIONS = 12


class Task(NamedTuple):
    call: str
    p_value: float
    samples: int
    repetition: int


@dataclass(frozen=True)
class Outcome:
    """Evaluations until the end, and whether the best model was found, of both packages."""

    task: Task
    theirs: int
    ours: int
    theirs_correct: bool
    ours_correct: bool


class Bench:
    """What a process keeps: the table of scores and the published package. Shape of `table`: `(models, scores)`."""

    table: np.ndarray
    published: Any


def parse() -> argparse.Namespace:
    shared = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True, help="directory with fiesta-nlp 0.0.1")
    parser.add_argument("--scores", type=Path, default=shared / "scores" / "fiesta_tdsa_test_f1.json")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--samples", type=int, default=10_000, help="of the published package, for most repetitions")
    parser.add_argument(
        "--repetitions-at-default", type=int, default=5, help="how many of them with 100000 samples too"
    )
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def set_up(package: Path, scores: Path) -> None:
    sys.path.insert(0, str(package))
    import fiesta

    table: Dict[str, List[float]] = json.loads(scores.read_text(encoding="utf-8"))
    Bench.table = np.array([values for name, values in table.items() if not name.endswith("_200")])
    Bench.published = fiesta


def functions(repetition: int) -> List[Any]:
    """Model functions that give the scores of the table in this repetition's order."""
    rng = np.random.default_rng(repetition)
    orders = [iter(rng.permutation(scores)) for scores in Bench.table]
    return [lambda train, test, order=order: next(order) for order in orders]


def run(task: Task) -> Outcome:
    best = int(Bench.table.mean(axis=1).argmax())
    np.random.seed(task.repetition)
    options: Dict[str, Any] = {"data": [], "split_function": lambda data: (data, data), "p_value": task.p_value}
    published = getattr(Bench.published, task.call)(
        model_functions=functions(task.repetition), samples=task.samples, **options
    )
    rng = np.random.default_rng(task.repetition)
    mine = getattr(ours, task.call)(model_functions=functions(task.repetition), rng=rng, **options)
    correct = [int(np.argmax(result[0])) == best for result in (published, mine)]
    return Outcome(task, published[2], mine.num_evaluations, *correct)


def in_words(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def row(outcomes: List[Outcome]) -> str:
    """One line of the table. The ratio's error is that of the paired differences."""
    task = outcomes[0].task
    theirs = np.array([outcome.theirs for outcome in outcomes])
    mine = np.array([outcome.ours for outcome in outcomes])
    ratio = mine.mean() / theirs.mean()
    error = np.std(mine - ratio * theirs, ddof=1) / np.sqrt(len(theirs)) / theirs.mean()
    correct = [np.mean([o.theirs_correct for o in outcomes]), np.mean([o.ours_correct for o in outcomes])]
    return (
        f"| `{task.call}` | {1 - task.p_value:.2f} | {task.samples:,} | {len(outcomes)} | {in_words(theirs)} | "
        f"{in_words(mine)} | {ratio:.3f} ± {error:.3f} | {correct[0]:.2f} | {correct[1]:.2f} |"
    )


def print_table(outcomes: List[Outcome]) -> None:
    print(
        "| call | confidence | samples, published | repetitions | published | ours | ratio | correct | correct, ours |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ordered = sorted(outcomes, key=lambda outcome: outcome.task)
    for _, group in itertools.groupby(ordered, key=lambda outcome: outcome.task[:3]):
        print(row(list(group)))


def print_seconds_of_a_step() -> None:
    """One decision with 12 evaluations of each model: theirs without, ours with the choice of the next one."""
    scores = Bench.table[:, :NUM_TIMED_EVALUATIONS]
    counts = np.full(len(scores), float(NUM_TIMED_EVALUATIONS))
    samples = DEFAULT_SAMPLES * len(scores)
    history = History(
        tuple(str(index) for index in range(len(scores))),
        tuple(
            Evaluation(make_request(1, str(index), replicate, shared_splits=False), float(score), "score")
            for (index, replicate), score in np.ndenumerate(scores)
        ),
    )
    strategy = TopTwoThompson(belief=StudentT(), confidence=1 - 1e-12)
    rng = np.random.default_rng(1)
    means, variances = scores.mean(axis=1), scores.var(axis=1)
    calculate = Bench.published.util.belief_calc
    theirs = min(timeit.repeat(lambda: calculate(means, variances, counts, samples), number=1, repeat=5))
    mine = min(timeit.repeat(lambda: strategy.propose(history, 1, rng), number=20, repeat=5)) / 20
    print(f"\nOne decision: published {1000 * theirs:.0f} ms, ours {1000 * mine:.2f} ms, ratio {theirs / mine:.0f}.")


def main() -> None:
    args = parse()
    sizes = [(args.samples, args.repetitions), (DEFAULT_SAMPLES, args.repetitions_at_default)]
    tasks = [
        Task(call, p_value, samples, repetition)
        for samples, repetitions in sizes
        for repetition in range(repetitions)
        for p_value in (0.05, 0.1, 0.2)
        for call in ("TTTS", "non_adaptive_fc")
    ]
    set_up(args.package, args.scores)
    outcomes: List[Outcome] = []
    context = multiprocessing.get_context("fork")
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)
    with context.Pool(args.processes, signal.signal, ignore_interrupts) as pool, contextlib.suppress(KeyboardInterrupt):
        for outcome in pool.imap_unordered(run, tasks):
            outcomes.append(outcome)
    print_table(outcomes)
    print_seconds_of_a_step()


if __name__ == "__main__":
    main()
