"""Measure what `fiesta confirm` claims about two models, after selections by the default rule.

    OMP_NUM_THREADS=1 python scripts/benchmarks/confirmation.py --repetitions 1000
    python scripts/benchmarks/confirmation.py --pool

Scores are normal, with a run-to-run sd of 1 on one split; random splits have an effect with an sd of 1, too. Each
selection ends, decided or not, and then its leader and the other model have ten fresh runs each. The verdicts come from
the code of the command. Every call draws a new seed, prints it, and appends its counts to `results/confirmation.csv`.
`--pool` prints the table of all lines; docs/report.md has that of shared splits.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np
from common import (
    ROOT,
    add_record_options,
    append_rows,
    make_parser,
    print_table,
    read_rows,
    replace_tables,
    share_of,
    start_call,
    write_tables,
)
from real_problems import last_history

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.t_tests import CONFIRMATION_LEVEL, t_test_power
from fiesta_allennlp.confirming.confirm_settings import NUM_FRESH_RUNS
from fiesta_allennlp.confirming.confirmation import FreshComparison, compare_with_rivals
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, History, Request
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, SeenLead
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.tables.simulation.problems import ScorePreset
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

RESULTS = Path(__file__).parent / "results" / "confirmation.csv"
GAPS = (0.0, 0.25, 0.5, 1.0)
SPLITS = ("shared", "official")
SPLIT_SDS = {"shared": 1.0, "official": 0.0}
MODELS = ("better", "other")
SELECTIONS_PER_GROUP = 100
PAGE = ROOT / "docs" / "report.md"
TABLE_PATTERN = re.compile(r"(<!-- confirmation -->\n).*?(<!-- end -->)", flags=re.S)
HEADINGS = (
    "splits",
    "gap, sds",
    "selections",
    "confirmed if the better leads",
    "power by the formula",
    "wrong verdicts",
    "interval covers",
)


@dataclass(frozen=True)
class ResultRow:
    """The counts of one call.

    `right` selections were led by the better model, and `confirmed_right` of these were confirmed. `false_claims` are
    verdicts that the worse model is better, or that of two equal models the leader is; that the rival is, is counted as
    `contradicted`. The intervals of `covered`
    contain the true difference. `announced` is the sum of the probabilities that the command announces for a difference
    as large as the selection saw.
    """

    splits: str
    gap: float
    seed: int
    selections: int
    named: int
    right: int
    confirmed_right: int
    contradicted: int
    false_claims: int
    covered: int
    announced: float


def fresh_history(leader: str, rival: str, gap: float, splits: str, rng: np.random.Generator) -> History:
    """Return the fresh runs of two models."""
    effects = rng.normal(0, SPLIT_SDS[splits], NUM_FRESH_RUNS)
    evaluations = [
        Evaluation(Request(name, k, k, 0, 0, 0), (name == MODELS[0]) * gap + effects[k] + rng.normal(), "score")
        for name in (leader, rival)
        for k in range(NUM_FRESH_RUNS)
    ]
    return History((leader, rival), tuple(evaluations))


@dataclass(frozen=True)
class Confirmed:
    """A selection's leader with its fresh runs: whether the selection named it, and what they were expected to show."""

    leader: str
    was_decided: bool
    announced: float
    comparison: FreshComparison


def confirm(strategy: Strategy, selected: History, gap: float, splits: str, rng: np.random.Generator) -> Confirmed:
    """Return the confirmation of the leader of a selection."""
    decision, is_paired = strategy.recommend(selected), splits == "shared"
    leader = str(decision.best)
    rival = next(name for name in MODELS if name != leader)
    entries = [CandidateResult.from_history(selected, decision, name) for name in (leader, rival)]
    seen = SeenLead.of(entries[0], entries[1], sign=1, is_paired=is_paired)
    fresh = fresh_history(leader, rival, gap, splits, rng)
    result = Result.from_decision(fresh, Decision(best=None), Metric("score"), splits=splits)
    (comparison,) = compare_with_rivals(result, NUM_FRESH_RUNS)
    announced = seen.power(NUM_FRESH_RUNS) or 0.0
    return Confirmed(leader, decision.stopped_by == "confidence", announced, comparison)


