"""Measure selections of two candidates that are equal or nearly so, and the interval of their difference afterwards.

    OMP_NUM_THREADS=1 python scripts/benchmarks/pairs.py --repetitions 400

Scores are normal, with a run-to-run sd of 1, as `fiesta plan --gap 0 --sd 1` simulates them. The interval is the 95%
interval that `fiesta report` prints, which takes the number of runs as fixed in advance. Interval and lead are those of
the named candidate over the other one, in selections that named one. Leads are in run-to-run sds. Every call draws a
new seed, prints it, and appends its counts to `results/pairs.csv`. `--pool` adds them up on docs/evaluation.md.
"""

import csv
import itertools
import re
import secrets
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from common import (
    ROOT,
    append_rows,
    final_rule,
    make_parser,
    print_table,
    replace_tables,
    rule_id,
    share_text,
    show,
    write_tables,
)
from real_problems import last_history

from fiesta_allennlp.choosing.t_tests import compute_mean_interval
from fiesta_allennlp.reports.record import compute_welch_interval
from fiesta_allennlp.tables.simulation.outlook import wilson_interval
from fiesta_allennlp.tables.simulation.score_sources import ScorePreset
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

RESULTS = Path(__file__).parent / "results" / "pairs.csv"
GAPS = (0.0, 0.1, 0.2, 0.5, 1.0)
STOPS = ("early_looks", "glr")
SELECTIONS_PER_GROUP = 100
PAGE = ROOT / "docs" / "evaluation.md"
TABLE_PATTERN = re.compile(r"(<!-- pairs(?:: (\w+))? -->\n).*?(<!-- end -->)", flags=re.S)
"""Place of the table, with all stopping rules or one of them."""

SUMMED_COLUMNS = ("selections", "named", "wrong", "runs", "covered", "above", "excess", "squares")
HEADINGS = (
    "stop",
    "gap, sds",
    "runs",
    "named",
    "wrong of named",
    "interval covers",
    "lead - true lead",
)


def lead_interval(winner_scores: np.ndarray, loser_scores: np.ndarray, *, shared: bool) -> Tuple[float, Optional[Any]]:
    """Return the mean difference and the interval that a report prints, on shared splits of the runs that both have."""
    if not shared:
        return float(winner_scores.mean() - loser_scores.mean()), compute_welch_interval(winner_scores, loser_scores)
    num_common = min(len(winner_scores), len(loser_scores))
    differences = winner_scores[:num_common] - loser_scores[:num_common]
    return float(differences.mean()), compute_mean_interval(differences)


def count_selections(stop: str, gap: float, splits: str, repetitions: int, seed: int) -> Dict[str, Any]:
    """Simulate selections and count. `covered` and the sums of leads are over the selections that named a winner."""
    means = {"better": gap, "other": 0.0}
    source = ScorePreset("pair", means, noise_sds=dict.fromkeys(means, 1.0), split_sd=0.0)
    replayer = prepare_simulator(ReplaySettings(scores="", stop=stop, splits=splits, seed=seed), source)
    sums = dict(named=0, wrong=0, runs=0, covered=0, above=0, excess=0.0, squares=0.0)
    for start in range(0, repetitions, SELECTIONS_PER_GROUP):
        numbers = range(start, min(start + SELECTIONS_PER_GROUP, repetitions))
        for history in (last_history(replayer, number) for number in numbers):
            decision = replayer.strategy.recommend(history)
            sums["runs"] += len(history.evaluations)
            if decision.best is None or decision.stopped_by != "confidence":
                continue
            loser = next(name for name in means if name != decision.best)
            scores = [history.scores(name) for name in (decision.best, loser)]
            lead, interval = lead_interval(*scores, shared=splits == "shared")
            true_lead = means[decision.best] - means[loser]
            sums["named"] += 1
            sums["wrong"] += true_lead < 0
            sums["covered"] += interval is not None and interval[0] <= true_lead <= interval[1]
            sums["above"] += interval is not None and interval[0] > true_lead
            sums["excess"] += lead - true_lead
            sums["squares"] += (lead - true_lead) ** 2
    return {"stop": stop, "gap": gap, "splits": splits, "seed": seed, "selections": repetitions, **sums}


def cells(sums: Dict[str, Any]) -> List[str]:
    total, named = sums["selections"], sums["named"]

    def rate(key: str, number: float) -> str:
        return share_text(sums[key] / number, wilson_interval(int(sums[key]), int(number))) if number else "-"

    excess = sums["excess"] / max(named, 1)
    error = np.sqrt(max(sums["squares"] / max(named, 1) - excess**2, 0) / max(named, 1))
    return [
        sums["stop"],
        f"{sums['gap']:g}",
        f"{sums['runs'] / total:.1f}",
        rate("named", total),
        rate("wrong", named) if sums["gap"] else "-",
        rate("covered", named),
        f"{excess:+.2f} ± {error:.2f}" if named else "-",
    ]


def update_page(page: str, path: Path, rule: str) -> str:
    """The page with the counts of shared splits, added up over the lines of this rule."""
    sums_by_key: Dict[Tuple[str, float], Dict[str, Any]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = row["stop"], float(row["gap"])
            if row["rule"] == rule and row["splits"] == "shared":
                group = sums_by_key.setdefault(key, {"stop": key[0], "gap": key[1]})
                for name in SUMMED_COLUMNS:
                    group[name] = group.get(name, 0) + float(row[name])

    def table(match: "re.Match[str]") -> List[Sequence[str]]:
        rows = [cells(sums) for (stop, _), sums in sorted(sums_by_key.items()) if match[2] in (None, stop)]
        return [row[1:] if match[2] else row for row in (HEADINGS, *rows)]

    return replace_tables(page, TABLE_PATTERN, table)


def with_tables(page: str) -> str:
    """The page with the table of all recorded lines of the final rule."""
    return update_page(page, RESULTS, final_rule())


def main() -> None:
    parser = make_parser(__doc__, repetitions=400, only="stopping rules whose name")
    parser.add_argument("--splits", default="shared", choices=("shared", "official"))
    parser.add_argument("--gaps", type=float, nargs="*", default=GAPS, help="gaps in run-to-run sds")
    parser.add_argument("--pool", action="store_true", help="measure nothing, but write the pooled table")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file to append to")
    args = parser.parse_args()
    if args.pool:
        return write_tables([PAGE], with_tables)
    seed, rule = secrets.randbits(32), rule_id()
    show(f"rule {rule}, seed {seed}, {args.splits}")

    def rows() -> Iterator[List[str]]:
        for stop, gap in itertools.product(filter(re.compile(args.only).search, STOPS), args.gaps):
            sums = count_selections(stop, gap, args.splits, args.repetitions, seed)
            append_rows([{"rule": rule, **sums}], args.results)
            yield cells(sums)

    print_table(HEADINGS, rows())


if __name__ == "__main__":
    main()
