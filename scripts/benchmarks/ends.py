"""Count the three ends of selections among real models: how often a best one is wrong, and two equal ones are not.

    OMP_NUM_THREADS=1 python scripts/benchmarks/ends.py --set opened --selections 24
    python scripts/benchmarks/ends.py --pool

The problems and their draws are those of `real_problems.py`. The end of each selection is judged by the function that
`fiesta select` uses. A call appends a line for each data set, end and class of P(best) and lead to `results/ends.csv`.
`--pool` writes the tables of the page, and prints the counts that `fiesta_allennlp` quotes beside a winner. A winner is
wrong if the true mean of another candidate is better. Candidates are called equal wrongly if the true means of two of
them are more than half a run-to-run sd apart.
"""

import re
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from common import (
    BENCHMARKS,
    add_record_options,
    append_rows,
    make_parser,
    read_final_rows,
    replace_tables,
    rule_id,
    share_text,
    show,
    start_call,
    write_tables,
)
from published_scores import TIE, read_problems
from real_problems import SeededProblem, group_problems
from real_results import SETS
from real_tables import interval

from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.metrics import UNNAMED
from fiesta_allennlp.selecting.objections import UNITS, UNSEEDED, find_questions
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import (
    CLASS_ERRORS,
    EQUAL_SDS,
    LEAD_LIMITS,
    PROB_LIMITS,
    class_of,
    judge,
    prob_equal,
)
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

RESULTS = BENCHMARKS / "results" / "ends.csv"
PAGE = BENCHMARKS / "README.md"
ANSWERED = (UNSEEDED.name, UNITS.name)
TABLE_PATTERN = re.compile(r"(<!-- ends: (\w+) -->\n).*?(<!-- end -->)", flags=re.S)


@dataclass(frozen=True)
class EndRow:
    """The counts of one data set, end and class in one call. `prob` and `lead` are the numbers of the classes of a
    winner, else -1. `leads` and `true_leads` are sums over the winners, in run-to-run sds. `pairs` counts ends without
    a winner whose first two candidates are equal with the target probability, and `wrong_pairs` those that are not.
    `asked` counts selections whose scores raise a question, which is taken as answered."""

    rule: str
    set: str
    data_set: str
    seed: int
    verdict: str
    prob: int
    lead: int
    selections: int
    wrong: int
    wrong_by_quarter: int
    leads: float
    true_leads: float
    pairs: int
    wrong_pairs: int
    asked: int


@dataclass(frozen=True)
class End:
    """The end of one selection: its key in the results, and what it adds to the numbers of their line."""

    key: Tuple[str, str, int, int]
    numbers: Tuple[float, ...]


def judge_ends(problems: Sequence[SeededProblem], num_selections: int) -> List[End]:
    """Simulate selections of each problem, and judge the history of each."""
    return [end for seeded in problems for end in _judge_problem(seeded, num_selections)]


def _judge_problem(seeded: SeededProblem, num_selections: int) -> Iterator[End]:
    problem = seeded.problem
    simulator = prepare_simulator(ReplaySettings(scores="", seed=seeded.seed), problem)
    drawn = [simulator.draw(repetition) for repetition in range(num_selections)]
    assert simulator.rules is not None
    for scores, num_runs in zip(drawn, simulator.run_batch(drawn).num_runs.tolist(), strict=True):
        pairs = zip(simulator.first_history.active, num_runs, strict=True)
        runs = [scores.run(name, number) for name, count in pairs for number in range(count)]
        history = simulator.first_history.with_finished(runs)
        decision = judge(history, simulator.strategy.recommend(history), simulator.strategy, allowed=ANSWERED)
        is_asked = any(find_questions(history, ()))
        result = Result.from_decision(history, decision, UNNAMED)
        assert decision.posterior is not None
        place, losses = (-1, -1), [problem.losses[name] for name in result.best_set]
        if result.best is not None and result.lead is not None:
            place = class_of(decision) or place
            leads = result.lead.difference / problem.sd, problem.losses[result.lead.rival] - losses[0]
            numbers = [losses[0] > TIE, losses[0] > 0.25, *leads, 0, 0, is_asked]
        else:
            first, second = sorted(decision.prob_best, key=lambda name: -decision.prob_best[name])[:2]
            chance = prob_equal(decision.posterior, [list(decision.prob_best).index(name) for name in (first, second)])
            are_apart = abs(problem.losses[first] - problem.losses[second]) > EQUAL_SDS
            is_equal = (chance or 0) >= CONFIDENCE
            numbers = [max(losses) - min(losses) > EQUAL_SDS, 0, 0, 0, is_equal, is_equal and are_apart, is_asked]
        yield End((problem.data_set, result.verdict, *place), (1.0, *map(float, numbers)))


def count_ends(ends: Sequence[End], *, rule: str, set_name: str, seed: int) -> Iterator[EndRow]:
    """Add up ends by data set, verdict and class."""
    sums: Dict[Tuple[str, str, int, int], np.ndarray] = defaultdict(lambda: np.zeros(8))
    for end in ends:
        sums[end.key] += end.numbers
    for (data_set, verdict, prob, lead), (number, wrong, quarter, leads, true_leads, *pairs) in sorted(sums.items()):
        counts = int(number), int(wrong), int(quarter), round(leads, 4), round(true_leads, 4), *map(int, pairs)
        yield EndRow(rule, set_name, data_set, seed, verdict, prob, lead, *counts)


