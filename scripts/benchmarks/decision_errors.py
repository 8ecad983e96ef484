"""How often a decision over several data sets, a gate and tiers err, on real scores that are drawn with replacement.

    OMP_NUM_THREADS=1 python scripts/benchmarks/decision_errors.py --selections 1000

A selection over data sets draws a list of published tables of one source, whose candidates are the same. Their scores
have one unit, or else each table is divided by its run-to-run sd over all published scores, which is known beforehand.
Every call draws a new seed. With `--record`, it appends a line for each cell to `results/decision_errors.csv`.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import numpy as np
from common import RESULTS, append_rows, group_by, make_parser, print_table, rule_id, start_call
from published_scores import Problem, read_problems
from real_results import SETS, TUNED
from scipy import stats

from fiesta_allennlp.choosing.probability.batch import NUM_STARTS, Batch, Rules, allowed_error, gives_up, look
from fiesta_allennlp.choosing.probability.leads import TaskModel
from fiesta_allennlp.choosing.sampling_rules import BETTER, NO_WORSE, OPEN, WORSE, judge_against
from fiesta_allennlp.choosing.t_tests import tell_apart
from fiesta_allennlp.core.choice_settings import CONFIDENCE

PATH = RESULTS / "decision_errors.csv"
NUM_TASKS, MAX_RUNS_EACH, SEEDS_EVERYWHERE = (3, 5), 50, 10
MAX_SD_RATIO = 4.0
SELECTIONS_AT_ONCE = 100


@dataclass(frozen=True)
class Row:
    """A cell: `number` selections with `runs` on average, the `named` and the `wrong` among these, those wrong by over
    a quarter of a sd, and those of which leaving out one task names another.

    Of gates, `named` have a verdict, `by_quarter` are called better, and in `changed` a later look says the opposite.
    Of tiers, `named` are the pairs that are told apart, `by_quarter` all pairs, and `changed` the tables with such a
    pair.
    """

    rule: str
    seed: int
    part: str
    source: str
    setting: str
    procedure: str
    number: int
    runs: float
    named: int
    wrong: int
    by_quarter: int
    changed: int

    @property
    def cells(self) -> Tuple[object, ...]:
        """One text for each of `HEADINGS`."""
        named, by_quarter, changed = (f"{n / self.number:.3f}" for n in (self.named, self.by_quarter, self.changed))
        shares = named, f"{self.wrong / max(self.named, 1):.3f}", by_quarter, changed
        return self.part, self.source, self.setting, self.procedure, f"{self.number:,}", f"{self.runs:.1f}", *shares


HEADINGS = ("part", "source", "setting", "procedure", "selections", "runs", "named", "wrong", "by quarter", "changed")


def choose_in_turn(variances: np.ndarray, own_units: np.ndarray, other_units: np.ndarray) -> np.ndarray:
    return np.asarray(own_units.argmin(axis=1))


@dataclass(frozen=True, eq=False)
class TaskList:
    """Tables of one source with the same candidates. `scales` divide their scores."""

    problems: Sequence[Problem]
    scales: np.ndarray

    def numbers(self, length: int, rng: np.random.Generator) -> np.ndarray:
        """Draw scores. Shape: `(num_candidates, num_tasks, length)`."""
        columns = []
        for problem, scale in zip(self.problems, self.scales, strict=True):
            scores = np.stack([values[: min(map(len, problem.scores.values()))] for values in problem.scores.values()])
            rows = rng.integers(scores.shape[1], size=(1 if problem.paired else len(scores), length))
            columns.append(np.take_along_axis(scores, np.broadcast_to(rows, (len(scores), length)), 1) / scale)
        return np.stack(columns, axis=1)

    @property
    def means(self) -> np.ndarray:
        """The true mean on each task. Shape: `(num_candidates, num_tasks)`."""
        means = [list(problem.true_means().values()) for problem in self.problems]
        return np.array(means).T / self.scales

    @property
    def sd(self) -> float:
        """The run-to-run sd of a typical table, by root mean square."""
        return float(np.sqrt(np.mean((np.array([problem.sd for problem in self.problems]) / self.scales) ** 2)))


def draw_list(problems: Sequence[Problem], number: int, is_scaled: bool, rng: np.random.Generator) -> TaskList:
    """Draw a list of tables. Without scales, their sds differ by at most 4 times."""
    while True:
        chosen = [problems[index] for index in rng.permutation(len(problems))[:number]]
        sds = np.array([problem.sd for problem in chosen])
        if is_scaled or sds.max() <= MAX_SD_RATIO * sds.min():
            return TaskList(chosen, sds if is_scaled else np.ones(number))


def units_of(is_paired: bool, shape: Tuple[int, ...]) -> np.ndarray:
    """Shape: `(num_candidates * num_tasks, length)`."""
    num_candidates, num_tasks, length = shape
    units = np.broadcast_to(np.arange(length), shape)
    if not is_paired:
        units = units * num_candidates + np.arange(num_candidates)[:, None, None]
    return units.reshape(num_candidates * num_tasks, length)


@dataclass(frozen=True, eq=False)
class Ended:
    """The ends of selections: the leader, whether it is named, and runs. Shape of each: `(num_selections,)`."""

    leader: np.ndarray
    is_named: np.ndarray
    runs: np.ndarray


def select(numbers: np.ndarray, is_paired: bool, **options: Any) -> Ended:
    """Select by the rules. Shape of `numbers`: `(num_selections, num_candidates, num_tasks, length)`."""
    shape = numbers.shape
    rules = Rules(CONFIDENCE, MAX_RUNS_EACH * shape[1] * shape[2], num_tasks=shape[2], **options)
    flat = numbers.reshape(shape[0], shape[1] * shape[2], shape[3])
    ends = Batch(flat, np.broadcast_to(units_of(is_paired, shape[1:]), flat.shape), rules).run()
    return Ended(ends.leader, ends.is_named, ends.num_runs.sum(axis=1))


def complete_tables(numbers: np.ndarray, is_paired: bool) -> np.ndarray:
    """Return tables of 10 units of everybody on every task. Shape: as `look` takes them."""
    first = numbers[..., :SEEDS_EVERYWHERE]
    num_selections, num_candidates, num_tasks, num_units = first.shape
    units = units_of(is_paired, first.shape[1:])
    table = np.full((num_selections, num_candidates * num_tasks, units.max() + 1), np.nan)
    table[:, np.arange(len(units))[:, None], units] = first.reshape(num_selections, len(units), num_units)
    return table


def run_everything(numbers: np.ndarray, is_paired: bool) -> Ended:
    """Run 10 seeds of everybody on every task, and name a leader at the confidence."""
    num_selections, num_candidates, num_tasks, _ = numbers.shape
    table, is_open = complete_tables(numbers, is_paired), np.ones((num_selections, num_candidates), dtype=bool)
    state = look(table, is_open, np.zeros(num_selections), Rules(CONFIDENCE, 0, num_tasks=num_tasks))
    runs = np.full(num_selections, num_candidates * num_tasks * SEEDS_EVERYWHERE)
    return Ended(state.leader, 1 - state.prob <= 1 - CONFIDENCE, runs)


def leaders_without(numbers: np.ndarray, is_paired: bool) -> np.ndarray:
    """Return who leads 10 seeds everywhere without each task. Shape: `(num_selections, num_tasks)`."""
    num_tasks, table = numbers.shape[2], complete_tables(numbers, is_paired)
    parts = [table[:, task::num_tasks] for task in range(num_tasks)]
    others = (parts[:task] + parts[task + 1 :] for task in range(num_tasks))
    return np.stack([TaskModel.from_numbers(tasks).find_leader() for tasks in others], axis=1)


PROCEDURES: Dict[str, Callable[[np.ndarray, bool], Ended]] = {
    "data sets in turn": lambda numbers, is_paired: select(numbers, is_paired, choose_task=choose_in_turn),
    "by variance": select,
    "10 seeds everywhere": run_everything,
}


def measure_lists(
    problems: Sequence[Problem], number: int, num_selections: int, seed: int, source: str, setting: str
) -> Iterator[Row]:
    """Measure the procedures on lists of so many tables of a source, on the same draws."""
    rng, is_paired = np.random.default_rng(seed), problems[0].paired
    columns: Dict[str, List[np.ndarray]] = {name: [] for name in PROCEDURES}
    for start in range(0, num_selections, SELECTIONS_AT_ONCE):
        size = min(SELECTIONS_AT_ONCE, num_selections - start)
        lists = [draw_list(problems, number, setting.endswith("scaled"), rng) for _ in range(size)]
        numbers = np.stack([each.numbers(4 * MAX_RUNS_EACH * number, rng) for each in lists])
        truth = np.stack([each.means.mean(axis=1) for each in lists])
        without = leaders_without(numbers, is_paired)
        for name, procedure in PROCEDURES.items():
            ended = procedure(numbers, is_paired)
            losses = truth.max(axis=1) - truth[np.arange(size), ended.leader]
            losses /= np.array([each.sd for each in lists])
            is_wrong = ended.is_named & (losses > 1e-9)
            changed = (without != ended.leader[:, None]).any(axis=1)
            columns[name].append(np.stack([ended.runs, ended.is_named, is_wrong, is_wrong & (losses > 0.25), changed]))
    for name, parts in columns.items():
        runs, *counts = np.concatenate(parts, axis=1)
        sums = (int(count.sum()) for count in counts)
        yield Row(rule_id(), seed, "data sets", source, setting, name, len(runs), float(runs.mean()), *sums)


def draw_pairs(problems: Sequence[Problem], number: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the runs of a published candidate twice, centred, in its sds: a baseline and a change that changes nothing.
    Shape: `(number, 2, MAX_RUNS_EACH)`."""
    runs = [values for problem in problems for values in problem.scores.values() if values.std() > 0]
    columns = []
    for _ in range(number):
        values = runs[rng.integers(len(runs))]
        columns.append((rng.choice(values, size=(2, MAX_RUNS_EACH)) - values.mean()) / values.std(ddof=1))
    return np.stack(columns)


