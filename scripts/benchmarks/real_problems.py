"""Measure selections among real models: published tables of repeated scores, drawn from with replacement.

    OMP_NUM_THREADS=1 python scripts/benchmarks/real_problems.py --only "default|rule_of_three" --selections 4
    python scripts/benchmarks/real_problems.py --pool

The 306 problems have 4 to 8 candidates with 10 to 30 scores each. The truth of a problem is the mean of all scores of
each candidate. Every call draws a new master seed, prints it, and appends a line for each procedure, problem and class
of reported P(best) to `results/real_problems.csv`. `--pool` adds up all lines of the commits in
`results/final_rule.txt`, good and bad, and writes them into the pages. The scores themselves are not part of this
project. `--problems` simulates some of them more often; these lines go into `results/problems_apart.csv`.
"""

import re
import secrets
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from calibration import CONFIDENCE
from common import (
    ROOT,
    SHARED_DATA,
    append_rows,
    final_rules,
    make_parser,
    print_table,
    read_rows,
    replace_tables,
    rule_commit,
    share_text,
    show,
    write_tables,
)
from published_scores import TIE, Problem, read_problems

from fiesta_allennlp.core.records import History
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.side_by_side import run_side_by_side
from fiesta_allennlp.tables.simulator import Simulator, prepare_simulator, wilson_interval

SCORES = SHARED_DATA / "real" / "problems.csv.gz"
RESULTS = Path(__file__).parent / "results" / "real_problems.csv"
SINGLE_PROBLEM_RESULTS = RESULTS.with_name("problems_apart.csv")
PAGES = (ROOT / "docs" / "evaluation.md", ROOT / "docs" / "reviewers.md", ROOT / "README.md")
TABLE_PATTERN = re.compile(r"(<!-- real: (\w+)(?:, ([^;]+?))?(; brief)? -->\n).*?(<!-- end -->)", flags=re.S)
"""Place of a table on these pages: its kind, the procedures in it where these are not all, and whether it is brief."""

SELECTIONS_PER_GROUP = 120
"""Selections that a process simulates side by side."""

GAPS = (0.2, 0.8)
"""Limits between near, middle and wide gaps, in run-to-run sds."""

REPORTED = (0.96, 0.98)
"""Limits between classes of the P(best) of a named winner."""

NUM_RESAMPLES = 2000
SEEDS_EACH = (3, 5, 10, 20, 30)
T_TESTS, TEST_RUNS = "t-tests of 12 runs each", 12
PLAIN_LOOP, PAPER_PROCEDURE, DEFAULT = "plain loop", "the paper's procedure", "default"
SELECTIONS: Mapping[str, Mapping[str, Any]] = {
    PLAIN_LOOP: {"strategy": "non_adaptive_fc"},
    PAPER_PROCEDURE: {"strategy": "ttts", "belief": "student_t", "splits": "independent", "stop": "bayesian"},
    DEFAULT: {},
    "rule_of_three": {"stop": "rule_of_three"},
    "glr": {"stop": "glr"},
    "margin of 0.25 sd": {"margin": "0.25sd"},
}
"""Settings of the procedures that select. The plain loop has the default's posterior and stopping rule."""

RUNS_EACH = {**{f"{k} runs each": k for k in SEEDS_EACH}, T_TESTS: TEST_RUNS}
PROCEDURES = (*RUNS_EACH, *SELECTIONS)


@dataclass(frozen=True)
class SelectionOutcome:
    """What one selection chose, whether it named it as the winner, and its P(best) where it was reported."""

    problem: Problem
    best: str
    is_named: bool
    num_runs: int
    prob_best: Optional[float] = None

    @property
    def loss(self) -> float:
        """How far the true mean of the chosen one is below the best, in run-to-run sds."""
        return self.problem.losses[self.best]


