"""What the stopping rules cost, in the paper's released scores, and how often they name one of two equal candidates.

All candidates are evaluated in turn, so that both rules see the same rounds. `table` is the paper's 8 TDSA models, with
5 scores on each of 100 splits; `tie` is two candidates with equal means and normal scores, of whose variance two thirds
are between splits. A repetition is undecided after 100 rounds. Prints Markdown.

    python scripts/benchmarks/stopping.py --repetitions 500
"""

import argparse
import itertools
from pathlib import Path
from typing import Iterator, List, Union

import numpy as np
from common import EVALUATIONS_PER_SPLIT, MODELS_8, RELEASED, make_parser, mean_and_error, print_table

from fiesta_allennlp import replay
from fiesta_allennlp.tables.sources import ScorePreset

HEADINGS = ("candidates", "splits", "stop", "trainings, mean", "median", "decided", "wrong winner")
SEED = 1
NUM_STARTS = 3
NUM_ROUNDS = 100
RULES = ("bayesian", "glr")

MEANS = {"a": 0.0, "b": 0.0}
TIE = ScorePreset("tie", MEANS, noise_sds=dict.fromkeys(MEANS, np.sqrt(1 / 3)), split_sd=np.sqrt(2 / 3))


def row(problem: str, splits: str, stop: str, args: argparse.Namespace) -> List[object]:
    """Replay a rule on a problem. Every winner of a tie is wrong."""
    scores: Union[Path, ScorePreset] = TIE if problem == "tie" else args.scores
    names = tuple(MEANS) if problem == "tie" else MODELS_8
    result = replay(
        scores,
        candidates=names,
        strategy={"type": "non_adaptive_fc", "num_starts": NUM_STARTS},
        belief="student_t",
        stop=stop,
        splits=splits,
        batch_size=len(names),
        confidence=args.confidence,
        max_evaluations=NUM_ROUNDS * len(names),
        evaluations_per_split=None if problem == "tie" else EVALUATIONS_PER_SPLIT,
        repetitions=args.repetitions,
        seed=SEED,
        progress=False,
    )
    outlook, decided_share = result.default, 1 - result.default.inconclusive
    wrong_share = decided_share if problem == "tie" else outlook.wrong
    return [
        problem,
        splits,
        stop,
        mean_and_error(outlook.runs, outlook.repetitions),
        f"{outlook.runs.median:.0f}",
        f"{decided_share:.3f}",
        f"{wrong_share:.3f}",
    ]


def rows(args: argparse.Namespace) -> Iterator[List[object]]:
    for problem, splits, stop in itertools.product(("tie", "table"), ("shared", "independent"), RULES):
        yield row(problem, splits, stop, args)


def main() -> None:
    parser = make_parser(__doc__, repetitions=200)
    parser.add_argument("--scores", type=Path, default=RELEASED)
    parser.add_argument("--confidence", type=float, default=0.95)
    args = parser.parse_args()
    print_table(HEADINGS, rows(args))


if __name__ == "__main__":
    main()