def judge_sequences(scores: np.ndarray, drop: float, is_gate: bool) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first verdict of each sequence of runs, the runs it takes, and whether a later look says the opposite:
    of a gate, or by the two means alone. Shape of each: `(number,)`."""
    number = len(scores)
    verdict, runs = np.full(number, OPEN, dtype="U8"), np.full(number, 2 * MAX_RUNS_EACH)
    flips, is_over = np.zeros((2, number), dtype=bool)
    for num_runs in range(2 * NUM_STARTS, 2 * MAX_RUNS_EACH + 1):
        counts = (num_runs + 1) // 2, num_runs // 2
        table = np.full((number, 2, num_runs), np.nan)
        table[:, 0, : counts[0]], table[:, 1, counts[0] :] = scores[:, 0, : counts[0]], scores[:, 1, : counts[1]]
        leads = TaskModel.from_numbers([table]).leads(np.zeros(number, dtype=int))
        allowed = float(allowed_error(np.array(counts[1]), CONFIDENCE)) if is_gate else 0.5
        look_verdict = judge_against(leads, drop, np.full((number, 2), allowed))[:, 1]
        is_new = ~is_over & (look_verdict != OPEN)
        verdict[is_new], runs[is_new] = look_verdict[is_new], num_runs
        flips |= is_over & (look_verdict != OPEN) & ((look_verdict == WORSE) != (verdict == WORSE)) & (verdict != OPEN)
        is_over |= is_new
        if is_gate:
            facts = {"margin": np.full(number, -drop), "room": np.full(number, 2 * MAX_RUNS_EACH - num_runs)}
            rival, num_units = np.ones(number, dtype=int), np.tile(counts, (number, 1))
            is_hopeless = ~is_over & gives_up(leads, rival, num_units, confidence=CONFIDENCE, **facts)
            runs[is_hopeless] = num_runs
            is_over |= is_hopeless
    return verdict, runs, flips


def measure_gates(problems: Sequence[Problem], number: int, seed: int) -> Iterator[Row]:
    """Measure gates whose candidate is as good as the baseline, worse by the drop, or by twice the drop."""
    rng = np.random.default_rng(seed)
    for drop in (0.5, 1.0):
        pairs = draw_pairs(problems, number, rng)
        for times in (0, 1, 2):
            scores = pairs - np.array([0.0, times * drop])[:, None]
            for name, is_gate in (("gate", True), ("means alone", False)):
                verdict, runs, flips = judge_sequences(scores, drop, is_gate)
                is_wrong = (verdict == WORSE) if times == 0 else (verdict == BETTER) | (verdict == NO_WORSE)
                counts = (verdict != OPEN), is_wrong, (verdict == BETTER), flips
                setting = f"drop of {drop:g} sd, true drop {times * drop:g}"
                sums = (int(each.sum()) for each in counts)
                yield Row(rule_id(), seed, "gate", "all", setting, name, number, float(runs.mean()), *sums)


def tails_of_tests(scores: np.ndarray, is_paired: bool) -> np.ndarray:
    """Return the one-sided p-values of t-tests of all pairs, paired or Welch's. Shape: `(num_candidates,) * 2`."""
    tails = np.full((len(scores), len(scores)), 0.5)
    for i, j in permutations(range(len(scores)), 2):
        if (scores[i] - scores[j]).std() > 1e-12:
            pair: Any = (scores[i], scores[j])
            tails[i, j] = (
                stats.ttest_rel(*pair, alternative="greater")
                if is_paired
                else stats.ttest_ind(*pair, equal_var=False, alternative="greater")
            ).pvalue
    return tails


