"""Refuses tables that would name a wrong winner, and notes rows that are mixed."""

import re
from collections import Counter, defaultdict
from itertools import chain
from typing import Any, Callable, DefaultDict, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError, escape_invisible
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key, first_similar_pair
from fiesta_allennlp.tables.columns import NUMBERING, STEPS, Columns, Named, text_in, text_in_csv
from fiesta_allennlp.tables.forms import Sheet, cells_of, differing
from fiesta_allennlp.tables.rows import NUMBER, Row, name_of_cell, text_of_cell
from fiesta_allennlp.tables.settings import COLUMNS

SETS = re.compile("(train|dev|val|test|eval|valid|holdout)(ing|ation|uation|elopment)?([ _-]?set)?")
"""The names of sets, as `comparison_key` gives them. Scores on different sets are not scores on random splits."""

SET_WORDS = re.compile(rf"(?<![a-z]){SETS.pattern.partition(')')[0]})")
"""The words in the names of splits that name a set."""

SUMMARY = {"mean", "avg", "average", "median", "std", "stdev", "sd", "sem"}
"""Words in the name of a row or column that summarizes others."""

SUMMARIES = {*SUMMARY, "all", "total", "overall", "count", "min", "max", "best", "mittelwert", "moyenne", "promedio"}
"""The names of rows or columns that summarize others."""

_DATA = (
    "(datasets?|data|tasks?|benchmark|corpus|lang|language|domain|metrics?|measure|variable|tag|filter|subset|set|"
    r"partition|phase|stage)([\W_]name)?"
)
DATA = re.compile(rf"((eval|test|params?|config)[\W_])?{_DATA}")
"""The names, in lower case, of columns in which all runs should be equal: data and metrics."""

MIXED = re.compile(
    rf"(.*[\W_])?{_DATA}|lr|learning_rate|(.*_)?batch_size|optimi[sz]er|dropout|weight_decay|n_?shots?|num_fewshot|"
    r"num_layers|hidden_(size|dim)|(max|num_train)_epochs|.*parentrunid|"
    r"(params?|config|hparams?|args)[\W_](?!(.*[\W_])?(seed|random_state|dir|path|name|id)([\W_].*)?$).*"
)
"""The names, in lower case, of columns in which the runs of a candidate should be equal: data, metrics and settings."""

MAX_VALUES = 20
"""The most values of a column that is taken for a setting, whatever its name."""


def refuse_missing(columns: Columns, position: int, cell: Any, number: int) -> NoReturn:
    """Refuse a row without the name of a candidate, split or seed."""
    text = text_of_cell(cell) if cell == cell else ""
    *names, last = (columns.called(column) for column in COLUMNS[:4] if columns.at[column] is not None)
    raise DataError(
        f"{columns.sheet.where(number)}: '{columns.sheet.columns[position]}' is {ascii(text) if text else 'empty'}. "
        f"Every row needs {', '.join(names)} and {last}. Fill it in, or remove the row."
    )


def refuse_twice(columns: Columns, row: Row, earlier: Row) -> NoReturn:
    """Refuse two scores of one run, and name the columns that could tell them apart."""
    used_names = [columns.called(column) for column in COLUMNS]
    differ = differing(row.sheet, [earlier.number, row.number]) if row.sheet is earlier.sheet else []
    telling = [name for name in differ if name not in used_names]
    split = f", split {row.split}" if row.split else ""
    remedy = "Remove one of the rows."
    if telling:
        value = cells_of(row.sheet, [row.number])[0][row.sheet.columns.index(telling[0])]
        remedy = (
            f"The rows differ in {shorten(', '.join(telling))}. Choose rows, for example with --where "
            f"'{telling[0]}={shorten(text_of_cell(value))}', or map a column that tells runs apart: --columns seed=."
        )
    elif columns.at["seed"] is None:
        remedy = "Add a seed column that tells them apart, or remove one of the rows."
    raise DataError(
        f"{row.where}: candidate '{row.candidate}'{split}{f', seed {row.seed}' if row.seed else ''} already appears in "
        f"{earlier.where}. {remedy}"
    )


def same_names(names: Iterable[str]) -> Optional[Tuple[str, str]]:
    """Return the first two names that look alike or are one number; None if there are none."""
    numbers: Dict[float, str] = {}
    same_number = (
        (earlier, name)
        for name in names
        if NUMBER.fullmatch(name) and (earlier := numbers.setdefault(float(name), name)) != name
    )
    return first_similar_pair(names) or next(same_number, None)


def check_names(rows: Sequence[Row], *, wide: Optional[str]) -> None:
    """Refuse names of candidates and splits that contain invisible characters, that look alike or are one number, and
    splits and seeds that summarize others. So can candidates that are columns of a `wide` table."""
    for what in ("candidate", "split"):
        first = {getattr(row, what): row for row in reversed(rows)}
        for name, row in first.items():
            if escape_invisible(name) != name:
                raise DataError(
                    f"{row.where}: the name '{escape_invisible(name)}' contains an invisible character. Rename it."
                )
        if pair := same_names(first):
            old, new = sorted(pair, key=lambda name: rows.index(first[name]))
            raise DataError(
                f"{first[new].where}: {what} {new!a} and {what} {old!a} in {first[old].where} are one number, or "
                "differ only in case, in blanks or in how accents are encoded. Use one name."
            )
    for row in rows:
        for what, name in (("split", row.split), ("seed", row.seed), ("candidate", row.candidate)):
            if name.isdigit() or (what == "candidate" and wide != what):
                continue
            words = set() if what == "candidate" else set(re.split(r"[\W_]+", name.lower()))
            if words & SUMMARY or name.lower() in SUMMARIES:
                raise DataError(
                    f"{row.where}: the {what} '{name}' looks like a summary of other scores, which would count as one "
                    "more. Remove it, rename it, or list the columns of a wide table: --wide NAME=COLUMN,..."
                )


