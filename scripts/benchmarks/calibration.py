"""Measure how often a stopping rule names a wrong winner, on families of synthetic problems and the released scores.

    OMP_NUM_THREADS=1 python scripts/benchmarks/calibration.py --set tuning --only noisy --repetitions 200
    python scripts/benchmarks/calibration.py --pool

Every call draws a new master seed, prints it, and appends a line for each family to `results/calibration.csv`. `--pool`
adds up all lines whose rule is in `results/final_rule.txt`, good and bad, and writes them into docs/evaluation.md.
"""

import itertools
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from common import (
    EVALUATION,
    MODELS_8,
    RESULTS,
    PageTables,
    add_record_options,
    add_up,
    group_by,
    make_parser,
    print_table,
    read_final_rows,
    recorded,
    released_table,
    restricted,
    rule_id,
    share_of,
    start_call,
)
from families import SETS

from fiesta_allennlp.tables.simulation.score_sources import ScoreSource
from fiesta_allennlp.tables.simulation.simulator import Repetition, prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

PATH = RESULTS / "calibration.csv"
RELEASED_SET = "released"
SELECTIONS_PER_TASK = 50
"""Selections that a process simulates at a time."""

HEADINGS = ("family", "selections", "mean runs", "wrong of all", "wrong of named", "open")


@dataclass(frozen=True)
class ResultRow:
    """The result of one family in one call: counts of selections, and their mean number of runs."""

    rule: str
    set: str
    family: str
    seed: int
    repetitions: int
    named: int
    wrong: int
    mean_runs: float

    @property
    def runs(self) -> float:
        return self.mean_runs * self.repetitions


@dataclass(frozen=True)
class Problem:
    """A family, or the released scores with a number of workers. `settings` are those of the replay."""

    name: str
    source: ScoreSource
    settings: Mapping[str, Any]

    def simulate(self, repetitions: range, seed: int) -> List[Repetition]:
        """Simulate these selections."""
        settings = ReplaySettings(scores="", **self.settings, seed=seed)
        return prepare_simulator(settings, self.source).run_all(repetitions)


def problems(set_name: str) -> List[Problem]:
    """The problems of a set."""
    if set_name == RELEASED_SET:
        source = restricted(released_table(), MODELS_8)
        return [Problem(f"released scores, workers: {n}", source, {"batch_size": n}) for n in (1, 4, 8)]
    return [
        Problem(family.name, family, {"batch_size": family.workers, "margin": family.margin or None})
        for family in SETS[set_name]
    ]


def measure(chosen: Sequence[Problem], set_name: str, num_selections: int, seed: int) -> Iterator[ResultRow]:
    """Simulate selections of each problem, and count those that named a winner, and those that named a wrong one."""
    starts = range(0, num_selections, SELECTIONS_PER_TASK)
    chunks = [range(start, min(start + SELECTIONS_PER_TASK, num_selections)) for start in starts]
    with ProcessPoolExecutor() as pool:
        for problem in chosen:
            ends = [end for chunk in pool.map(problem.simulate, chunks, itertools.repeat(seed)) for end in chunk]
            are_correct = [end.correct for end in ends if end.is_named]
            mean_runs = round(sum(end.num_evaluations for end in ends) / len(ends), 2)
            counts = len(ends), len(are_correct), are_correct.count(False)
            yield ResultRow(rule_id(), set_name, problem.name, seed, *counts, mean_runs)


def cells(results: Sequence[ResultRow]) -> Tuple[str, ...]:
    """One text for each of `HEADINGS`, of lines of one family, with 95% Wilson intervals."""
    total, named, wrong, runs = add_up(results, "repetitions", "named", "wrong", "runs")
    shares = share_of(wrong, total), share_of(wrong, named)
    return results[0].family, f"{total:,}", f"{runs / total:.1f}", *shares, f"{1 - named / total:.3f}"


def pool_rows(results: Sequence[ResultRow], set_name: str, highest: Optional[int] = None) -> List[Tuple[str, ...]]:
    """The counts of every family of a set, added up, or only of those with the highest share of wrong winners."""
    groups = group_by((row for row in results if row.set == set_name), lambda row: row.family)
    table_rows = [cells(group) for group in groups.values()]
    return sorted(table_rows, key=lambda row: row[3], reverse=True)[:highest] if highest else table_rows


def _table(match: "re.Match[str]") -> List[Tuple[str, ...]]:
    rows = read_final_rows(PATH, ResultRow)
    return [HEADINGS, *pool_rows(rows, match["set"], int(match["highest"] or 0))]


TABLES = PageTables(r"pooled: (?P<set>\w+)(?:, highest (?P<highest>\d+))?", _table, [EVALUATION])
"""The tables of all families of a set, or of those with the most wrong winners."""


def main() -> None:
    parser = make_parser(__doc__, repetitions=200, only="families whose name")
    parser.add_argument("--set", choices=[*SETS, RELEASED_SET], default="tuning")
    add_record_options(parser, PATH)
    args = parser.parse_args()
    if args.pool:
        return TABLES.write()
    seed = start_call(args.seed)
    chosen = [problem for problem in problems(args.set) if re.search(args.only, problem.name)]
    rows = recorded(measure(chosen, args.set, args.repetitions, seed), args.results)
    print_table(HEADINGS, (cells([row]) for row in rows))


if __name__ == "__main__":
    main()
