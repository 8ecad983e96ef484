"""What the stopping rules cost, in the paper's released scores, and how often they name one of two equal candidates.

Every selection has one worker. `table` is the paper's 8 TDSA models with 5 scores on each of 100 splits. `tie` is two
candidates with equal means and normal scores, of whose variance two thirds are between splits. Prints Markdown.

    python scripts/benchmark_stopping.py --problem tie --repetitions 200
"""

import argparse
import itertools
import json
import multiprocessing
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

import numpy as np
from allennlp.common import Params

import fiesta_allennlp.beliefs  # noqa: F401
from fiesta_allennlp.records import Evaluation, History, Request
from fiesta_allennlp.strategies import Strategy

EVALUATIONS_PER_SPLIT = 5
MAX_PER_CANDIDATE = 100
TABLE: Dict[str, np.ndarray] = {}


class Case(NamedTuple):
    problem: str
    splits: str
    strategy: str
    stop: str


class Task(NamedTuple):
    case: Case
    confidence: float
    belief: str
    repetition: int


@dataclass(frozen=True)
class Problem:
    """`score` gives the score of a candidate's position, a split and a replicate; `best` is None where two are."""

    names: List[str]
    best: "str | None"
    score: Callable[[int, int, int], float]


class Ending(NamedTuple):
    case: Case
    num_evaluations: int
    decided: bool
    wrong: bool


def table_problem(rng: np.random.Generator) -> Problem:
    names = list(TABLE)
    splits = rng.permutation(TABLE[names[0]].shape[0])
    seeds = rng.integers(EVALUATIONS_PER_SPLIT, size=(len(names), len(splits)))

    def score(index: int, split: int, replicate: int) -> float:
        row = splits[split % len(splits)]
        return float(TABLE[names[index]][row, seeds[index, split % len(splits)]])

    return Problem(names, max(names, key=lambda name: TABLE[name].mean()), score)


def tie_problem(rng: np.random.Generator) -> Problem:
    of_splits = rng.normal(0, np.sqrt(2 / 3), 4 * MAX_PER_CANDIDATE)
    of_seeds = rng.normal(0, np.sqrt(1 / 3), (2, 2 * MAX_PER_CANDIDATE))
    return Problem(["a", "b"], None, lambda i, split, replicate: float(of_splits[split] + of_seeds[i, replicate]))


def run(task: Task) -> Ending:
    rng = np.random.default_rng(task.repetition)
    problem = (table_problem if task.case.problem == "table" else tie_problem)(rng)
    settings = {
        "type": task.case.strategy,
        "belief": {"type": task.belief},
        "stop": task.case.stop,
        "confidence": task.confidence,
        "max_evaluations": MAX_PER_CANDIDATE * len(problem.names),
    }
    strategy = Strategy.from_params(Params(settings))
    history = History(tuple(problem.names))
    while names := strategy.propose(history, 1, rng):
        replicate = history.num_finished(names[0])
        index = problem.names.index(names[0])
        split = replicate if task.case.splits == "shared" else len(problem.names) * replicate + index
        request = Request(names[0], replicate, split, 0, 0, 0)
        evaluation = Evaluation(request, problem.score(index, split, replicate), "score")
        history = replace(history, evaluations=(*history.evaluations, evaluation))
    decision = strategy.recommend(history)
    decided = decision.stopped_by == "confidence"
    return Ending(task.case, len(history.evaluations), decided, decided and decision.best != problem.best)


def print_rows(endings: List[Ending]) -> None:
    print("| candidates | splits | strategy | stop | trainings | decided | wrong winner |")
    print("|---|---|---|---|---|---|---|")
    for case, group in itertools.groupby(sorted(endings), key=lambda ending: ending.case):
        ended = list(group)
        counts = np.array([ending.num_evaluations for ending in ended])
        error = counts.std(ddof=1) / np.sqrt(len(counts))
        shares = [np.mean([ending.decided for ending in ended]), np.mean([ending.wrong for ending in ended])]
        cells = [*case, f"{counts.mean():.0f} ± {error:.0f}", f"{shares[0]:.3f}", f"{shares[1]:.3f}"]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    shared = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=Path, default=shared / "scores" / "fiesta_tdsa_test_f1.json")
    parser.add_argument("--problem", choices=("table", "tie"), required=True)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--belief", default="student_t")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    for name, scores in json.loads(args.scores.read_text(encoding="utf-8")).items():
        if not name.endswith("_200"):
            TABLE[name] = np.array(scores).reshape(-1, EVALUATIONS_PER_SPLIT)
    cases = itertools.product(
        ("table", "tie"), ("shared", "independent"), ("ttts", "non_adaptive_fc"), ("bayesian", "glr")
    )
    tasks = [Task(Case(*case), args.confidence, args.belief, r) for case in cases for r in range(args.repetitions)]
    with multiprocessing.get_context("fork").Pool(args.processes) as pool:
        print_rows(pool.map(run, tasks, chunksize=1))


if __name__ == "__main__":
    main()