def drop_set(all_columns: Sequence[Columns]) -> None:
    """Ignore a split column that names only the set that is scored. Refuse several sets."""
    first: Dict[str, str] = {}
    for columns in all_columns:
        position = columns.at["split"]
        if position is None:
            continue
        for number, cells in columns.sheet.lines():
            if (name := name_of_cell(cells[position])) not in first:
                first[name] = columns.sheet.where(number)
    sets = [name for name in first if SETS.fullmatch(comparison_key(name))]
    words = {name: set(SET_WORDS.findall(comparison_key(name))) for name in first}
    named = sets or [name for name in first if words[name]]
    others = [name for name in first if named and name != named[0] and (sets or words[name] - words[named[0]])]
    if others:
        called = next(columns.called("split") for columns in all_columns if columns.at["split"] is not None)
        raise DataError(
            f"{first[others[0]]}: the split is '{others[0]}', but in {first[named[0]]} it is '{named[0]}', which names "
            "a set. Scores on different sets are not scores on random splits. Choose one, for example with --where "
            f"'{called}={named[-1]}', or list the columns of a wide table: --wide split=COLUMN,..."
        )
    for columns in all_columns if sets else ():
        columns.at["split"] = None


def refuse_steps(sheet: Sheet, candidate: Optional[int], score: Optional[int]) -> None:
    """Refuse rows that are steps of a run where each row would count as a run. Without a column of candidates, all rows
    are of one run."""
    positions = [position for position, name in enumerate(sheet.columns) if STEPS.fullmatch(name.lower())]
    first: Dict[Tuple[int, str], Tuple[int, str]] = {}
    for number, cells in sheet.lines() if positions else ():
        if score is not None and not text_of_cell(cells[score]):
            continue
        for position in positions:
            step, run = name_of_cell(cells[position]), (position, "" if candidate is None else str(cells[candidate]))
            earlier, earlier_step = first.setdefault(run, (number, step))
            if step != earlier_step and NUMBER.fullmatch(step):
                called = sheet.columns[position]
                raise DataError(
                    f"{sheet.where(number)}: '{called}' is {step}, but in {sheet.where(earlier)} it is {earlier_step}. "
                    f"If the rows are steps of one run, add --where {called}=last. If each row is a run of its own, "
                    "name a column that tells runs apart with --columns seed=NAME, or remove this column."
                )


def notes_on_mixed_runs(
    all_columns: Sequence[Columns], rows: Sequence[Row], is_filtered: Callable[[str], bool], *, has_splits: bool
) -> List[str]:
    """Return a note if all runs differ in their data or metric, or those of a candidate in their settings or length.

    On official splits, a column is a setting, whatever its name, if each value has equally many rows of each candidate.
    """
    kept = {(id(row.sheet), row.number) for row in rows if row.outcome is not None}
    counts: Dict[str, DefaultDict[str, "Counter[str]"]] = {}
    for columns in all_columns:
        sheet, used = columns.sheet, {*columns.at.values(), *columns.last}
        candidates = Named(sheet, columns.at["candidate"], text_in_csv if sheet.is_text else text_in)
        keys = {p: comparison_key(name) for p, name in enumerate(sheet.columns) if p not in used}
        free = {p for p, key in keys.items() if key and not is_filtered(key)}
        data = {p for p in free if columns.last and DATA.fullmatch(keys[p])}
        for number, cells in sheet.lines():
            candidate = candidates.name(cells)
            for position in tuple(free if (id(sheet), number) in kept else data):
                if (value := name_of_cell(cells[position])) or keys[position].endswith("parentrunid"):
                    by_candidate = counts.setdefault(sheet.columns[position], defaultdict(Counter))
                    by_candidate[candidate][value] += 1
                    if len(by_candidate[candidate]) > MAX_VALUES:
                        free.discard(position)
    least = 1 if any(columns.numbers_rows for columns in all_columns) else 2
    for called, by_candidate in counts.items():
        key, first, mixed = comparison_key(called), next(iter(by_candidate.values())), list(by_candidate)
        is_crossed = not has_splits and len(mixed) > 1 and 1 < len(first) <= MAX_VALUES and min(first.values()) >= least
        if NUMBERING.fullmatch(key):
            mixed = [name for name, values in by_candidate.items() if STEPS.fullmatch(key) and _are_far_apart(values)]
        elif not DATA.fullmatch(key) and not (is_crossed and all(first == other for other in by_candidate.values())):
            mixed = [name for name, values in by_candidate.items() if MIXED.fullmatch(key) and len(values) > 1]
        texts = list(dict.fromkeys(chain.from_iterable(by_candidate[name] for name in mixed)))
        if len(texts) > 1:
            mapping = (
                f" If it tells runs apart, map it with --columns split={called} or seed={called}." if least == 1 else ""
            )
            return [
                f"The runs of {shorten(', '.join(mixed))} differ in '{called}': {shorten(', '.join(texts))}. Compare "
                f"runs of one kind: add --where '{called}={texts[0]}'.{mapping}"
            ]
    return []


def _are_far_apart(steps: Iterable[str]) -> bool:
    """Return whether the last steps of some runs are at least twice as large as those of others."""
    numbers = [float(step) for step in steps if NUMBER.fullmatch(step)]
    return bool(numbers) and 0 < 2 * min(numbers) <= max(numbers)
