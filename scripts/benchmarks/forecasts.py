"""How often the range of a forecast contains the runs that selections then make, as Markdown.

    python scripts/benchmarks/forecasts.py --repetitions 200

The range goes from the 5 to the 95% quantile. It is asked for after the starting runs, once half of the further runs
have finished, and once nine tenths of them have. `decided` compares, at the start, the mean probability of a winner
within half of the further runs that the limit allows with the share of selections that named one by then.
"""

from typing import Iterator, NamedTuple, Tuple

import numpy as np
from common import make_parser, print_table
from families import CLEAR_FAMILIES, REPORTING_FAMILIES, TUNING_FAMILIES, Family

from fiesta_allennlp.choosing.forecast import forecast_selection
from fiesta_allennlp.tables.simulation.simulator import Simulator, prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

HEADINGS = ("problem", "moment", "selections", "runs left, mean", "range, mean", "below", "within", "above", "decided")
SEED = 20190803
MAX_RUNS_PER_CANDIDATE = 30
MOMENTS = {"start": 0.0, "middle": 0.5, "near the end": 0.9}
"""The share of the runs after the starting ones that have finished."""

PROBLEMS = {family.name: family for family in (*TUNING_FAMILIES, *REPORTING_FAMILIES, *CLEAR_FAMILIES)}
CHOSEN = (
    "2 candidates, 3 sds apart",
    "2 candidates, 0.8 sds apart",
    "3 candidates, 0.7 sds apart",
    "near tie, 4",
    "4 candidates, the second 2.5 times as noisy",
)


class Outcome(NamedTuple):
    """A forecast, the runs that were left then, and whether half of the room gave a winner, forecast and true."""

    moment: str
    num_left: int
    low: int
    high: int
    prob_decided: float
    is_decided: bool


def make_simulator(family: Family) -> Simulator:
    """Selections with the defaults at 0.95."""
    limit = MAX_RUNS_PER_CANDIDATE * len(family.means)
    settings = ReplaySettings(scores=family.name, margin=family.margin or None, max_evaluations=limit, seed=SEED)
    return prepare_simulator(settings, family)


def outcomes(simulator: Simulator, repetition: int) -> Iterator[Outcome]:
    strategy, num_candidates = simulator.strategy, len(simulator.true_means)
    histories = list(simulator.iterate_histories(simulator.draw(repetition), repetition))
    num_starts, total = strategy.num_starts * num_candidates, len(histories) - 1
    is_named = strategy.recommend(histories[total]).stopped_by == "confidence"
    for moment, share in MOMENTS.items():
        num_done = num_starts + int(share * (total - num_starts))
        rng = np.random.default_rng(repetition)
        history, decision = histories[num_done], strategy.recommend(histories[num_done])
        forecast = forecast_selection(strategy, history, decision, rng)
        half = (MAX_RUNS_PER_CANDIDATE * num_candidates - num_done) // 2
        rng = np.random.default_rng(repetition)
        by_half = forecast_selection(strategy, history, decision, rng, max_runs=half)
        if forecast is not None and by_half is not None:
            num_left = total - num_done
            yield Outcome(
                moment, num_left, forecast.low, forecast.high, by_half.prob_decided, is_named and num_left <= half
            )


def rows(name: str, repetitions: int) -> Iterator[Tuple[str, ...]]:
    simulator = make_simulator(PROBLEMS[name])
    found = [outcome for repetition in range(repetitions) for outcome in outcomes(simulator, repetition)]
    for moment in MOMENTS:
        chosen = [outcome for outcome in found if outcome.moment == moment]
        if chosen:
            _, left, low, high, prob, decided = (np.array(values) for values in zip(*chosen, strict=True))
            sides = (left < low).mean(), ((left >= low) & (left <= high)).mean(), (left > high).mean()
            ends, shares = f"{low.mean():.0f} to {high.mean():.0f}", (f"{share:.2f}" for share in sides)
            decided_text = f"{prob.mean():.2f} and {decided.mean():.2f}" if moment == "start" else ""
            yield name, moment, f"{len(left)}", f"{left.mean():.1f}", ends, *shares, decided_text


def main() -> None:
    parser = make_parser(__doc__, repetitions=200)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=CHOSEN, metavar="NAME")
    args = parser.parse_args()
    print_table(HEADINGS, (row for name in args.problems for row in rows(name, args.repetitions)))


if __name__ == "__main__":
    main()
