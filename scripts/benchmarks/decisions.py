"""What one decision costs: a finished run joins the history, posterior and strategy name the next one. As Markdown.

python scripts/benchmarks/decisions.py
"""

import statistics
import time
from dataclasses import replace
from typing import Iterator, List, Sequence

import numpy as np
from common import make_parser, print_table

from fiesta_allennlp.choosing.strategy import build_strategy
from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.core.settings.choice_settings import ChoiceSettings

SIZES = ((8, 100), (12, 200), (50, 2000))
"""Numbers of candidates and of runs."""


def make_evaluations(num_candidates: int, num_evaluations: int) -> List[Evaluation]:
    """Runs as a selection makes them: the nearer to the best, the more. Normal scores on shared splits."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, num_candidates + 1)
    counts = np.maximum(3, np.round(weights / weights.sum() * num_evaluations).astype(int))
    split_effects = rng.normal(0, 0.02, counts.max())
    return [
        Evaluation(
            make_request(1, f"candidate-{i}", k, shared_splits=True),
            0.6 - i / 500 + split_effects[k] + rng.normal(0, 0.02),
            "f1",
        )
        for i, count in enumerate(counts)
        for k in range(count)
    ]


def time_decision(belief: str, num_candidates: int, num_evaluations: int, repetitions: int) -> float:
    """The median milliseconds of the processor."""
    names = [f"candidate-{i}" for i in range(num_candidates)]
    strategy = build_strategy(ChoiceSettings(belief=belief, confidence=0.999999, max_evaluations=10**6), names)
    last, *others = make_evaluations(num_candidates, num_evaluations)
    before, rng = History(tuple(names)).with_finished(others), np.random.default_rng(2)
    seconds = []
    for score in rng.normal(0.6, 0.02, repetitions):  # another one each time, because a posterior is kept
        finished = replace(last, score=score)
        begin = time.process_time()
        history = before.with_finished([finished])
        strategy.recommend(history)
        strategy.propose(history, 1, rng)
        seconds.append(time.process_time() - begin)
    return 1000 * statistics.median(seconds)


def decision_rows(repetitions: int) -> Iterator[Sequence[object]]:
    for belief in ("student_t", "moderated_t"):
        for num_candidates, num_evaluations in SIZES:
            median = time_decision(belief, num_candidates, num_evaluations, repetitions)
            yield belief, num_candidates, num_evaluations, f"{median:.2f}"


def main() -> None:
    args = make_parser(__doc__, repetitions=100).parse_args()
    print_table(("posterior", "candidates", "runs", "milliseconds, median"), decision_rows(args.repetitions))


if __name__ == "__main__":
    main()
