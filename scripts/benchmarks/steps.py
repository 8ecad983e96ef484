"""What one decision costs: a finished evaluation joins the history, belief and strategy name the next one. As Markdown.

python scripts/benchmarks/steps.py
"""

import statistics
import time
from typing import Iterator, List

import numpy as np
from common import make_parser, print_table, synthetic_evaluations

from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selection.settings import ChoiceSettings
from fiesta_allennlp.selection.strategy_building import build_strategy

HEADINGS = ("belief", "candidates", "evaluations", "milliseconds, median")

OF_DOCUMENTS = "dirichlet_f_measure"
SIZES = {
    **dict.fromkeys(("student_t", "split_paired"), ((8, 100), (12, 200), (50, 2000))),
    OF_DOCUMENTS: ((5, 100), (20, 20000)),
}
"""Numbers of candidates and of evaluations, by belief; of systems and documents where the belief is of documents."""


def document(system: int, replicate: int) -> Evaluation:
    """A document of 25 items, with counts from the model of `dirichlet_f_measure`."""
    rng = np.random.default_rng([system, replicate])
    wrong = 0.05 + system / 500
    counts = rng.multinomial(25, rng.dirichlet([0.5 - wrong, wrong, wrong, 0.5 - wrong]))
    metrics = {f"count:{kind}": int(number) for kind, number in zip(("tp", "fp", "fn", "tn"), counts, strict=True)}
    return Evaluation(make_request(1, f"candidate-{system}", replicate, shared_splits=True), 0.5, "f1", metrics=metrics)


def documents(num_systems: int, num_documents: int) -> List[Evaluation]:
    """As many of each system."""
    return [document(i, k) for k in range(num_documents // num_systems) for i in range(num_systems)]


def milliseconds(belief: str, num_candidates: int, num_evaluations: int, repetitions: int) -> float:
    """The median processor time of a step."""
    names = [f"candidate-{i}" for i in range(num_candidates)]
    choice = ChoiceSettings(belief=belief, confidence=0.999999, max_evaluations=10**6)
    strategy = build_strategy(choice, names, has_counts=True)
    evaluations = (documents if belief == OF_DOCUMENTS else synthetic_evaluations)(num_candidates, num_evaluations)
    before = History(tuple(names)).with_finished(evaluations[1:])
    strategy.recommend(before.with_finished(evaluations[:1]))
    rng = np.random.default_rng(2)
    seconds = []
    for i in range(repetitions):
        # Another document each time, because what is believed of one is kept.
        new = document(0, num_evaluations + i) if belief == OF_DOCUMENTS else evaluations[0]
        begin = time.process_time()
        now = before.with_finished([new])
        strategy.recommend(now)
        strategy.propose(now, 1, rng)
        seconds.append(time.process_time() - begin)
    return 1000 * statistics.median(seconds)


def rows(repetitions: int) -> Iterator[List[object]]:
    for belief, sizes in SIZES.items():
        for num_candidates, num_evaluations in sizes:
            median = milliseconds(belief, num_candidates, num_evaluations, repetitions)
            yield [belief, num_candidates, num_evaluations, f"{median:.2f}"]


def main() -> None:
    args = make_parser(__doc__, repetitions=100).parse_args()
    print_table(HEADINGS, rows(args.repetitions))


if __name__ == "__main__":
    main()
