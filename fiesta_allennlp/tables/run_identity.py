"""Checks that the rows of a table are runs that can be compared: each has an identity, whatever else varies has a
place, and no score is a summary or in another unit."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, DefaultDict, Dict, Iterable, List, Mapping, NoReturn, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError, join_some
from fiesta_allennlp.core.settings.metrics import Metric, have_two_units
from fiesta_allennlp.selecting.objections import UNITS
from fiesta_allennlp.tables.columns import Roles, RunRow
from fiesta_allennlp.tables.table_files import cell_name, cell_number, shown_cell, without_lines
from fiesta_allennlp.tables.table_settings import join_names, refusal
from fiesta_allennlp.tables.tasks import refuse_missing_tasks

MAX_SETTINGS = 12
"""The most values of a setting. A column with more numbers is more likely one of items or folds."""

MIN_CROSSED = 0.9
"""The least share of pairs of a candidate and a value with which numbers of two or more digits count as chosen."""

STEP_NAME = re.compile(r"(?i)step|epoch|iter")
REPETITION_NAME = re.compile(r"(?i)seed|run|rep|trial")
TIME = re.compile(r"(\d+ days?,? )?\d+:\d+(:[\d.]+)?|\d{4}-\d\d-\d\d.*")

Identity = Tuple[str, str, str, str]


@dataclass(frozen=True)
class Factor:
    """A column without a role that takes several of its repeated `values` within a candidate."""

    column: str
    values: Tuple[str, ...]

    @property
    def is_numeric(self) -> bool:
        return all(cell_number(value) is not None for value in self.values)

    def __str__(self) -> str:
        return f"{shown_cell(self.column)} ({join_some(list(map(shown_cell, self.values)), limit=4)})"


def identify_runs(rows: Sequence[RunRow], roles: Roles, settings: Any) -> List[RunRow]:
    """Return one row for each run. Rows without a score that lack a name are left out, and where neither splits nor
    seeds are known, each row is a run with a number of its own as its seed.

    Raises:
        DataError: if a score lacks a name, or is a mean or sd of others; if a column without a role is a factor; if two
            scores have one identity; if there are two metrics, or two units.
    """
    rows = _complete_rows(rows, roles, settings)
    _refuse_summaries(rows, roles, settings)
    _refuse_two_metrics(rows, roles, settings)
    if UNITS.name not in settings.allow:
        _refuse_two_units(rows, settings)
    factors = find_factors([row for row in rows if row.is_scored], roles)
    if factors:
        raise refusal(
            settings,
            f"{rows[0].record.file}: these columns differ within a candidate, but nothing says what they are: "
            f"{join_some(list(map(str, factors)), '; ')}. Put them into the split or the candidate, keep one value, "
            "or ignore them.",
            *_propose_placements(factors, rows, roles, settings),
        )
    rows = _merge_rows(rows, roles, settings)
    refuse_missing_tasks(rows, roles, settings)
    return rows


def _propose_placements(
    factors: Sequence[Factor], rows: Sequence[RunRow], roles: Roles, settings: Any
) -> List[Dict[str, Any]]:
    """Return the changes that may be right, by the names and types of the factors: texts belong to the split and
    numbers to the candidate, counts of repetitions are seeds, and of the steps of one run the last one counts. Texts
    may also be data sets."""
    ignore_all = {"ignore": (*settings.ignore, *(factor.column for factor in factors))}
    first = factors[0]
    steps = [factor for factor in factors if factor.is_numeric and STEP_NAME.search(factor.column)]
    if steps:
        step = {"where": (*settings.where, f"{steps[0].column}={steps[0].values[-1]}")}
        scored = [row for row in rows if row.is_scored]
        kept = [row for row in scored if _cell(row, steps[0].column) == steps[0].values[-1]]
        rest = [factor for factor in find_factors(kept, roles) if factor.column != steps[0].column]
        runs = {(row[:4], *(_cell(row, factor.column) for factor in rest)) for row in scored}
        if len(runs) < len(scored):
            return [{**step, **(_place(rest, roles, settings) if rest else {})}, ignore_all]
        return [ignore_all, _place(factors, roles, settings), step]
    condition = f"{first.column}={join_names([first.values[-1 if first.is_numeric else 0]])}"
    has_tasks = any(not factor.is_numeric for factor in factors) and not roles.columns.get("task")
    as_tasks = [_place(factors, roles, settings, text_role="task")] if has_tasks else []
    return [_place(factors, roles, settings), *as_tasks, {"where": (*settings.where, condition)}, ignore_all]


def _place(factors: Sequence[Factor], roles: Roles, settings: Any, *, text_role: str = "split") -> Dict[str, Any]:
    """Return the change that puts each factor of texts into `text_role`, others into split, candidate or seed."""
    names: DefaultDict[str, List[str]] = defaultdict(list)
    for factor in factors:
        is_repetition = factor.is_numeric and REPETITION_NAME.search(factor.column) and not roles.columns["seed"]
        is_split = "fold" in factor.column.casefold() or len(factor.values) > MAX_SETTINGS
        number_role = "seed" if is_repetition else "split" if is_split else "candidate"
        names[number_role if factor.is_numeric else text_role].append(factor.column)
    columns = dict(settings.columns or {})
    for role, own_names in names.items():
        own = () if role == roles.numbered else roles.columns[role]
        columns[role] = "+".join([*own, *own_names])
    return {"columns": columns}


def _cell(row: RunRow, column: str) -> str:
    return cell_name(row.record.cells.get(column, ""))


def find_factors(rows: Sequence[RunRow], roles: Roles) -> List[Factor]:
    """Return the columns without a role that differ within a candidate and repeat their values, those with the fewest
    values first. A column that every split (or task) has one value of is a property of the split."""
    factors: List[Factor] = []
    for column in roles.others:
        pairs = [(row, _cell(row, column)) for row in rows]
        pairs = [(row, value) for row, value in pairs if value and value[0] != "["]
        counts = Counter(value for _, value in pairs)
        if len(counts) < 2 or 2 * sum(number for number in counts.values() if number > 1) < len(pairs):
            continue
        by_candidate = _count(((row.candidate, value) for row, value in pairs))
        if all(len(values) == 1 for values in by_candidate.values()):
            continue
        by_split = _count((f"{row.task}{row.split}", value) for row, value in pairs)
        is_of_split = "" not in by_split and all(len(values) == 1 for values in by_split.values())
        if not (is_of_split and len(by_split) < len(pairs)) and not _is_measured(counts, by_candidate):
            factors.append(Factor(column, tuple(sorted(counts, key=lambda value: (cell_number(value) or 0.0, value)))))
    return sorted(factors, key=lambda factor: len(factor.values))


def _count(pairs: Iterable[Tuple[str, str]]) -> Mapping[str, "Counter[str]"]:
    counts: DefaultDict[str, "Counter[str]"] = defaultdict(Counter)
    for group, value in pairs:
        counts[group][value] += 1
    return counts


def _is_measured(counts: Mapping[str, int], by_candidate: Mapping[str, "Counter[str]"]) -> bool:
    """Return whether a column holds times, or fractions that look like a rounded measure. A setting has one digit, or
    is crossed with the candidates, or has several runs at each value."""
    if all(TIME.fullmatch(value) for value in counts):
        return True
    numbers = [cell_number(value) for value in counts]
    if None in numbers or all(float(number or 0).is_integer() for number in numbers):
        return False
    if all(len(f"{number:g}".split("e")[0].replace(".", "").strip("-0")) < 2 for number in numbers):
        return False
    num_crossed = sum(len(values) for values in by_candidate.values())
    is_crossed = num_crossed >= MIN_CROSSED * len(counts) * len(by_candidate) and len(by_candidate) > 1
    num_repeated = sum(min(values.values()) > 1 for values in by_candidate.values())
    return not is_crossed and 2 * num_repeated <= len(by_candidate)


def _complete_rows(rows: Sequence[RunRow], roles: Roles, settings: Any) -> List[RunRow]:
    """Return the rows that have the names that any row has. Refuse a score without them."""
    kinds = ["candidate", *(kind for kind in ("task", "split", "seed") if any(getattr(row, kind) for row in rows))]
    complete_rows: List[RunRow] = []
    for row in rows:
        missing = next((kind for kind in kinds if not getattr(row, kind)), None)
        if missing is None:
            complete_rows.append(row)
        elif row.is_scored:
            changes = []
            if missing != "candidate" and len(roles.columns["candidate"]) == 1:
                lacking = {other.candidate for other in rows if other.is_scored and not getattr(other, missing)}
                names = list(dict.fromkeys(other.candidate for other in rows if other.candidate not in lacking))
                condition = f"{roles.option_text('candidate')}={join_names(filter(None, names))}"
                changes = [{"where": (*settings.where, condition)}] if names else []
            raise refusal(
                settings,
                f"{row.place}: '{roles.option_text(missing)}' is empty. Every row with a score needs "
                f"{join_some([roles.option_text(kind) for kind in kinds])}. Fill it in, or leave the row out.",
                *changes,
            )
    return complete_rows


def _refuse_summaries(rows: Sequence[RunRow], roles: Roles, settings: Any) -> None:
    """Refuse a seed without a digit among seeds with digits, and a split that is not a number among numbers."""
    for role, find_number in (("seed", re.compile(r"\d").search), ("split", cell_number)):
        first_rows: Dict[str, RunRow] = {}
        for row in rows:
            if row.is_scored and getattr(row, role):
                first_rows.setdefault(getattr(row, role), row)
        odd = [text for text in first_rows if find_number(text) is None]
        names = [text for text in first_rows if text not in odd]
        if odd and len(odd) <= len(names):
            change = {"where": (*settings.where, f"{roles.option_text(role)}={join_names(names)}")}
            raise refusal(
                settings,
                f"{first_rows[odd[0]].place}: the {role} is '{odd[0]}' among numbers, so the row looks like a summary. "
                "Leave such rows out.",
                *([change] if len(roles.columns[role]) == 1 else []),
            )


def _refuse_two_metrics(rows: Sequence[RunRow], roles: Roles, settings: Any) -> None:
    first_rows: Dict[str, RunRow] = {}
    for row in rows:
        if row.metric:
            first_rows.setdefault(row.metric, row)
    by_metric = {Metric.parse(text): row for text, row in reversed(list(first_rows.items()))}
    if len(by_metric) > 1:
        row, first = list(by_metric.values())[-2:]
        column = roles.option_text("metric")
        raise refusal(
            settings,
            f"{row.place}: the metric is {row.metric}, but in {first.place} it is {first.metric}. Choose one.",
            *[{"where": (*settings.where, f"{column}={join_names([text])}")} for text in list(first_rows)[:3]],
            {"columns": {**(settings.columns or {}), "metric": ""}},
        )


def _refuse_two_units(rows: Sequence[RunRow], settings: Any) -> None:
    """Refuse fractions among percents."""
    scored = [(row.outcome, row.place) for row in rows if isinstance(row.outcome, float)]
    if have_two_units([score for score, _ in scored]):
        percent, place = next(pair for pair in scored if pair[0] > 1)
        fraction, other_place = next(pair for pair in scored if pair[0] <= 1)
        raise refusal(
            settings,
            f"{place}: the score is {percent:g}, but in {other_place} it is {fraction:g}: percents among fractions? "
            "Correct the table. If the scores are right:",
            {"allow": (*settings.allow, UNITS.name)},
        )


def _merge_rows(rows: Sequence[RunRow], roles: Roles, settings: Any) -> List[RunRow]:
    """Return one row for each identity: of its scored rows the one of the largest step, or else its last row. Without
    seeds, each row is a run with a new seed. Refuse two scores, and rows that are there twice."""
    rows_by_run: DefaultDict[Identity, List[RunRow]] = defaultdict(list)
    for row in rows:
        rows_by_run[row[:4]].append(row)
    scored = {run: [row for row in same if row.is_scored] for run, same in rows_by_run.items()}
    repeated = {run: _keep_largest(same, roles) for run, same in scored.items() if len(same) > 1}
    differing = [same for same in repeated.values() if any(row.record.cells != same[0].record.cells for row in same)]
    has_splits, has_seeds = any(row.split for row in rows), any(row.seed for row in rows)
    if not roles.largest and not has_seeds and (differing or not has_splits):
        numbers = {run: iter(range(1, len(same) + 1)) for run, same in rows_by_run.items()}
        return [row._replace(seed=str(next(numbers[row[:4]]))) for row in rows]
    if differing:
        first = differing[0][0]
        _refuse_repeat(
            next(row for row in differing[0] if row.record.cells != first.record.cells), first, roles, settings
        )
    twice = [(same[0], row) for same in repeated.values() for row in same[1:]]
    if twice:
        lines = [int(row.record.number[5:]) for _, row in twice if row.record.number.startswith("line ")]
        is_removable = len({row.record.file for _, row in twice}) == 1 and len(lines) == len(twice)
        change = [without_lines(twice[0][0].record.file, lines)] if is_removable else []
        problem = f"{twice[0][1].place}: the same row as in {twice[0][0].place}. Remove it."
        raise refusal(settings, problem, *change)
    kept = {id((repeated.get(run) or scored[run] or same)[-1]) for run, same in rows_by_run.items()}
    return [row for row in rows if id(row) in kept]


def _keep_largest(rows: Sequence[RunRow], roles: Roles) -> List[RunRow]:
    """Return the rows with the largest values of `--where COLUMN=last`; all rows without it."""
    steps: List[List[float]] = []
    for row in rows:
        texts = [row.record.cells.get(column, "") for column in roles.largest]
        steps.append([number for number in map(cell_number, texts) if number is not None])
        if len(steps[-1]) < len(texts):
            name = roles.largest[0]
            raise DataError(f"{row.place}: --where {name}=last needs numbers but found '{shown_cell(texts[0])}'.")
    return [row for row, step in zip(rows, steps, strict=True) if step == max(steps)]


def _refuse_repeat(row: RunRow, earlier: RunRow, roles: Roles, settings: Any) -> NoReturn:
    """Refuse two scores of one run, with the columns in which they differ."""
    columns, names = settings.columns or {}, (*roles.others, *settings.ignore)
    pairs = [(name, (earlier.record.cells.get(name, ""), row.record.cells.get(name, ""))) for name in names]
    differing = [Factor(name, values) for name, values in pairs if values[0] != values[1]]
    identity = "".join(f", {kind} {getattr(row, kind)}" for kind in ("task", "split", "seed") if getattr(row, kind))
    problem = f"{row.place}: candidate '{row.candidate}'{identity} already has a score in {earlier.place}."
    if not differing:
        roles_of_rows = [role for role in ("seed", "split") if getattr(row, role)][:1]
        own_runs = [{"columns": {**columns, role: ""}} for role in roles_of_rows]
        raise refusal(settings, f"{problem} Remove one, unless each row is a run of its own.", *own_runs)
    differing.sort(key=lambda factor: any("." in value for value in factor.values if factor.is_numeric))
    column, value = differing[0].column, differing[0].values[-1]
    shown = join_some(list(map(str, differing)), limit=4)
    changes: List[Dict[str, Any]] = [
        _place(differing[:1], roles, settings),
        {"where": (*settings.where, f"{column}={join_names([value])}")},
        {"columns": {**columns, "seed": "+".join([*roles.columns["seed"], column])}},
    ]
    rest = {"ignore": tuple(name for name in settings.ignore if name != column)} if column in settings.ignore else {}
    message = f"{problem} They differ in {shown}. Say what that is."
    raise refusal(settings, message, *({**change, **rest} for change in changes))
