"""Checks that the rows of a table are runs that can be compared: each has an identity, whatever else varies has a
place, and no score is a summary or in another unit."""

import math
import re
from collections import Counter, defaultdict
from itertools import pairwise
from operator import attrgetter
from typing import Any, DefaultDict, List, Mapping, NamedTuple, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError, join_some
from fiesta_allennlp.core.metrics import Metric, have_two_units
from fiesta_allennlp.selecting.objections import UNITS
from fiesta_allennlp.tables.columns import LARGEST, NAMES, TIME, Roles
from fiesta_allennlp.tables.corrections import Change, TableError, keep_rows, shown_cell, shown_cells
from fiesta_allennlp.tables.run_table import NO_SCORE, RunRow, group_rows
from fiesta_allennlp.tables.table_files import cell_number, cell_order

MAX_SETTINGS = 12
"""The most values of a setting. A column with more numbers is more likely one of items or folds."""

MIN_CROSSED = 0.9
"""The least share of pairs of a candidate and a value with which numbers of two or more digits count as chosen."""

STEP_NAME = re.compile(r"(?i)step|epoch|iter")
REPETITION_NAME = re.compile(r"(?i)(?<![a-z])(seed|run|rep|repeat|repetition|replicate|trial)(?![a-z])")
STATISTIC_NAME = re.compile(
    r"(?i)(?<![a-z])(mean|std|avg|average|median|rank|best|step|epoch|iteration|time|runtime)(?![a-z])"
)
"""Names of numbers that are not settings of a candidate, such as `best_epoch`. `epochs` may be one."""

CURVE_NAME = re.compile(r"(?i)(train(er)?/|_)?(global_?)?(step|epoch|iter|iteration)|(num_)?tokens(_seen)?|checkpoint")
"""Names of what grows while a model is trained. `epochs` may be a setting."""

MIN_RISING = 0.8
"""The least share of rows of a run with a larger step than the row before: a training that starts again goes back."""

SUMMARY_NAME = re.compile(r"(?i)(\w+[ _])?(mean|avg|average|std|stdev)(\W*(of )?(std|stdev|score|\d+)\W*)*")
"""Names of rows that are no run with a seed, on a split or on a task, such as `GLUE avg` and `mean of 3`."""

SET_NAMES = frozenset(("train", "training", "dev", "development", "val", "valid", "validation", "test"))
"""Names of sets, which are no splits of one kind."""


class Factor(NamedTuple):
    """A column without a role that takes several of its repeated `values` within a candidate."""

    column: str
    values: Tuple[str, ...]

    @property
    def is_numeric(self) -> bool:
        return all(cell_number(value) is not None for value in self.values)

    def __str__(self) -> str:
        return f"{shown_cell(self.column)} ({shown_cells(self.values, limit=4)})"


def identify_runs(rows: Sequence[RunRow], roles: Roles, settings: Any) -> List[RunRow]:
    """Return one row for each run. Rows without a score that lack a name are left out, and where neither splits nor
    seeds are known, each row is a run with a number of its own as its seed.

    Raises:
        TableError: if a score lacks a name, or is a mean or sd of others; if a column without a role is a factor; if
            two scores have one identity; if there are two metrics, or two units.
    """
    rows = _complete_rows(rows, roles)
    scored = [row for row in rows if row.is_scored]
    _refuse_summaries(scored, roles)
    _refuse_two_metrics(rows, roles)
    if UNITS.name not in settings.allow:
        _refuse_two_units(scored)
    if factors := find_factors(scored, roles):
        raise TableError(
            f"{rows[0].record.file}: these columns differ within a candidate, but nothing says what they are: "
            f"{join_some(list(map(str, factors)), '; ')}. Put them into the split or the candidate, keep one value, "
            "or ignore them.",
            *_propose_placements(factors, scored, roles),
        )
    rows = _merge_rows(rows, roles)
    _refuse_missing_tasks(rows, roles, getattr(settings, "candidates", None))
    return rows


def _complete_rows(rows: Sequence[RunRow], roles: Roles) -> List[RunRow]:
    """Return the rows that have the names that any row has. Refuse a score without them."""
    kinds = [kind for kind in NAMES if kind == "candidate" or any(map(attrgetter(kind), rows))]
    nameless = [(row, kind) for row in rows for kind in kinds if row.is_scored and not getattr(row, kind)]
    if nameless:
        first, missing = nameless[0]
        lacking = {row.candidate for row, kind in nameless if kind == missing}
        names = list(dict.fromkeys(row.candidate for row in rows if row.candidate and row.candidate not in lacking))
        raise TableError(
            f"{first.place}: '{roles.option_text(missing)}' is empty. Every row with a score needs "
            f"{join_some(list(map(roles.option_text, kinds)))}. Fill it in, or leave the row out.",
            {} if missing == "candidate" else roles.keep("candidate", names),
        )
    return [row for row in rows if all(getattr(row, kind) for kind in kinds)]


