"""Chooses between models with joblib: the table of scores names the next runs, joblib makes them, their scores join it.

Needs this package and joblib. Put your own training into `train`; the rest stays as it is.

    python examples/tables/joblib_loop.py scores.csv
"""

import csv
import math
import random
import sys
from pathlib import Path

from joblib import Parallel, delayed

from fiesta_allennlp import next_runs

CANDIDATES = ["cnn", "lstm", "bert"]
WORKERS = 2


def train(candidate: str, split: str, seed: str) -> float:
    """Train one model on one split, and return its score on the test set of this split."""
    effect = random.Random(f"split {split}").gauss(0, 0.02)  # of the split, which all candidates share
    noise = random.Random(f"{candidate} {split} {seed}").gauss(0, 0.01)
    return {"cnn": 0.78, "lstm": 0.80, "bert": 0.82}[candidate] + effect + noise


def main(table: Path) -> None:
    if not table.exists():
        table.write_text("candidate,split,seed,score\n")
    with Parallel(n_jobs=WORKERS) as parallel:
        while runs := next_runs(table, candidates=CANDIDATES, workers=WORKERS).runs:
            scores = parallel(delayed(train)(run.candidate, run.split, run.seed) for run in runs)
            with table.open("a", newline="") as rows:
                named = [(run.candidate, run.split, run.seed) for run in runs]
                told = [score if math.isfinite(score) else "failed" for score in scores]
                csv.writer(rows).writerows((*name, score) for name, score in zip(named, told, strict=True))
    answer = next_runs(table)
    decision, number = answer.decision, len(answer.history.evaluations)
    print(f"{decision.best} is the best with probability {decision.confidence:.4f}, after {number} runs.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
