"""How near the live estimate of further runs comes to the runs that selections then make, as Markdown.

    python scripts/benchmarks/remaining.py --repetitions 100

The estimate is the middle half of a distribution: half of the selections should end within it, and a quarter on each
side.
"""

from typing import Iterator, List, Tuple

import numpy as np
from common import EVALUATIONS_PER_SPLIT, MODELS_8, RELEASED, make_parser, print_table
from families import TUNING_FAMILIES

from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.simulator import Simulator, prepare_simulator

HEADINGS = ("problem", "runs so far", "selections", "runs left, mean", "estimate, mean", "below", "within", "above")
SEED = 20190803
ROUNDS = (2, 3, 4, 6, 9)
"""The estimate is asked for after so many runs for each candidate, of all together."""

RELEASED_SCORES = "released scores"
PROBLEMS = {RELEASED_SCORES: None, **{family.name: family for family in TUNING_FAMILIES}}


def replayer(name: str) -> Simulator:
    """Selections with the defaults at .95."""
    family = PROBLEMS[name]
    if family is not None:
        return prepare_simulator(ReplaySettings(scores=name, margin=family.margin or None, seed=SEED), family)
    settings = ReplaySettings(
        scores=str(RELEASED), candidates=MODELS_8, evaluations_per_split=EVALUATIONS_PER_SPLIT, seed=SEED
    )
    return prepare_simulator(settings)


def outcomes(replay: Simulator, repetition: int) -> List[Tuple[int, int, int, int]]:
    """Rounds, runs left, and the two ends of the estimate then."""
    rounds_at = {rounds * len(replay.true_means): rounds for rounds in ROUNDS}
    estimates, total = {}, 0
    for history in replay.iterate_histories(replay.draw(repetition), repetition):
        total = len(history.evaluations)
        estimate = replay.strategy.remaining(history, np.random.default_rng(repetition)) if total in rounds_at else None
        if estimate is not None:
            estimates[total] = estimate
    return [(rounds_at[number], total - number, more.low, more.high) for number, more in estimates.items()]


def rows(name: str, repetitions: int) -> Iterator[Tuple[str, ...]]:
    replay = replayer(name)
    estimates = np.array([row for repetition in range(repetitions) for row in outcomes(replay, repetition)])
    for rounds in ROUNDS:
        left, low, high = estimates[estimates[:, 0] == rounds, 1:].T
        if len(left):
            sides = (left < low).mean(), ((left >= low) & (left <= high)).mean(), (left > high).mean()
            ends = f"{low.mean():.0f} to {high.mean():.0f}"
            runs = rounds * len(replay.true_means)
            yield name, f"{runs}", f"{len(left)}", f"{left.mean():.1f}", ends, *(f"{share:.2f}" for share in sides)


def main() -> None:
    parser = make_parser(__doc__, repetitions=100)
    chosen = [RELEASED_SCORES, "near tie, 4", "second-best three times as noisy, 8"]
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=chosen, metavar="NAME")
    args = parser.parse_args()
    print_table(HEADINGS, (row for name in args.problems for row in rows(name, args.repetitions)))


if __name__ == "__main__":
    main()