def select_equally(name: str, problems: Sequence[Problem], num_selections: int, seed: int) -> List[SelectionOutcome]:
    """Choose by the means of equally many runs; with `T_TESTS`, name the best one only if it passes the tests."""
    num_runs, rng = RUNS_EACH[name], np.random.default_rng(seed)
    outcomes: List[SelectionOutcome] = []
    for problem in problems:
        scores = problem.draw_equally(num_runs, num_selections, rng)
        leaders = problem.choose_leaders(scores, rng)
        are_named = problem.passes_tests(scores, leaders) if name == T_TESTS else np.ones(num_selections, dtype=bool)
        candidates = list(problem.scores)
        outcomes += [
            SelectionOutcome(problem, candidates[leader], bool(is_named), num_runs * len(candidates))
            for leader, is_named in zip(leaders, are_named, strict=True)
        ]
    return outcomes


def last_history(replayer: Simulator, repetition: int) -> Generator[History, None, History]:
    """Yield each history of a selection, and return the last one."""
    for history in replayer.iterate_histories(replayer.draw(repetition), repetition):
        yield history
    return history


def select_all(name: str, problems: Sequence[Problem], num_selections: int, seed: int) -> List[SelectionOutcome]:
    """Simulate selections of problems with equally many candidates side by side, by one strategy."""
    replayers: List[Simulator] = []
    for number, problem in enumerate(problems):
        settings = ReplaySettings(**SELECTIONS[name], scores="", confidence=CONFIDENCE, seed=seed + number)
        replayers.append(prepare_simulator(settings, problem))
    strategy = replayers[0].strategy
    replayers_alike = (replace(replayer, strategy=strategy) for replayer in replayers)
    runs = [last_history(replayer, repetition) for replayer in replayers_alike for repetition in range(num_selections)]
    problem_by_run = [problem for problem in problems for _ in range(num_selections)]
    outcomes: List[SelectionOutcome] = []
    for problem, history in zip(problem_by_run, run_side_by_side(strategy, runs), strict=True):
        decision, num_runs = strategy.recommend(history), len(history.evaluations)
        is_named = decision.stopped_by == "confidence"
        outcomes.append(SelectionOutcome(problem, str(decision.best), is_named, num_runs, decision.confidence))
    return outcomes