def measure_tiers(problems: Sequence[Problem], number: int, seed: int) -> Iterator[Row]:
    """Count pairs that are told apart by 10 units of each candidate: with the published means, and with equal ones."""
    rng = np.random.default_rng(seed)
    counts: Dict[Tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(5))
    for _ in range(number):
        problem = problems[rng.integers(len(problems))]
        listed = TaskList([problem], np.ones(1))
        numbers, means = listed.numbers(SEEDS_EVERYWHERE, rng)[:, 0], listed.means[:, 0]
        settings = ("published means", numbers, means), ("equal means", numbers - means[:, None], means * 0)
        for setting, scores, truth in settings:
            model = TaskModel.from_numbers([complete_tables(scores[None, :, None], problem.paired)])
            leads = np.array([model.leads(np.array([index])).tails()[0] for index in range(len(scores))])
            tests = tails_of_tests(scores, problem.paired)
            is_behind = truth[:, None] < truth - 1e-12
            num_pairs = len(scores) * (len(scores) - 1) / 2
            for name, tails in (("tiers", leads), ("t-tests, Holm", tests), ("t-tests alone", tests)):
                is_small = np.minimum(tails, 1 - tails) < (1 - CONFIDENCE) / 2
                apart = is_small if name == "t-tests alone" else tell_apart(tails, 1 - CONFIDENCE)
                np.fill_diagonal(apart, False)
                is_wrong = apart & (tails < 0.5) & is_behind
                counts[setting, name] += (scores.size, apart.sum() / 2, is_wrong.sum(), num_pairs, apart.any())
    for key, (runs, *sums) in counts.items():
        yield Row(rule_id(), seed, "tiers", "all", *key, number, runs / number, *map(int, sums))