def _refuse_summaries(scored: Sequence[RunRow], roles: Roles) -> None:
    """Refuse a seed without a digit among seeds with digits, a split that is not a number among numbers, and a name of
    a mean or the like."""
    for role, find_number in (("seed", re.compile(r"\d").search), ("split", cell_number), ("task", str)):
        by_name = group_rows((row for row in scored if getattr(row, role)), role)
        without_number = [name for name in by_name if find_number(name) is None]
        odd = without_number if 2 * len(without_number) <= len(by_name) else []
        odd += [name for name in by_name if SUMMARY_NAME.fullmatch(name) and len(by_name) > len(odd) + 1]
        if odd:
            raise TableError(
                f"{by_name[odd[0]][0].place}: the {role} is '{odd[0]}' among others, so the row looks like a summary. "
                "Leave such rows out, or rename them.",
                roles.keep(role, [name for name in by_name if name not in odd]),
            )
        if len(by_name) > 1 and SET_NAMES.issuperset(map(str.casefold, by_name)):
            problem = f"{role}s are sets ({shown_cells(by_name)}), but runs are compared on one. Keep one"
            raise TableError(f"{scored[0].record.file}: the {problem}.", *(roles.keep(role, [n]) for n in by_name))
    for column in roles.others if roles.numbered else ():
        names = dict.fromkeys(row.record.name(column) for row in scored)
        kept = [name for name in names if not SUMMARY_NAME.fullmatch(name)]
        num_odd, are_numbers = len(names) - len(kept), None not in map(cell_number, kept)
        if kept and num_odd and (num_odd > 1 or are_numbers):  # else they may be a setting, such as a pooling
            problem = f"some rows of the column '{shown_cell(column)}' look like summaries. Leave them out"
            raise TableError(f"{scored[0].record.file}: {problem}.", keep_rows(column, kept))


def _refuse_two_metrics(rows: Sequence[RunRow], roles: Roles) -> None:
    named = group_rows((row for row in rows if row.metric), "metric")
    first_rows = {Metric.parse(text): own[0] for text, own in reversed(named.items())}
    if len(first_rows) > 1:
        row, first = list(first_rows.values())[-2:]
        raise TableError(
            f"{row.place}: the metric is {row.metric}, but in {first.place} it is {first.metric}. Choose one.",
            *(roles.keep("metric", [text]) for text in list(named)[:3]),
            {"columns": {"metric": ""}},
        )


def _refuse_two_units(scored: Sequence[RunRow]) -> None:
    """Refuse fractions among percents."""
    if have_two_units([row.score for row in scored]):
        percent = next(row for row in scored if row.score > 1)
        fraction = next(row for row in scored if 0 < row.score <= 1)
        raise TableError(
            f"{percent.place}: the score is {percent.score:g}, but in {fraction.place} it is {fraction.score:g}: "
            "percents among fractions? Correct the table. If the scores are right:",
            {"allow": (UNITS.name,)},
        )


def find_factors(scored: Sequence[RunRow], roles: Roles) -> List[Factor]:
    """Return the columns without a role that differ within a candidate and repeat their values, those with the fewest
    values first. A column that every split (or task) has one value of is a property of the split."""
    factors: List[Factor] = []
    for column in roles.others:
        cells = [(row, value) for row in scored if (value := row.record.name(column)) and value[0] != "["]
        counts = Counter(value for _, value in cells)
        if _is_curve(column, cells):
            factors.append(Factor(column, tuple(sorted(counts, key=cell_order))))
            continue
        if len(counts) < 2 or 2 * sum(number for number in counts.values() if number > 1) < len(cells):
            continue
        runs = Counter((row.candidate, value) for row, value in cells)
        if len(runs) == len({name for name, _ in runs}):
            continue
        on_splits = {(row.task + row.split, value) for row, value in cells}
        splits = {split for split, _ in on_splits}
        is_of_split = "" not in splits and len(splits) == len(on_splits) < len(cells)
        if not is_of_split and not _is_measured(counts, runs):
            factors.append(Factor(column, tuple(sorted(counts, key=cell_order))))
    return sorted(factors, key=lambda factor: len(factor.values))


