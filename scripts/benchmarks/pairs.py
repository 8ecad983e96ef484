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
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from common import (
    ROOT,
    add_record_options,
    append_rows,
    make_parser,
    print_table,
    read_final_rows,
    replace_tables,
    rule_id,
    share_of,
    start_call,
    write_tables,
)
from real_problems import last_history

from fiesta_allennlp.choosing.t_tests import compute_mean_interval
from fiesta_allennlp.tables.simulation.problems import ScorePreset
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

RESULTS = Path(__file__).parent / "results" / "pairs.csv"
GAPS = (0.0, 0.1, 0.2, 0.5, 1.0)
STOPS = ("early_looks", "glr")
PAGE = ROOT / "docs" / "evaluation.md"
TABLE_PATTERN = re.compile(r"(<!-- pairs -->\n).*?(<!-- end -->)", flags=re.S)
HEADINGS = ("gap, sds", "runs", "named", "wrong of named", "interval covers", "lead - true lead")


@dataclass
class ResultRow:
    """The counts of one call. `covered`, `above`, `excess` and `squares` are over the selections that named a winner:
    intervals that cover the true lead or lie above it, and sums of the lead minus the true one."""

    rule: str
    stop: str
    gap: float
    splits: str
    seed: int
    selections: int
    named: int = 0
    wrong: int = 0
    runs: int = 0
    covered: int = 0
    above: int = 0
    excess: float = 0.0
    squares: float = 0.0


def lead_interval(winner_scores: np.ndarray, loser_scores: np.ndarray) -> Tuple[float, Optional[Any]]:
    """Return the mean difference and the interval that a report prints, of the splits that both have."""
    num_common = min(len(winner_scores), len(loser_scores))
    differences = winner_scores[:num_common] - loser_scores[:num_common]
    return float(differences.mean()), compute_mean_interval(differences)


def measure(stop: str, gap: float, repetitions: int, seed: int) -> ResultRow:
    """Simulate selections on shared splits, and count."""
    means = {"better": gap, "other": 0.0}
    source = ScorePreset("pair", means, noise_sds=dict.fromkeys(means, 1.0), split_sd=0.0)
    replayer = prepare_simulator(ReplaySettings(scores="", stop=stop, splits="shared", seed=seed), source)
    row = ResultRow(rule_id(), stop, gap, "shared", seed, repetitions)
    for history in (last_history(replayer, number) for number in range(repetitions)):
        decision = replayer.strategy.recommend(history)
        row.runs += len(history.evaluations)
        if decision.best is None or decision.stopped_by != "confidence":
            continue
        loser = next(name for name in means if name != decision.best)
        lead, interval = lead_interval(history.scores(decision.best), history.scores(loser))
        true_lead = means[decision.best] - means[loser]
        row.named += 1
        row.wrong += true_lead < 0
        row.covered += interval is not None and interval[0] <= true_lead <= interval[1]
        row.above += interval is not None and interval[0] > true_lead
        row.excess += lead - true_lead
        row.squares += (lead - true_lead) ** 2
    return row


def cells(rows: Sequence[ResultRow]) -> List[str]:
    """Return one text for each of `HEADINGS`, of lines of one gap."""
    names = ("selections", "named", "wrong", "runs", "covered", "excess", "squares")
    total, named, wrong, runs, covered, *leads = (sum(getattr(row, name) for row in rows) for name in names)
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


def table_rows(lines: Sequence[ResultRow]) -> Iterator[List[str]]:
    """Yield the row of each gap by the default's stopping rule."""
    for gap in sorted({line.gap for line in lines}):
        if rows := [line for line in lines if (line.stop, line.gap) == (STOPS[0], gap)]:
            yield cells(rows)


def with_tables(page: str) -> str:
    """The page with the table of all recorded lines of the final rule."""
    rows = table_rows(read_final_rows(RESULTS, ResultRow))
    return replace_tables(page, TABLE_PATTERN, lambda match: [HEADINGS, *rows])


def main() -> None:
    parser = make_parser(__doc__, repetitions=400, only="stopping rules whose name")
    parser.add_argument("--gaps", type=float, nargs="*", default=GAPS, help="gaps in run-to-run sds")
    add_record_options(parser, RESULTS)
    args = parser.parse_args()
    if args.pool:
        return write_tables([PAGE], with_tables)
    seed = start_call(args.seed)

    def rows() -> Iterator[List[str]]:
        for stop, gap in itertools.product(filter(re.compile(args.only).search, STOPS), args.gaps):
            row = measure(stop, gap, args.repetitions, seed)
            append_rows([row], args.results)
            yield [stop, *cells([row])]

    print_table(("stop", *HEADINGS), rows())


if __name__ == "__main__":
    main()