def group_problems(problems: Sequence[Problem], num_selections: int) -> Iterator[List[Problem]]:
    """Yield groups of problems that can be simulated side by side, of at most `SELECTIONS_PER_GROUP` selections where
    possible."""
    groups: Dict[Tuple[int, bool], List[Problem]] = defaultdict(list)
    for problem in problems:
        groups[len(problem.scores), problem.paired].append(problem)
    size = max(1, SELECTIONS_PER_GROUP // num_selections)
    for group in groups.values():
        yield from (group[start : start + size] for start in range(0, len(group), size))


@dataclass(frozen=True)
class ResultRow:
    """The counts of one procedure, problem and class of reported P(best) in one call.
    `runs` counts selections by number of runs, as "15:3 18:1"; `loss` is a sum, in run-to-run sds."""

    rule: str
    procedure: str
    source: str
    problem: str
    gap: str
    reported: str
    seed: int
    selections: int
    named: int
    wrong: int
    wrong_by_tenth: int
    wrong_by_quarter: int
    loss: float
    runs: str

    @property
    def histogram(self) -> Counter[int]:
        pairs = (pair.split(":") for pair in self.runs.split())
        return Counter({int(number): int(count) for number, count in pairs})


def count_outcomes(outcomes: Sequence[SelectionOutcome], **columns: Any) -> Iterator[ResultRow]:
    """Count results by problem and reported P(best)."""
    groups: Dict[Tuple[str, str, str, str], List[SelectionOutcome]] = defaultdict(list)
    for outcome in outcomes:
        reported = "" if not outcome.is_named or outcome.prob_best is None else class_label(outcome.prob_best, REPORTED)
        problem = outcome.problem
        groups[problem.source, problem.name, class_label(problem.gap, GAPS), reported].append(outcome)
    for (source, name, gap, reported), group in sorted(groups.items()):
        losses = [result.loss for result in group if result.is_named]
        by_number = sorted(Counter(result.num_runs for result in group).items())
        yield ResultRow(
            **columns,
            source=source,
            problem=name,
            gap=gap,
            reported=reported,
            selections=len(group),
            named=len(losses),
            wrong=sum(loss > TIE for loss in losses),
            wrong_by_tenth=sum(loss > 0.1 for loss in losses),
            wrong_by_quarter=sum(loss > 0.25 for loss in losses),
            loss=round(sum(result.loss for result in group), 6),
            runs=" ".join(f"{number}:{count}" for number, count in by_number),
        )


def class_label(value: float, limits: Tuple[float, float]) -> str:
    low, high = limits
    return f"below {low}" if value < low else f"{low} to {high}" if value < high else f"above {high}"


HEADINGS = (
    "selections",
    "runs: mean, median (5-95%)",
    "names a winner",
    "wrong, of all",
    "wrong, of named",
    "by over 0.1 sd",
    "by over 0.25 sd",
    "loss, sds",
)
BRIEF_COLUMNS = {"reported": (0, 1, 4, 6)}
"""Places of the `HEADINGS` of a brief table, by its kind."""

DEFAULT_BRIEF_COLUMNS = (1, 2, 3, 4, 6)


def cells(results: Sequence[ResultRow]) -> Tuple[str, ...]:
    """Return one text for each of `HEADINGS`."""
    total, named = (sum(getattr(line, key) for line in results) for key in ("selections", "named"))
    histogram = sum((line.histogram for line in results), Counter())
    numbers = np.repeat(*(np.array(column) for column in zip(*sorted(histogram.items()), strict=True)))
    low, median, high = np.percentile(numbers, (5, 50, 95), method="inverted_cdf")

    def rate(key: str, total_key: str) -> str:
        number = sum(getattr(line, total_key) for line in results)
        count = sum(getattr(line, key) for line in results)
        return share_text(count / number, interval(results, key, total_key)) if number else "-"

    return (
        f"{total:,}",
        f"{numbers.mean():.1f}, {median} ({low}-{high})",
        f"{named / total:.3f}",
        rate("wrong", "selections"),
        rate("wrong", "named"),
        rate("wrong_by_tenth", "selections"),
        rate("wrong_by_quarter", "selections"),
        f"{sum(line.loss for line in results) / total:.4f}",
    )


def interval(results: Sequence[ResultRow], key: str, total_key: str) -> Tuple[float, float]:
    """Compute the 95% interval of a share by a bootstrap over problems. Where the count is 0, it is Wilson's for 0 of
    that many problems, and for a single problem Wilson's for its selections."""
    by_problem: Dict[Tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(2))
    for result in results:
        by_problem[result.source, result.problem] += (getattr(result, key), getattr(result, total_key))
    counts = np.array(list(by_problem.values()))
    if len(counts) == 1:
        return wilson_interval(*(int(number) for number in counts.sum(axis=0)))
    if not counts[:, 0].any():
        return wilson_interval(0, int((counts[:, 1] > 0).sum()))
    number = len(counts)
    weights = np.random.default_rng(1).multinomial(number, np.full(number, 1 / number), size=NUM_RESAMPLES)
    shares, numbers = (weights @ counts).T
    low, high = np.percentile(shares[numbers > 0] / numbers[numbers > 0], (2.5, 97.5))
    return float(low), float(high)


FIELDS_BY_TABLE = {
    "procedures": (),
    "sources": ("source",),
    "gaps": ("gap",),
    "reported": ("reported",),
    "problems": ("problem",),
}
"""Tables on the pages, and the fields that have a row each beside the procedure."""

ORDER = tuple(class_label(value, limits) for limits in (GAPS, REPORTED) for value in (0, *limits))


def pool_rows(
    results: Iterable[ResultRow], rules: Sequence[str], kind: str, names: Sequence[str] = PROCEDURES
) -> List[Tuple[str, ...]]:
    """Add up the lines of these rules and procedures. Procedures without a stopping rule count for every rule."""
    groups: Dict[Tuple[str, ...], List[ResultRow]] = defaultdict(list)
    for result in results:
        key = (result.procedure, *(getattr(result, field) for field in FIELDS_BY_TABLE[kind]))
        if result.procedure in names and (result.rule in rules or result.procedure in RUNS_EACH) and all(key):
            groups[key].append(result)
    keys = sorted(groups, key=lambda key: (names.index(key[0]), ORDER.index(key[-1]) if key[-1] in ORDER else 0, key))
    return [(*(SOURCES.get(text, text) for text in key), *cells(groups[key])) for key in keys]


SOURCES = {
    "automl": "AutoML systems",
    "blum2015": "graph optimization",
    "recycling": "language models",
    "tser": "time series, regression",
    "ucr": "time series, classes",
}
"""How the pages name the sources."""

HEADING_OF = {"gap": "gap, sds", "reported": "P(best) at the end"}


def update_page(page: str, results: Sequence[ResultRow], rules: Sequence[str], single: Sequence[ResultRow] = ()) -> str:
    """The page with each pooled table in its place. Tables of single problems have the lines that are apart."""

    def table(match: "re.Match[str]") -> List[Tuple[str, ...]]:
        kind, names = match[2], tuple(match[3].split(", ")) if match[3] else PROCEDURES
        key_headings = ("procedure", *(HEADING_OF.get(field, field) for field in FIELDS_BY_TABLE[kind]))
        rows = [(*key_headings, *HEADINGS), *pool_rows(single if kind == "problems" else results, rules, kind, names)]
        columns = BRIEF_COLUMNS.get(kind, DEFAULT_BRIEF_COLUMNS) if match[4] else range(len(HEADINGS))
        return [(*row[: len(key_headings)], *(row[len(key_headings) + column] for column in columns)) for row in rows]

    return replace_tables(page, TABLE_PATTERN, table)


def with_tables(page: str) -> str:
    """The page with the tables of all recorded lines of the final rule."""
    results, single = (read_rows(path, ResultRow) for path in (RESULTS, SINGLE_PROBLEM_RESULTS))
    return update_page(page, results, final_rules(), single)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, only="procedures whose name")
    parser.add_argument("--selections", type=int, default=4, help="selections of each problem")
    parser.add_argument(
        "--problems", metavar="PATTERN", help="simulate problems whose name matches, apart from all others"
    )
    parser.add_argument("--seed", type=int, help="repeat a recorded call, instead of a new seed")
    parser.add_argument("--scores", type=Path, default=SCORES)
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    parser.add_argument("--pool", action="store_true", help="measure nothing, but write the pooled tables")
    parser.add_argument("--results", type=Path, help="file to append to")
    args = parser.parse_args(arguments)
    if args.pool:
        return write_tables(PAGES, with_tables)
    rule, seed = rule_commit(), secrets.randbits(32) if args.seed is None else args.seed
    problems = [problem for problem in read_problems(args.scores) if re.search(args.problems or "", problem.name)]
    results_file = args.results or (SINGLE_PROBLEM_RESULTS if args.problems else RESULTS)
    show(f"rule {rule}, seed {seed}, {len(problems)} problems")

    def rows() -> Iterator[Tuple[str, ...]]:
        with ProcessPoolExecutor(args.processes) as pool:
            for name in PROCEDURES:
                if re.search(args.only, name):
                    select = select_all if name in SELECTIONS else select_equally
                    groups = enumerate(group_problems(problems, args.selections))
                    futures = [
                        pool.submit(select, name, group, args.selections, seed + 1000 * n) for n, group in groups
                    ]
                    outcomes = [outcome for future in futures for outcome in future.result()]
                    lines = list(count_outcomes(outcomes, rule=rule, procedure=name, seed=seed))
                    append_rows([asdict(line) for line in lines], results_file)
                    yield name, *cells(lines)

    print_table(("procedure", *HEADINGS), rows())


if __name__ == "__main__":
    main()