def _is_curve(column: str, cells: Sequence[Tuple[RunRow, str]]) -> bool:
    """Return whether the rows of candidates, which nothing else tells apart, are steps that rise, or fall, from row to
    row."""
    steps: DefaultDict[Any, List[float]] = defaultdict(list)
    for row, value in cells if CURVE_NAME.fullmatch(column) else ():
        steps[row[:4]].append(cell_number(value) or 0.0)
    changes = [later - step for own in steps.values() for step, later in pairwise(own)]
    num_rising, num_falling = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return len(changes) > 2 and max(num_rising, num_falling) >= MIN_RISING * len(changes)


def _is_measured(counts: Mapping[str, int], runs: Mapping[Tuple[str, str], int]) -> bool:
    """Return whether a column holds times, or fractions that look like a rounded measure. A setting has one digit, or
    is crossed with the candidates, or has several runs at each value."""
    if all(map(TIME.fullmatch, counts)):
        return True
    numbers = [cell_number(value) for value in counts]
    if None in numbers or all(float(number or 0).is_integer() for number in numbers):
        return False
    if all(len(f"{number:g}".split("e")[0].replace(".", "").strip("-0")) < 2 for number in numbers):
        return False
    num_candidates = len({name for name, _ in runs})
    num_unrepeated = len({name for (name, _), number in runs.items() if number == 1})
    is_crossed = len(runs) >= MIN_CROSSED * len(counts) * num_candidates and num_candidates > 1
    return not is_crossed and 2 * num_unrepeated >= num_candidates


def _propose_placements(factors: Sequence[Factor], scored: Sequence[RunRow], roles: Roles) -> List[Change]:
    """Return the changes that may be right: the last step of each run, if it has several; or else a place for each
    factor, in which texts may also be data sets; one value of the first factor; and none of them."""
    ignore_all = {"ignore": tuple(factor.column for factor in factors)}
    steps = [f for f in factors if f.is_numeric and (STEP_NAME.search(f.column) or CURVE_NAME.fullmatch(f.column))]
    step = next(iter(steps), None)
    if step is not None:
        last = step.values[-1]
        if _is_curve(step.column, [(row, row.record.name(step.column)) for row in scored]):
            return [{"where": (f"{step.column}={LARGEST}",)}, ignore_all]
        kept = [row for row in scored if row.record.name(step.column) == last]
        rest = [factor for factor in find_factors(kept, roles) if factor.column != step.column]
        runs = {(row[:4], *(row.record.name(factor.column) for factor in rest)) for row in scored}
        if len(runs) < len(scored):
            return [{**keep_rows(step.column, [last]), **_place(rest, roles)}, ignore_all]
    has_tasks = not roles.columns["task"] and not all(factor.is_numeric for factor in factors)
    first = step or factors[0]
    return [
        _place(factors, roles),
        _place(factors, roles, text_role="task") if has_tasks else {},
        keep_rows(first.column, [first.values[-1 if first.is_numeric else 0]]),
        ignore_all,
    ]


def _place(factors: Sequence[Factor], roles: Roles, *, text_role: str = "split") -> Change:
    """Return the change that gives each factor the role that its name and its values suggest, or ignores it."""
    columns: DefaultDict[str, List[str]] = defaultdict(list)
    for factor in factors:
        if not factor.is_numeric:
            role = text_role
        elif REPETITION_NAME.search(factor.column):
            role = "ignore" if roles.columns["seed"] else "seed"
        elif STATISTIC_NAME.search(factor.column):
            role = "ignore"
        else:
            is_split = "fold" in factor.column.casefold() or len(factor.values) > MAX_SETTINGS
            role = "split" if is_split else "candidate"
        columns[role].append(factor.column)
    ignored = tuple(columns.pop("ignore", ()))
    placed = {
        role: "+".join([*(() if role == roles.numbered else roles.columns[role]), *names])
        for role, names in columns.items()
    }
    return {**({"columns": placed} if placed else {}), **({"ignore": ignored} if ignored else {})}