def lists_of_sources(problems: Sequence[Problem]) -> Iterator[Tuple[str, List[Problem]]]:
    """Yield each source with the tables of its most frequent candidates."""
    ordered = [replace(problem, scores=dict(sorted(problem.scores.items()))) for problem in problems]
    for source in ("ucr", "automl", "recycling", "tser"):
        own = (problem for problem in ordered if problem.source == source)
        yield source, max(group_by(own, lambda problem: tuple(problem.scores)).values(), key=len)


def measure(problems: Sequence[Problem], only: str, number: int, seed: int) -> Iterator[List[Row]]:
    """Yield the rows of each part and source whose name matches."""
    if re.search(only, "gate"):
        yield list(measure_gates(problems, number, seed))
    if re.search(only, "tiers"):
        yield list(measure_tiers(problems, number, seed))
    for source, tables in lists_of_sources(problems):
        for num_tasks in NUM_TASKS if re.search(only, source) else ():
            setting = f"{num_tasks}, scaled" if source in ("tser", "automl") else f"{num_tasks}"
            yield list(measure_lists(tables, num_tasks, number, seed, source, setting))


def main() -> None:
    parser = make_parser(__doc__, only="parts (gate, tiers) or sources whose name")
    parser.add_argument("--selections", type=int, default=1000, help="selections of each cell")
    parser.add_argument("--seed", type=int, help="repeat a recorded call, instead of a new seed")
    parser.add_argument("--record", action="store_true", help="append the lines to the results")
    args = parser.parse_args()
    seed = start_call(args.seed)
    problems = read_problems(SETS[TUNED].scores)
    for new in measure(problems, args.only, args.selections, seed):
        print_table(HEADINGS, [row.cells for row in new])
        if args.record:
            append_rows(new, PATH)


if __name__ == "__main__":
    main()