def read_ends() -> List[EndRow]:
    """Return the recorded lines of the final rule."""
    return read_final_rows(RESULTS, EndRow)


def count_classes(rows: Sequence[EndRow]) -> List[List[Tuple[int, int]]]:
    """Return the wrong winners and all winners, by class of P(best), then of the lead."""
    counts = np.zeros((len(PROB_LIMITS) + 1, len(LEAD_LIMITS) + 1, 2), dtype=int)
    for row in rows:
        if row.prob >= 0:
            counts[row.prob, row.lead] += row.wrong, row.selections
    return [[(int(wrong), int(number)) for wrong, number in line] for line in counts]


def _texts(limits: Sequence[float]) -> List[str]:
    between = [f"{low:g} to {high:g}" for low, high in pairwise(limits)]
    return [f"below {limits[0]:g}", *between, f"above {limits[-1]:g}"]


def class_table(rows: Sequence[EndRow]) -> List[Tuple[str, ...]]:
    """Return a row for each class of a winner: what is quoted, and the share of wrong winners in both sets."""
    table: List[Tuple[str, ...]] = [
        ("P(best)", "lead, sds", "quoted", *(SETS[name].title for name in ("tuned", "opened")))
    ]
    for prob, prob_text in enumerate(_texts(PROB_LIMITS)):
        for lead, lead_text in enumerate(_texts(LEAD_LIMITS)):
            quoted = CLASS_ERRORS[prob][lead]
            cells = [
                _share([r for r in rows if (r.set, r.prob, r.lead) == (s, prob, lead)]) for s in ("tuned", "opened")
            ]
            table.append((prob_text, lead_text, f"{quoted.wrong / max(quoted.winners, 1):.3f}", *cells))
    return table


def _share(rows: Sequence[EndRow]) -> str:
    """Return the share of wrong ends, with its interval, and their number."""
    number = sum(row.selections for row in rows)
    if not number:
        return "-"
    share = sum(row.wrong for row in rows) / number
    return f"{share_text(share, interval(rows, 'wrong', 'selections'))} of {number:,}"


def verdict_table(rows: Sequence[EndRow]) -> List[Tuple[str, ...]]:
    """Return a row for each set: how often each end comes, and how often it is wrong."""
    headings = (
        "problems",
        "selections",
        "best",
        "wrong",
        "equal",
        "wrong",
        "open",
        "first two equal, of those without a best",
        "wrong",
        "asked",
    )
    table: List[Tuple[str, ...]] = [headings]
    for name in ("tuned", "opened"):
        own = [row for row in rows if row.set == name]
        by_verdict = {verdict: [row for row in own if row.verdict == verdict] for verdict in ("best", "equal", "open")}
        numbers = {verdict: sum(row.selections for row in found) for verdict, found in by_verdict.items()}
        total, without = sum(numbers.values()), [*by_verdict["equal"], *by_verdict["open"]]
        num_pairs = sum(row.pairs for row in without)
        shares = {verdict: f"{number / total:.3f}" for verdict, number in numbers.items()}
        table.append(
            (
                SETS[name].title,
                f"{total:,}",
                shares["best"],
                _share(by_verdict["best"]),
                shares["equal"],
                _share(by_verdict["equal"]),
                shares["open"],
                f"{num_pairs / sum(row.selections for row in without):.3f}",
                f"{sum(row.wrong_pairs for row in without)} of {num_pairs:,}",
                f"{sum(row.asked for row in own) / total:.3f}",
            )
        )
    return table


def with_tables(page: str) -> str:
    """Return the page with the tables of all recorded lines of the final rule."""
    tables = {"classes": class_table, "verdicts": verdict_table}
    return replace_tables(page, TABLE_PATTERN, lambda match: tables[match[2]](read_ends()))


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=("tuned", "opened"), default="tuned", help="problems to simulate")
    parser.add_argument("--selections", type=int, default=24, help="selections of each problem")
    parser.add_argument("--scores", type=Path, help="another file of problems")
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    add_record_options(parser, RESULTS)
    args = parser.parse_args(arguments)
    if args.pool:
        show(f"By class of P(best), then of the lead, wrong winners and all: {count_classes(read_ends())}")
        return write_tables([PAGE], with_tables)
    seed, rule = start_call(args.seed), rule_id()
    problems = read_problems(args.scores or SETS[args.set].scores)
    with ProcessPoolExecutor(args.processes) as pool:
        groups = group_problems(problems, args.selections, seed)
        futures = [pool.submit(judge_ends, group, args.selections) for group in groups]
        ends = [end for future in futures for end in future.result()]
    rows = list(count_ends(ends, rule=rule, set_name=args.set, seed=seed))
    append_rows(rows, args.results)
    for verdict in ("best", "equal", "open"):
        found = [row for row in rows if row.verdict == verdict]
        show(f"{verdict}: {sum(row.selections for row in found)}, {sum(row.wrong for row in found)} wrong")


if __name__ == "__main__":
    main()