def count(confirmed: Confirmed, gap: float) -> Dict[str, float]:
    """Return what one confirmation adds to the counts."""
    comparison = confirmed.comparison
    is_right, verdict = confirmed.leader == MODELS[0], comparison.verdict
    true_difference = gap if is_right else -gap
    if comparison.interval is None:
        raise ValueError(f"no interval: {comparison}")
    return {
        "selections": 1,
        "named": confirmed.was_decided,
        "right": is_right,
        "confirmed_right": is_right and verdict == "confirmed",
        "contradicted": verdict == "contradicted",
        "false_claims": verdict == "confirmed" if true_difference <= 0 else verdict == "contradicted",
        "covered": comparison.interval[0] <= true_difference <= comparison.interval[1],
        "announced": confirmed.announced,
    }


def measure(splits: str, gap: float, repetitions: int, seed: int) -> ResultRow:
    """Simulate selections with their confirmations, and count."""
    means = dict(zip(MODELS, (gap, 0.0), strict=True))
    source = ScorePreset("pair", means, noise_sds=dict.fromkeys(means, 1.0), split_sd=SPLIT_SDS[splits])
    replayer = prepare_simulator(ReplaySettings(scores="", splits=splits, seed=seed), source)
    rng = np.random.default_rng([seed, int(100 * gap), SPLITS.index(splits)])
    sums: Counter = Counter()
    for start in range(0, repetitions, SELECTIONS_PER_GROUP):
        numbers = range(start, min(start + SELECTIONS_PER_GROUP, repetitions))
        for history in (last_history(replayer, number) for number in numbers):
            sums.update(count(confirm(replayer.strategy, history, gap, splits, rng), gap))
    return ResultRow(splits, gap, seed, **{name: sums[name] for name in COUNTS})


COUNTS = [name for name in ResultRow.__dataclass_fields__ if name not in ("splits", "gap", "seed")]


def power_by_formula(splits: str, gap: float) -> float:
    """Return the power of the t test of `NUM_FRESH_RUNS` runs each, where both sds are 1."""
    df = (NUM_FRESH_RUNS - 1) * (1 if splits == "shared" else 2)
    return t_test_power(gap, standard_error=(2 / NUM_FRESH_RUNS) ** 0.5, df=df, level=CONFIRMATION_LEVEL)


def cells(rows: Sequence[ResultRow]) -> Tuple[str, ...]:
    """One text for each of `HEADINGS`, of lines of one gap, with 95% Wilson intervals."""
    splits, gap = rows[0].splits, rows[0].gap
    sums = {name: sum(getattr(row, name) for row in rows) for name in COUNTS}
    sums["wrong"] = sums["false_claims"] + (0 if gap else sums["contradicted"])
    return (
        splits,
        f"{gap:g}",
        f"{sums['selections']:,}",
        share_of(sums["confirmed_right"], sums["right"]) if gap else "-",
        f"{power_by_formula(splits, gap):.3f}" if gap else "-",
        share_of(sums["wrong"], sums["selections"]),
        share_of(sums["covered"], sums["selections"]),
    )


def table_rows(results: Sequence[ResultRow]) -> List[Tuple[str, ...]]:
    """The rows of the table, each added up over the lines of one gap."""
    groups: Dict[Tuple[int, float], List[ResultRow]] = {}
    for result in results:
        groups.setdefault((SPLITS.index(result.splits), result.gap), []).append(result)
    return [cells(group) for _, group in sorted(groups.items())]


def with_tables(page: str) -> str:
    """The page with the table of shared splits: fresh runs do not depend on the rule that ended a selection."""
    rows = table_rows([row for row in read_rows(RESULTS, ResultRow) if row.splits == "shared"])
    return replace_tables(page, TABLE_PATTERN, lambda block: [HEADINGS, *rows])


def main() -> None:
    parser = make_parser(__doc__, repetitions=1000)
    parser.add_argument("--splits", nargs="*", default=SPLITS, choices=SPLITS)
    parser.add_argument("--gaps", type=float, nargs="*", default=GAPS, help="gaps in run-to-run sds")
    add_record_options(parser, RESULTS)
    args = parser.parse_args()
    if args.pool:
        print_table(HEADINGS, table_rows(read_rows(args.results, ResultRow)))
        return write_tables([PAGE], with_tables)
    seed = start_call(args.seed)

    def rows() -> Iterator[Tuple[str, ...]]:
        for splits, gap in itertools.product(args.splits, args.gaps):
            row = measure(splits, gap, args.repetitions, seed)
            append_rows([row], args.results)
            yield cells([row])

    print_table(HEADINGS, rows())


if __name__ == "__main__":
    main()
