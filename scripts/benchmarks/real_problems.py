"""Measure selections among real models: published tables of repeated scores, drawn from with replacement.

    OMP_NUM_THREADS=1 python scripts/benchmarks/real_problems.py --set opened --only "default|loop"
    python scripts/benchmarks/real_problems.py --pool

A problem has 2 to 8 candidates with 10 to 200 scores each. The truth of a problem is the mean of all scores of each
candidate. The rule was chosen on the 306 problems of the set `tuned`, and nothing on the 179 of `opened`. Every call
draws a new master seed, prints it, and appends a line for each procedure and problem to the set's file in `results`.
All procedures of a call have the same draws, except for the paper's, which pairs nothing. `--pool` adds up all lines of
the rule in `results/final_rule.txt`, good and bad, and writes tables and picture. The scores themselves are not part of
this project. `--problems` simulates some of the 306 problems more often; these lines go into
`results/problems_apart.csv`.
"""

import re
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

from common import add_record_options, append_rows, make_parser, print_table, rule_id, start_call
from procedures import BASELINES, GLR, PAPER_PROCEDURE, PROCEDURES, SELECTIONS
from published_scores import Problem, read_problems
from real_bars import write_bars
from real_results import APART, HEADINGS, SETS, TABLES, TUNED, SelectionOutcome, cells, count_outcomes

from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

SELECTIONS_PER_GROUP = 120
"""Selections that a process simulates side by side."""

MOST_SELECTIONS = {GLR: 4, PAPER_PROCEDURE: 4}
"""Selections of each problem at most, for procedures that take long."""


@dataclass(frozen=True)
class SeededProblem:
    """A problem with the seed of its draws."""

    problem: Problem
    seed: int


def choose_all(name: str, problems: Sequence[SeededProblem], num_selections: int) -> List[SelectionOutcome]:
    """Choose by a procedure without a posterior, from the scores that `select_all` draws."""
    outcomes: List[SelectionOutcome] = []
    for seeded in problems:
        problem, candidates = seeded.problem, list(seeded.problem.scores)
        choices = BASELINES[name](problem.draw_selections(seeded.seed, num_selections))
        for leader, is_named in zip(choices.leaders, choices.are_named.tolist(), strict=True):
            num_runs = choices.runs_each * len(candidates)
            outcomes.append(SelectionOutcome(problem, candidates[leader], is_named, num_runs))
    return outcomes


def select_all(name: str, problems: Sequence[SeededProblem], num_selections: int) -> List[SelectionOutcome]:
    """Simulate selections of each problem by one strategy."""
    outcomes: List[SelectionOutcome] = []
    for seeded in problems:
        settings = ReplaySettings(**SELECTIONS[name], scores="", seed=seeded.seed)
        for end in prepare_simulator(settings, seeded.problem).run_all(range(num_selections)):
            outcomes.append(SelectionOutcome(seeded.problem, str(end.best), end.is_named, end.num_evaluations))
    return outcomes


def group_problems(problems: Sequence[Problem], num_selections: int, seed: int) -> Iterator[List[SeededProblem]]:
    """Yield groups of problems that can be simulated side by side, of at most `SELECTIONS_PER_GROUP` selections where
    possible."""
    groups: Dict[Tuple[int, bool], List[SeededProblem]] = defaultdict(list)
    for number, problem in enumerate(problems):
        groups[len(problem.scores), problem.paired].append(SeededProblem(problem, seed + number))
    size = max(1, SELECTIONS_PER_GROUP // num_selections)
    for group in groups.values():
        yield from (group[start : start + size] for start in range(0, len(group), size))


def measure(
    names: Sequence[str], problems: Sequence[Problem], *, num_selections: int, seed: int, path: Path
) -> Iterator[Tuple[str, ...]]:
    """Append the counts of each procedure to a file, and yield its row."""
    with ProcessPoolExecutor() as pool:
        futures = {}
        for name in names:
            number = min(num_selections, MOST_SELECTIONS.get(name, num_selections))
            simulate = select_all if name in SELECTIONS else choose_all
            groups = group_problems(problems, number, seed)
            futures[name] = [pool.submit(simulate, name, group, number) for group in groups]
        for name, own_futures in futures.items():
            outcomes = [outcome for future in own_futures for outcome in future.result()]
            lines = list(count_outcomes(outcomes, rule=rule_id(), procedure=name, seed=seed))
            append_rows(lines, path)
            yield name, *cells(lines)


def main() -> None:
    parser = make_parser(__doc__, only="procedures whose name")
    parser.add_argument("--set", choices=sorted(set(SETS) - {APART}), default=TUNED, help="problems to simulate")
    parser.add_argument("--selections", type=int, default=8, help="selections of each problem")
    parser.add_argument(
        "--problems", metavar="PATTERN", help="simulate problems whose name matches, apart from all others"
    )
    parser.add_argument("--scores", type=Path, help="another file of problems")
    add_record_options(parser)
    args = parser.parse_args()
    if args.pool:
        write_bars()
        return TABLES.write()
    chosen_set = SETS[APART if args.problems else args.set]
    seed = start_call(args.seed)
    all_problems = read_problems(args.scores or chosen_set.scores)
    problems = [problem for problem in all_problems if re.search(args.problems or "", problem.name)]
    names = [name for name in PROCEDURES if re.search(args.only, name)]
    path = args.results or chosen_set.results
    rows = measure(names, problems, num_selections=args.selections, seed=seed, path=path)
    print_table(("procedure", *HEADINGS), rows)


if __name__ == "__main__":
    main()
