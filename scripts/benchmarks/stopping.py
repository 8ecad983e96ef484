"""What the stopping rules cost, in the paper's released scores, and how often they name one of two equal candidates.

All candidates are evaluated in turn, so that both rules see the same rounds. `table` is the paper's 8 TDSA models, with
5 scores on each of 100 splits; `tie` is two candidates with equal means and normal scores, of whose variance two thirds
are between splits. A repetition is undecided after 100 rounds. Prints Markdown.

    python scripts/benchmarks/stopping.py --repetitions 500
"""

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Sequence

import numpy as np

from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.records import Evaluation, History, Request
from fiesta_allennlp.strategies import BayesianStop, GeneralizedLikelihoodRatioStop, StoppingRule
from fiesta_allennlp.strategies.base import believed

EVALUATIONS_PER_SPLIT = 5
NUM_STARTS = 3
NUM_ROUNDS = 100
NO_BEST = -1
RULES: Dict[str, StoppingRule] = {"bayesian": BayesianStop(), "glr": GeneralizedLikelihoodRatioStop()}


class Ending(NamedTuple):
    """The round that a rule stops after, and its winner, None where it is still undecided."""

    num_rounds: int
    winner: Optional[int]


def table_scores(table: np.ndarray, shared: bool, rng: np.random.Generator) -> np.ndarray:
    """A random score of a random split for every round. Shape: `(num_candidates, NUM_ROUNDS)`."""
    num_candidates, num_splits, num_seeds = table.shape
    orders = [rng.permutation(num_splits) for _ in range(num_candidates)]
    splits = np.array([orders[0]] * num_candidates if shared else orders)[:, :NUM_ROUNDS]
    seeds = rng.integers(num_seeds, size=splits.shape)
    return table[np.arange(num_candidates)[:, None], splits, seeds]


def tie_scores(shared: bool, rng: np.random.Generator) -> np.ndarray:
    """Standard normal scores with equal means. Shape: `(2, NUM_ROUNDS)`."""
    of_splits = rng.normal(0, np.sqrt(2 / 3), (1 if shared else 2, NUM_ROUNDS))
    return of_splits + rng.normal(0, np.sqrt(1 / 3), (2, NUM_ROUNDS))


def endings(scores: np.ndarray, *, shared: bool, confidence: float) -> Dict[str, Ending]:
    """When each rule stops, by its name."""
    names = tuple(str(index) for index in range(len(scores)))
    done = [
        Evaluation(Request(name, k, k if shared else k * len(names) + index, 0, 0, 0), scores[index, k], "score")
        for k in range(NUM_ROUNDS)
        for index, name in enumerate(names)
    ]
    found: Dict[str, Ending] = {}
    for num_rounds in range(NUM_STARTS, NUM_ROUNDS + 1):
        history = History(names, tuple(done[: num_rounds * len(names)]))
        decision = believed(history, StudentT()).decision
        for name, rule in RULES.items():
            if name not in found and rule.is_sure(history, decision, confidence):
                found[name] = Ending(num_rounds, names.index(str(decision.best)))
        if len(found) == len(RULES):
            break
    return {name: found.get(name, Ending(NUM_ROUNDS, None)) for name in RULES}


def print_row(problem: str, splits: str, stop: str, ended: Sequence[Ending], num_candidates: int, best: int) -> None:
    counts = num_candidates * np.array([ending.num_rounds for ending in ended])
    decided = np.array([ending.winner is not None for ending in ended])
    wrong = decided & np.array([ending.winner != best for ending in ended])
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    print(
        f"| {problem} | {splits} | {stop} | {counts.mean():.0f} ± {error:.0f} | {np.median(counts):.0f} | "
        f"{decided.mean():.3f} | {wrong.mean():.3f} |"
    )


def main() -> None:
    data = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=Path, default=data / "scores" / "fiesta_tdsa_test_f1.json")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--confidence", type=float, default=0.95)
    args = parser.parse_args()
    released = json.loads(args.scores.read_text(encoding="utf-8"))
    kept = [scores for name, scores in released.items() if not name.endswith("_200")]
    table = np.array(kept).reshape(len(kept), -1, EVALUATIONS_PER_SPLIT)
    best = int(table.mean(axis=(1, 2)).argmax())
    print("| candidates | splits | stop | trainings, mean | median | decided | wrong winner |")
    print("|---|---|---|---|---|---|---|")
    for problem, shared in itertools.product(("tie", "table"), (True, False)):
        rng = np.random.default_rng(1)
        ended = []
        for _ in range(args.repetitions):
            scores = tie_scores(shared, rng) if problem == "tie" else table_scores(table, shared, rng)
            ended.append(endings(scores, shared=shared, confidence=args.confidence))
        for stop in RULES:
            of_rule = [found[stop] for found in ended]
            splits = "shared" if shared else "independent"
            print_row(problem, splits, stop, of_rule, len(scores), best if problem == "table" else NO_BEST)


if __name__ == "__main__":
    main()
