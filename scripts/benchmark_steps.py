"""What one decision costs: a finished evaluation joins the history, belief and strategy name the next one. As Markdown.

python scripts/benchmark_steps.py
"""

import argparse
import statistics
import time
from typing import List

import numpy as np

from fiesta_allennlp.choice import ChoiceSettings
from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.strategy_building import build_strategy

SIZES = ((8, 100), (12, 200), (50, 2000))
"""Numbers of candidates and of evaluations."""


def made_up(num_candidates: int, num_evaluations: int) -> List[Evaluation]:
    """Evaluations as a selection makes them: the nearer to the best, the more. Normal scores on shared splits."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, num_candidates + 1)
    counts = np.maximum(3, np.round(weights / weights.sum() * num_evaluations).astype(int))
    counts[0] += num_evaluations - counts.sum()
    splits = rng.normal(0, 0.02, counts.max())
    return [
        Evaluation(
            make_request(1, f"c{i}", k, shared_splits=True), 0.6 - i / 500 + splits[k] + rng.normal(0, 0.02), "f1"
        )
        for i, count in enumerate(counts)
        for k in range(count)
    ]


def milliseconds(belief: str, num_candidates: int, num_evaluations: int, repetitions: int) -> float:
    """The median time of a step."""
    names = [f"c{i}" for i in range(num_candidates)]
    strategy = build_strategy(ChoiceSettings(belief=belief, confidence=0.999999, max_evaluations=10**6), names)
    evaluations = made_up(num_candidates, num_evaluations)
    before = History(tuple(names)).after(evaluations[1:])
    rng = np.random.default_rng(2)
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        now = before.after(evaluations[:1])
        strategy.recommend(now)
        strategy.propose(now, 1, rng)
        seconds.append(time.perf_counter() - begin)
    return 1000 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    args = parser.parse_args()
    print("| belief | candidates | evaluations | milliseconds, median |\n|---|---|---|---|")
    for belief in ("student_t", "split_paired"):
        for num_candidates, num_evaluations in SIZES:
            median = milliseconds(belief, num_candidates, num_evaluations, args.repetitions)
            print(f"| {belief} | {num_candidates} | {num_evaluations} | {median:.2f} |", flush=True)


if __name__ == "__main__":
    main()
