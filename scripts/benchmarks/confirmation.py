"""Measure what `fiesta confirm` claims about two models, after selections by the default rule.

    OMP_NUM_THREADS=1 python scripts/benchmarks/confirmation.py --repetitions 1000
    python scripts/benchmarks/confirmation.py --pool

Scores are normal, with a run-to-run sd of 1 on one split; random splits have an effect with an sd of 1, too. Each
selection ends, decided or not, and then its leader and the other model have ten fresh runs each. The verdicts come from
the code of the command. Every call draws a new seed, prints it, and appends its counts to `results/confirmation.csv`.
`--pool` prints the table of all lines; docs/report.md has that of shared splits.
"""

import itertools
from dataclasses import dataclass
from typing import List, Sequence, Tuple

import numpy as np
from common import (
    RESULTS,
    ROOT,
    PageTables,
    add_record_options,
    add_up,
    group_by,
    make_parser,
    print_table,
    read_rows,
    recorded,
    share_of,
    start_call,
)
from pairs import BETTER, OTHER, simulate

from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.choosing.t_tests import CONFIRMATION_LEVEL, t_test_power
from fiesta_allennlp.confirming.confirmation import NUM_FRESH_RUNS, FreshComparison, compare_with_rivals
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, History, Request
from fiesta_allennlp.selecting.results.result import Result

PATH = RESULTS / "confirmation.csv"
GAPS = (0.0, 0.25, 0.5, 1.0)
SPLITS = ("shared", "official")
SPLIT_SDS = {"shared": 1.0, "official": 0.0}
HEADINGS = (
    "splits",
    "gap, sds",
    "selections",
    "confirmed if the better leads",
    "power by the formula",
    "wrong verdicts",
    "interval covers",
)


@dataclass
class ResultRow:
    """The counts of one call.

    `right` selections were led by the better model, and `confirmed_right` of these were confirmed. `false_claims` are
    verdicts that the worse model is better, or that of two equal models the leader is; that the rival is, is counted as
    `contradicted`. The intervals of `covered` contain the true difference.
    """

    splits: str
    gap: float
    seed: int
    selections: int
    right: int = 0
    confirmed_right: int = 0
    contradicted: int = 0
    false_claims: int = 0
    covered: int = 0


def compare_fresh(leader: str, gap: float, splits: str, rng: np.random.Generator) -> FreshComparison:
    """Compare the leader of a selection with the other model, by fresh runs of both."""
    names = (leader, OTHER if leader == BETTER else BETTER)
    effects = rng.normal(0, SPLIT_SDS[splits], NUM_FRESH_RUNS)
    evaluations = [
        Evaluation(Request(name, k, k, 0, 0, 0), (name == BETTER) * gap + effects[k] + rng.normal(), "score")
        for name in names
        for k in range(NUM_FRESH_RUNS)
    ]
    history = History(names, tuple(evaluations))
    result = Result.from_decision(history, Decision(best=None), Metric("score"), splits=splits)
    (comparison,) = compare_with_rivals(result, NUM_FRESH_RUNS)
    return comparison


def measure(splits: str, gap: float, repetitions: int, seed: int) -> ResultRow:
    """Simulate selections with their confirmations, and count."""
    rng = np.random.default_rng([seed, int(100 * gap), SPLITS.index(splits)])
    row = ResultRow(splits, gap, seed, repetitions)
    for strategy, history in simulate(gap, repetitions, split_sd=SPLIT_SDS[splits], splits=splits, seed=seed):
        leader = str(strategy.recommend(history).best)
        comparison = compare_fresh(leader, gap, splits, rng)
        is_right, verdict = leader == BETTER, comparison.verdict
        true_difference = gap if is_right else -gap
        if comparison.interval is None:
            raise ValueError(f"no interval: {comparison}")
        row.right += is_right
        row.confirmed_right += is_right and verdict == "confirmed"
        row.contradicted += verdict == "contradicted"
        row.false_claims += verdict == ("confirmed" if true_difference <= 0 else "contradicted")
        row.covered += comparison.interval[0] <= true_difference <= comparison.interval[1]
    return row


def power_by_formula(splits: str, gap: float) -> float:
    """Return the power of the t test of `NUM_FRESH_RUNS` runs each, where both sds are 1."""
    df = (NUM_FRESH_RUNS - 1) * (1 if splits == "shared" else 2)
    return t_test_power(gap, standard_error=(2 / NUM_FRESH_RUNS) ** 0.5, df=df, level=CONFIRMATION_LEVEL)


def cells(rows: Sequence[ResultRow]) -> Tuple[str, ...]:
    """One text for each of `HEADINGS`, of lines of one gap, with 95% Wilson intervals."""
    splits, gap = rows[0].splits, rows[0].gap
    selections, right, confirmed_right, contradicted, false_claims, covered = add_up(
        rows, "selections", "right", "confirmed_right", "contradicted", "false_claims", "covered"
    )
    return (
        splits,
        f"{gap:g}",
        f"{selections:,}",
        share_of(confirmed_right, right) if gap else "-",
        f"{power_by_formula(splits, gap):.3f}" if gap else "-",
        share_of(false_claims + (0 if gap else contradicted), selections),
        share_of(covered, selections),
    )


def table_rows(results: Sequence[ResultRow], splits: Sequence[str] = SPLITS) -> List[Tuple[str, ...]]:
    """The rows of the table, each added up over the lines of one gap."""
    groups = group_by(results, lambda row: (row.splits, row.gap))
    return [cells(groups[key]) for name in splits for key in sorted(groups) if key[0] == name]


TABLES = PageTables(
    "confirmation",
    # Fresh runs do not depend on the rule that ended a selection.
    lambda match: [HEADINGS, *table_rows(read_rows(PATH, ResultRow), SPLITS[:1])],
    [ROOT / "docs" / "report.md"],
)


def main() -> None:
    parser = make_parser(__doc__, repetitions=1000)
    parser.add_argument("--splits", nargs="*", default=SPLITS, choices=SPLITS)
    parser.add_argument("--gaps", type=float, nargs="*", default=GAPS, help="gaps in run-to-run sds")
    add_record_options(parser, PATH)
    args = parser.parse_args()
    if args.pool:
        print_table(HEADINGS, table_rows(read_rows(args.results, ResultRow)))
        return TABLES.write()
    seed = start_call(args.seed)
    pairs = itertools.product(args.splits, args.gaps)
    rows = recorded((measure(*pair, args.repetitions, seed) for pair in pairs), args.results)
    print_table(HEADINGS, (cells([row]) for row in rows))


if __name__ == "__main__":
    main()
