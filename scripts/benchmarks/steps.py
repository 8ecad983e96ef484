"""What one decision costs: a finished evaluation joins the history, belief and strategy name the next one. As Markdown.

python scripts/benchmarks/steps.py
"""

import argparse
import statistics
import time
from typing import List

import numpy as np

from fiesta_allennlp.records import Evaluation, History
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.selection.settings import ChoiceSettings
from fiesta_allennlp.selection.strategy_building import build_strategy

SIZES = ((8, 100), (12, 200), (50, 2000))
"""Numbers of candidates and of evaluations."""

DOCUMENT_SIZES = ((5, 100), (20, 20000))
"""Likewise, of systems and documents."""

OF_DOCUMENTS = "dirichlet_f_measure"


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


def document(system: int, replicate: int) -> Evaluation:
    """A document of 25 items, with counts from the model of `dirichlet_f_measure`."""
    rng = np.random.default_rng([system, replicate])
    wrong = 0.05 + system / 500
    counts = rng.multinomial(25, rng.dirichlet([0.5 - wrong, wrong, wrong, 0.5 - wrong]))
    metrics = {f"count:{kind}": int(number) for kind, number in zip(("tp", "fp", "fn", "tn"), counts, strict=True)}
    return Evaluation(make_request(1, f"c{system}", replicate, shared_splits=True), 0.5, "f1", metrics=metrics)


def documents(num_systems: int, num_documents: int) -> List[Evaluation]:
    """As many of each system."""
    return [document(i, k) for k in range(num_documents // num_systems) for i in range(num_systems)]


def milliseconds(belief: str, num_candidates: int, num_evaluations: int, repetitions: int) -> float:
    """The median processor time of a step."""
    names = [f"c{i}" for i in range(num_candidates)]
    choice = ChoiceSettings(belief=belief, confidence=0.999999, max_evaluations=10**6)
    strategy = build_strategy(choice, names, has_counts=True)
    evaluations = (documents if belief == OF_DOCUMENTS else made_up)(num_candidates, num_evaluations)
    before = History(tuple(names)).after(evaluations[1:])
    strategy.recommend(before.after(evaluations[:1]))
    rng = np.random.default_rng(2)
    seconds = []
    for i in range(repetitions):
        # Another document each time, for what is believed of one is kept.
        new = document(0, num_evaluations + i) if belief == OF_DOCUMENTS else evaluations[0]
        begin = time.process_time()
        now = before.after([new])
        strategy.recommend(now)
        strategy.propose(now, 1, rng)
        seconds.append(time.process_time() - begin)
    return 1000 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    args = parser.parse_args()
    print("| belief | candidates | evaluations | milliseconds, median |\n|---|---|---|---|")
    for belief in ("student_t", "split_paired", OF_DOCUMENTS):
        for num_candidates, num_evaluations in DOCUMENT_SIZES if belief == OF_DOCUMENTS else SIZES:
            median = milliseconds(belief, num_candidates, num_evaluations, args.repetitions)
            print(f"| {belief} | {num_candidates} | {num_evaluations} | {median:.2f} |", flush=True)


if __name__ == "__main__":
    main()
