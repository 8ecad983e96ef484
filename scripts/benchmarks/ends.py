"""Count the three ends of selections among real models: how often a best one is wrong, and two equal ones are not.

    OMP_NUM_THREADS=1 python scripts/benchmarks/ends.py --set opened --selections 24
    python scripts/benchmarks/ends.py --pool

The problems and their draws are those of `real_problems.py`. The end of each selection is judged by the function that
`fiesta select` uses. A call appends a line for each data set, end and class of P(best) and lead to `results/ends.csv`.
`--pool` writes the tables of the page, and prints the counts that `fiesta_allennlp` quotes beside a winner. A winner is
wrong if the true mean of another candidate is better. Candidates are called equal wrongly if the true means of two of
them are more than half a run-to-run sd apart.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple

import numpy as np
from common import (
    BENCHMARKS,
    RESULTS,
    PageTables,
    add_record_options,
    add_up,
    append_rows,
    group_by,
    make_parser,
    read_final_rows,
    rule_id,
    show,
    start_call,
)
from published_scores import TIE, read_problems
from real_problems import SeededProblem, group_problems
from real_results import OPENED, SETS, TUNED, share_with_interval

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

PATH = RESULTS / "ends.csv"
ANSWERED = (UNSEEDED.name, UNITS.name)
VERDICTS = ("best", "equal", "open")


@dataclass(frozen=True)
class EndRow:
    """The counts of one data set, end and class in one call. `prob` and `lead` are the numbers of the classes of a
    winner, else -1. `pairs` counts ends without a winner whose first two candidates are equal with the target
    probability, and `wrong_pairs` those that are not. `asked` counts selections whose scores raise a question, which is
    taken as answered."""

    rule: str
    set: str
    data_set: str
    seed: int
    verdict: str
    prob: int
    lead: int
    selections: int
    wrong: int
    pairs: int
    wrong_pairs: int
    asked: int


@dataclass(frozen=True)
class End:
    """The end of one selection: the fields of `EndRow` that tell its line, and what it adds to the others."""

    key: Tuple[str, str, int, int]
    wrong: bool
    pairs: bool
    wrong_pairs: bool
    asked: bool


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
        result = Result.from_decision(history, decision, UNNAMED)
        assert decision.posterior is not None
        place, losses = (-1, -1), [problem.losses[name] for name in result.best_set]
        is_pair = is_wrong_pair = False
        if result.best is not None:
            place = class_of(decision) or place
            is_wrong = losses[0] > TIE
        else:
            first, second = sorted(decision.prob_best, key=lambda name: -decision.prob_best[name])[:2]
            chance = prob_equal(decision.posterior, [list(decision.prob_best).index(name) for name in (first, second)])
            is_pair = (chance or 0) >= CONFIDENCE
            is_wrong_pair = is_pair and abs(problem.losses[first] - problem.losses[second]) > EQUAL_SDS
            is_wrong = max(losses) - min(losses) > EQUAL_SDS
        key = (problem.data_set, result.verdict, *place)
        yield End(key, is_wrong, is_pair, is_wrong_pair, any(find_questions(history, ())))


def count_ends(ends: Sequence[End], *, set_name: str, seed: int) -> Iterator[EndRow]:
    """Add up ends by data set, verdict and class."""
    for (data_set, verdict, prob, lead), group in sorted(group_by(ends, lambda end: end.key).items()):
        sums = add_up(group, "wrong", "pairs", "wrong_pairs", "asked")
        yield EndRow(rule_id(), set_name, data_set, seed, verdict, prob, lead, len(group), *sums)


def read_ends() -> List[EndRow]:
    """Return the recorded lines of the final rule."""
    return read_final_rows(PATH, EndRow)


def count_classes(rows: Sequence[EndRow]) -> List[List[Tuple[int, int]]]:
    """Return the wrong winners and all winners, by class of P(best), then of the lead."""
    counts = np.zeros((len(PROB_LIMITS) + 1, len(LEAD_LIMITS) + 1, 2), dtype=int)
    for row in rows:
        if row.prob >= 0:
            counts[row.prob, row.lead] += row.wrong, row.selections
    return [[(wrong, number) for wrong, number in line] for line in counts.tolist()]


def _texts(limits: Sequence[float]) -> List[str]:
    between = [f"{low:g} to {high:g}" for low, high in pairwise(limits)]
    return [f"below {limits[0]:g}", *between, f"above {limits[-1]:g}"]


def class_table(rows: Sequence[EndRow]) -> List[Tuple[str, ...]]:
    """Return a row for each class of a winner: what is quoted, and the share of wrong winners in both sets."""
    table: List[Tuple[str, ...]] = [("P(best)", "lead, sds", "quoted", *(SETS[name].title for name in (TUNED, OPENED)))]
    groups = group_by(rows, lambda row: (row.set, row.prob, row.lead))
    for prob, prob_text in enumerate(_texts(PROB_LIMITS)):
        for lead, lead_text in enumerate(_texts(LEAD_LIMITS)):
            quoted = CLASS_ERRORS[prob][lead]
            cells = (_share(groups.get((name, prob, lead), [])) for name in (TUNED, OPENED))
            table.append((prob_text, lead_text, f"{quoted.wrong / max(quoted.winners, 1):.3f}", *cells))
    return table


def _share(rows: Sequence[EndRow]) -> str:
    """Return the share of wrong ends, with its interval, and their number."""
    return f"{share_with_interval(rows, 'wrong', 'selections')} of {sum(row.selections for row in rows):,}"


def verdict_table(rows: Sequence[EndRow]) -> List[Tuple[str, ...]]:
    """Return a row for each set: how often each end comes, and how often it is wrong."""
    pairs = "first two equal, of those without a best"
    headings = ("problems", "selections", "best", "wrong", "equal", "wrong", "open", pairs, "wrong", "asked")
    table: List[Tuple[str, ...]] = [headings]
    for name in (TUNED, OPENED):
        own = [row for row in rows if row.set == name]
        if not own:
            return [headings]
        total, asked = add_up(own, "selections", "asked")
        ends = {verdict: [row for row in own if row.verdict == verdict] for verdict in VERDICTS}
        best, equal, opened = (f"{sum(row.selections for row in group) / total:.3f}" for group in ends.values())
        without, num_pairs, wrong_pairs = add_up([*ends["equal"], *ends["open"]], "selections", "pairs", "wrong_pairs")
        shares = best, _share(ends["best"]), equal, _share(ends["equal"]), opened, f"{num_pairs / without:.3f}"
        row = SETS[name].title, f"{total:,}", *shares, f"{wrong_pairs} of {num_pairs:,}", f"{asked / total:.3f}"
        table.append(row)
    return table


TABLES = PageTables(
    r"ends: (?P<kind>classes|verdicts)",
    lambda match: {"classes": class_table, "verdicts": verdict_table}[match["kind"]](read_ends()),
    [BENCHMARKS],
)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=(TUNED, OPENED), default=TUNED, help="problems to simulate")
    parser.add_argument("--selections", type=int, default=24, help="selections of each problem")
    parser.add_argument("--scores", type=Path, help="another file of problems")
    add_record_options(parser, PATH)
    args = parser.parse_args()
    if args.pool:
        show(f"By class of P(best), then of the lead, wrong winners and all: {count_classes(read_ends())}")
        return TABLES.write()
    seed = start_call(args.seed)
    problems = read_problems(args.scores or SETS[args.set].scores)
    with ProcessPoolExecutor() as pool:
        groups = group_problems(problems, args.selections, seed)
        futures = [pool.submit(judge_ends, group, args.selections) for group in groups]
        ends = [end for future in futures for end in future.result()]
    rows = list(count_ends(ends, set_name=args.set, seed=seed))
    append_rows(rows, args.results)
    for verdict in VERDICTS:
        group = [row for row in rows if row.verdict == verdict]
        show(f"{verdict}: {sum(row.selections for row in group)}, {sum(row.wrong for row in group)} wrong")


if __name__ == "__main__":
    main()