def _merge_rows(rows: Sequence[RunRow], roles: Roles) -> List[RunRow]:
    """Return one row for each identity: of its scored rows the one of the largest step, or else its last row. Without
    seeds, each row is a run with a new seed. Refuse two scores, and rows that are there twice."""
    rows_by_run = group_rows(rows, *NAMES)
    if roles.largest:
        rows_by_run = {run: _keep_largest(same, roles) for run, same in rows_by_run.items()}
    scored = {run: [row for row in same if row.is_scored] for run, same in rows_by_run.items()}
    pairs = [(same[0], row) for same in scored.values() for row in same[1:]]
    differing = [(first, row) for first, row in pairs if row.record.cells != first.record.cells]
    has_splits, has_seeds = any(row.split for row in rows), any(row.seed for row in rows)
    if not roles.largest and not has_seeds and (differing or not has_splits):
        copies = Counter(tuple(row.record.cells.items()) for row in rows if row.is_scored)
        number, *others = {*copies.values()} or {1}
        is_of_items = {row.score for row in rows if row.is_scored} <= {0.0, 1.0}
        if number > 1 and not others and len(rows_by_run) < len(copies) and not is_of_items:
            raise DataError(f"{rows[0].record.file}: every row is there {number} times. Remove the copies.")
        numbers = {run: iter(range(1, len(same) + 1)) for run, same in rows_by_run.items()}
        return [row._replace(seed=str(next(numbers[row[:4]]))) for row in rows]
    if differing:
        raise _repeat_error(*differing[0], roles)
    if pairs:
        first, row = pairs[0]
        raise DataError(f"{row.place}: the same row as in {first.place}. Remove it.")
    kept = {id((scored[run] or same)[-1]) for run, same in rows_by_run.items()}
    return [row for row in rows if id(row) in kept]


def _refuse_missing_tasks(rows: Sequence[RunRow], roles: Roles, awaited: Any) -> None:
    """Refuse a candidate without a run on a task of another one, unless it is one of `--candidates`: `fiesta next`
    proposes its runs."""
    awaits = isinstance(awaited, tuple)
    tasks = dict.fromkeys(row.task for row in rows)
    by_candidate = {name: {row.task for row in own} for name, own in group_rows(rows, "candidate").items()}
    complete = [name for name, own in by_candidate.items() if len(own) == len(tasks) or (awaits and name in awaited)]
    if lacking := tuple(name for name in by_candidate if name not in complete):
        missing = next(task for task in tasks if task not in by_candidate[lacking[0]])
        raise TableError(
            f"{rows[0].record.file}: candidate '{lacking[0]}' has no run on the task '{missing}'. Candidates are "
            "compared by their average over all tasks. Make these runs, or leave out tasks or candidates.",
            roles.keep("task", [task for task in tasks if all(task in own for own in by_candidate.values())]),
            roles.keep("candidate", complete),
            {"candidates": lacking} if awaits else {},
        )


def _keep_largest(rows: Sequence[RunRow], roles: Roles) -> List[RunRow]:
    """Return the ended rows of a run with the largest numbers of `--where COLUMN=last`; all rows if none has ended."""
    ended = [row for row in rows if row.outcome not in (None, NO_SCORE)] or list(rows)
    steps = [[_step_number(row, column) for column in roles.largest] for row in ended] if len(ended) > 1 else [[]]
    largest = max(steps)
    return [row for row, step in zip(ended, steps, strict=True) if step == largest]


def _step_number(row: RunRow, column: str) -> float:
    text = row.record.cells.get(column, "")
    if (number := cell_number(text)) is None and row.is_scored:
        raise DataError(f"{row.place}: --where {column}=last needs numbers but found '{shown_cell(text)}'.")
    return -math.inf if number is None else number


def _repeat_error(earlier: RunRow, row: RunRow, roles: Roles) -> TableError:
    """Return the error of two scores of one run, with the columns in which they differ."""
    identity = "".join(f", {kind} {getattr(row, kind)}" for kind in NAMES[1:] if getattr(row, kind))
    problem = f"{row.place}: candidate '{row.candidate}'{identity} already has a score in {earlier.place}."
    placed = {column for columns in roles.columns.values() for column in columns}
    pairs = {name: (earlier.record.cells.get(name, ""), text) for name, text in row.record.cells.items()}
    differing = [Factor(name, texts) for name, texts in pairs.items() if name not in placed and texts[0] != texts[1]]
    if not differing:
        own_runs = [{"columns": {role: ""}} for role in ("seed", "split") if getattr(row, role)]
        return TableError(f"{problem} Remove one, unless each row is a run of its own.", *own_runs[:1])
    differing.sort(key=lambda factor: factor.is_numeric and any("." in value for value in factor.values))
    column, placement = differing[0].column, _place(differing[:1], roles)
    return TableError(
        f"{problem} They differ in {join_some(list(map(str, differing)), limit=4)}. Say what that is.",
        placement if "columns" in placement else {},
        keep_rows(column, differing[0].values[1:]),
        {"columns": {"seed": "+".join([*roles.columns["seed"], column])}},
    )
