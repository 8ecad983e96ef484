"""Measure selections of two candidates that are equal or nearly so, and the interval of their difference afterwards.

    OMP_NUM_THREADS=1 python scripts/benchmarks/pairs.py --repetitions 400

Scores are normal, with a run-to-run sd of 1, as `fiesta plan --gap 0 --sd 1` simulates them. The interval is the 95%
interval that `fiesta report` prints, which takes the number of runs as fixed in advance. Interval and lead are those of
the named candidate over the other one, in selections that named one. Leads are in run-to-run sds. Every call draws a
new seed, prints it, and appends its counts to `results/pairs.csv`. `--pool` adds them up on docs/evaluation.md.
"""

import itertools
import re
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from common import (
    EVALUATION,
    RESULTS,
    PageTables,
    add_record_options,
    add_up,
    group_by,
    make_parser,
    print_table,
    read_final_rows,
    recorded,
    rule_id,
    share_of,
    start_call,
)

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.t_tests import compute_mean_interval
from fiesta_allennlp.core.records import History
from fiesta_allennlp.tables.simulation.planning import ScorePreset
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

PATH = RESULTS / "pairs.csv"
BETTER, OTHER = "better", "other"
GAPS = (0.0, 0.1, 0.2, 0.5, 1.0)
DEFAULT, *_ = STOPS = ("early_looks", "glr")
HEADINGS = ("gap, sds", "runs", "named", "wrong of named", "interval covers", "lead - true lead")


@dataclass
class ResultRow:
    """The counts of one call. `covered`, `excess` and `squares` are over the selections that named a winner: intervals
    that cover the true lead, and sums of the lead minus the true one."""

    rule: str
    stop: str
    gap: float
    seed: int
    selections: int
    named: int = 0
    wrong: int = 0
    runs: int = 0
    covered: int = 0
    excess: float = 0.0
    squares: float = 0.0


def simulate(
    gap: float, repetitions: int, *, split_sd: float = 0.0, **settings: Any
) -> Iterator[Tuple[Strategy, History]]:
    """Yield the strategy and the last history of each selection of two candidates."""
    source = ScorePreset("pair", {BETTER: gap, OTHER: 0.0}, split_sd=split_sd, noise_sd=1.0)
    simulator = prepare_simulator(ReplaySettings(scores="", **settings), source)
    for number in range(repetitions):
        *_, history = simulator.iterate_histories(simulator.draw(number), number)
        yield simulator.strategy, history


def lead_interval(winner_scores: np.ndarray, loser_scores: np.ndarray) -> Tuple[float, Optional[Any]]:
    """Return the mean difference and the interval that a report prints, of the splits that both have."""
    num_common = min(len(winner_scores), len(loser_scores))
    differences = winner_scores[:num_common] - loser_scores[:num_common]
    return float(differences.mean()), compute_mean_interval(differences)


def measure(stop: str, gap: float, repetitions: int, seed: int) -> ResultRow:
    """Simulate selections on shared splits, and count."""
    row = ResultRow(rule_id(), stop, gap, seed, repetitions)
    for strategy, history in simulate(gap, repetitions, stop=stop, splits="shared", seed=seed):
        decision = strategy.recommend(history)
        row.runs += len(history.evaluations)
        if decision.best is None or decision.stopped_by != "confidence":
            continue
        loser, true_lead = (OTHER, gap) if decision.best == BETTER else (BETTER, -gap)
        lead, interval = lead_interval(history.scores(decision.best), history.scores(loser))
        row.named += 1
        row.wrong += true_lead < 0
        row.covered += interval is not None and interval[0] <= true_lead <= interval[1]
        row.excess += lead - true_lead
        row.squares += (lead - true_lead) ** 2
    return row


def cells(rows: Sequence[ResultRow]) -> List[str]:
    """Return one text for each of `HEADINGS`, of lines of one gap."""
    total, named, wrong, runs, covered, *leads = add_up(
        rows, "selections", "named", "wrong", "runs", "covered", "excess", "squares"
    )
    excess, square = (value / max(named, 1) for value in leads)
    error = np.sqrt(max(square - excess**2, 0) / max(named, 1))
    return [
        f"{rows[0].gap:g}",
        f"{runs / total:.1f}",
        share_of(named, total),
        share_of(wrong, named) if rows[0].gap else "-",
        share_of(covered, named),
        f"{excess:+.2f} ± {error:.2f}" if named else "-",
    ]


def table_rows(lines: Sequence[ResultRow]) -> List[List[str]]:
    """Return the row of each gap by the default's stopping rule."""
    groups = group_by((line for line in lines if line.stop == DEFAULT), lambda line: line.gap)
    return [cells(group) for _, group in sorted(groups.items())]


TABLES = PageTables("pairs", lambda match: [HEADINGS, *table_rows(read_final_rows(PATH, ResultRow))], [EVALUATION])


def main() -> None:
    parser = make_parser(__doc__, repetitions=400, only="stopping rules whose name")
    parser.add_argument("--gaps", type=float, nargs="*", default=GAPS, help="gaps in run-to-run sds")
    add_record_options(parser, PATH)
    args = parser.parse_args()
    if args.pool:
        return TABLES.write()
    seed = start_call(args.seed)
    pairs = itertools.product(filter(re.compile(args.only).search, STOPS), args.gaps)
    rows = recorded((measure(*pair, args.repetitions, seed) for pair in pairs), args.results)
    print_table(("stop", *HEADINGS), ([row.stop, *cells([row])] for row in rows))


if __name__ == "__main__":
    main()
