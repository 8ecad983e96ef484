"""Measure how often a stopping rule names a wrong winner, on families of synthetic problems and the released scores.

    OMP_NUM_THREADS=1 python scripts/benchmarks/calibration.py --set tuning --only noisy --repetitions 200
    python scripts/benchmarks/calibration.py --pool

Every call draws a new master seed, prints it, and appends a line for each family to `results/calibration.csv`. `--pool`
adds up all lines whose rule is in `results/final_rule.txt`, good and bad, and writes them into docs/evaluation.md.
"""

import re
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from common import (
    MODELS_8,
    ROOT,
    add_record_options,
    append_rows,
    make_parser,
    print_table,
    read_final_rows,
    released_table,
    replace_tables,
    restricted,
    rule_id,
    share_of,
    start_call,
    write_tables,
)
from families import SETS

from fiesta_allennlp.tables.simulation.outlook import Repetition
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

RESULTS = Path(__file__).parent / "results" / "calibration.csv"
PAGE = ROOT / "docs" / "evaluation.md"
TABLE_PATTERN = re.compile(r"(<!-- pooled: (\w+)(?:, highest (\d+))? -->\n).*?(<!-- end -->)", flags=re.S)
"""Place of the table of a set on this page, of all families or of those with the most wrong winners."""

RELEASED_SET = "released"
CONFIDENCE = 0.95
DEFAULT = "default"
"""The stopping rule that was the default of its commit."""

SELECTIONS_PER_TASK = 50
"""Selections that a process simulates at a time."""

HEADINGS = ("family", "selections", "mean runs", "wrong of all", "wrong of named", "open")


@dataclass(frozen=True)
class ResultRow:
    """The result of one family in one call: counts of selections, and their mean number of runs."""

    rule: str
    set: str
    family: str
    confidence: float
    stop: str
    seed: int
    repetitions: int
    named: int
    wrong: int
    inconclusive: int
    mean_runs: float


@dataclass(frozen=True)
class Problem:
    """A family, or the released scores with a number of workers. `settings` are those of the replay."""

    name: str
    settings: Mapping[str, Any]
    source: Optional[ScoreSource] = None

    def simulate(self, repetitions: range, seed: int) -> List[Repetition]:
        """Simulate these selections."""
        settings = ReplaySettings(**self.settings, confidence=CONFIDENCE, seed=seed)
        return prepare_simulator(settings, self.source).run_all(repetitions)

    def count(self, set_name: str, repetitions: Sequence[Repetition], seed: int) -> ResultRow:
        """Count the selections that named a winner, and those that named a wrong one."""
        decided = [repetition for repetition in repetitions if repetition.is_named]
        return ResultRow(
            rule=rule_id(),
            set=set_name,
            family=self.name,
            confidence=CONFIDENCE,
            stop=DEFAULT,
            seed=seed,
            repetitions=len(repetitions),
            named=len(decided),
            wrong=sum(not repetition.correct for repetition in decided),
            inconclusive=len(repetitions) - len(decided),
            mean_runs=round(sum(repetition.num_evaluations for repetition in repetitions) / len(repetitions), 2),
        )


def problems(set_name: str) -> List[Problem]:
    """The problems of a set."""
    if set_name == RELEASED_SET:
        source = restricted(released_table(), MODELS_8)
        return [Problem(f"released scores, workers: {n}", {"scores": "", "batch_size": n}, source) for n in (1, 4, 8)]
    return [
        Problem(family.name, {"scores": "", "batch_size": family.workers, "margin": family.margin or None}, family)
        for family in SETS[set_name]
    ]


def pool_rows(results: Sequence[ResultRow], set_name: str, highest: Optional[int] = None) -> List[Tuple[str, ...]]:
    """The counts of every family of a set, added up, or only of those with the highest share of wrong winners. One text
    for each of `HEADINGS`."""
    names = {problem.name for problem in problems(set_name)}
    by_family: Dict[str, List[ResultRow]] = defaultdict(list)
    for result in results:
        if result.family in names and (result.confidence, result.stop) == (CONFIDENCE, DEFAULT):
            by_family[result.family].append(result)
    table_rows = [cells(family, group) for family, group in by_family.items()]
    return sorted(table_rows, key=lambda row: row[3], reverse=True)[:highest] if highest else table_rows


def with_tables(page: str) -> str:
    """The page with the table of each set in its place, of all recorded lines of the final rule."""
    rows = read_final_rows(RESULTS, ResultRow)
    return replace_tables(
        page, TABLE_PATTERN, lambda match: [HEADINGS, *pool_rows(rows, match[2], int(match[3] or 0) or None)]
    )


def cells(family: str, results: Sequence[ResultRow]) -> Tuple[str, ...]:
    """One text for each of `HEADINGS`, with 95% Wilson intervals."""
    total, named, wrong = (sum(getattr(result, key) for result in results) for key in ("repetitions", "named", "wrong"))
    mean_runs = sum(result.mean_runs * result.repetitions for result in results) / total
    return (
        family,
        f"{total:,}",
        f"{mean_runs:.1f}",
        share_of(wrong, total),
        share_of(wrong, named),
        f"{1 - named / total:.3f}",
    )


def main() -> None:
    parser = make_parser(__doc__, repetitions=200, only="families whose name")
    parser.add_argument("--set", choices=[*SETS, RELEASED_SET], default="tuning")
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    add_record_options(parser, RESULTS)
    args = parser.parse_args()
    if args.pool:
        return write_tables([PAGE], with_tables)
    seed = start_call(args.seed)
    chosen = [problem for problem in problems(args.set) if re.search(args.only, problem.name)]
    starts = range(0, args.repetitions, SELECTIONS_PER_TASK)
    chunks = [range(start, min(start + SELECTIONS_PER_TASK, args.repetitions)) for start in starts]

    def rows() -> Iterator[Tuple[str, ...]]:
        with ProcessPoolExecutor(args.processes) as pool:
            futures = [[pool.submit(problem.simulate, chunk, seed) for chunk in chunks] for problem in chosen]
            for problem, own_futures in zip(chosen, futures, strict=True):
                repetitions = [repetition for future in own_futures for repetition in future.result()]
                result = problem.count(args.set, repetitions, seed)
                append_rows([result], args.results)
                yield cells(result.family, [result])

    print_table(HEADINGS, rows())


if __name__ == "__main__":
    main()
