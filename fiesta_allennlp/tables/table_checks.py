"""Refuses tables that would name a wrong winner, and notes rows that are mixed."""

import re
from collections import Counter, defaultdict
from itertools import chain
from typing import Any, Callable, DefaultDict, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError, escape_invisible
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key, first_similar_pair
from fiesta_allennlp.tables.columns import NUMBERING, STEPS, Columns, NameColumn, parse_csv_name, parse_name
from fiesta_allennlp.tables.forms import Sheet, differing_columns, find_cells
from fiesta_allennlp.tables.rows import NUMBER, RunRow, cell_name, cell_text
from fiesta_allennlp.tables.settings import COLUMNS

SET_NAME = re.compile("(train|dev|val|test|eval|valid|holdout)(ing|ation|uation|elopment)?([ _-]?set)?")
"""The names of sets, as `comparison_key` gives them. Scores on different sets are not scores on random splits."""

SET_WORDS = re.compile(rf"(?<![a-z]){SET_NAME.pattern.partition(')')[0]})")
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

SETTING = re.compile(
    rf"(.*[\W_])?{_DATA}|lr|learning_rate|(.*_)?batch_size|optimi[sz]er|dropout|weight_decay|n_?shots?|num_fewshot|"
    r"num_layers|hidden_(size|dim)|(max|num_train)_epochs|.*parentrunid|"
    r"(params?|config|hparams?|args)[\W_](?!(.*[\W_])?(seed|random_state|dir|path|name|id)([\W_].*)?$).*"
)
"""The names, in lower case, of columns in which the runs of a candidate should be equal: data, metrics and settings."""

MAX_VALUES = 20
"""The most values of a column that is taken for a setting, whatever its name."""


SIMILARITY = "are one number, or differ only in case, in blanks or in how accents are encoded"
"""What `find_similar_names` finds, for messages."""


def refuse_missing(columns: Columns, position: int, cell: Any, number: int) -> NoReturn:
    """Refuse a row without the name of a candidate, split or seed."""
    text = cell_text(cell) if cell == cell else ""
    *names, last = (columns.header_of(column) for column in COLUMNS[:4] if columns.positions[column] is not None)
    raise DataError(
        f"{columns.sheet.where(number)}: '{columns.sheet.columns[position]}' is {ascii(text) if text else 'empty'}. "
        f"Every row needs {', '.join(names)} and {last}. Fill it in, or remove the row."
    )


def refuse_repeated_run(columns: Columns, row: RunRow, earlier: RunRow) -> NoReturn:
    """Refuse two scores of one run, and name the columns that could tell them apart."""
    used_names = [columns.header_of(column) for column in COLUMNS]
    differing = differing_columns(row.sheet, [earlier.number, row.number]) if row.sheet is earlier.sheet else []
    telling_names = [name for name in differing if name not in used_names]
    split_text = f", split {row.split}" if row.split else ""
    remedy = "Remove one of the rows."
    if telling_names:
        value = find_cells(row.sheet, [row.number])[0][row.sheet.columns.index(telling_names[0])]
        remedy = (
            f"The rows differ in {shorten(', '.join(telling_names))}. Choose rows, for example with --where "
            f"'{telling_names[0]}={shorten(cell_text(value))}', or map a column that tells runs apart: --columns seed=."
        )
    elif columns.positions["seed"] is None:
        remedy = "Add a seed column that tells them apart, or remove one of the rows."
    raise DataError(
        f"{row.where}: candidate '{row.candidate}'{split_text}{f', seed {row.seed}' if row.seed else ''} already "
        f"appears in {earlier.where}. {remedy}"
    )


def find_similar_names(names: Iterable[str]) -> Optional[Tuple[str, str]]:
    """Return the first two names that look alike or are one number; None if there are none."""
    numbers: Dict[float, str] = {}
    same_number = (
        (earlier, name)
        for name in names
        if NUMBER.fullmatch(name) and (earlier := numbers.setdefault(float(name), name)) != name
    )
    return first_similar_pair(names) or next(same_number, None)


def check_names(rows: Sequence[RunRow], *, wide: Optional[str]) -> None:
    """Refuse names of candidates and splits that contain invisible characters, that look alike or are one number, and
    splits, seeds and columns of a `wide` table that summarize others."""
    for kind in ("candidate", "split"):
        first_rows = {getattr(row, kind): row for row in reversed(rows)}
        for name, row in first_rows.items():
            if escape_invisible(name) != name:
                raise DataError(
                    f"{row.where}: the name '{escape_invisible(name)}' contains an invisible character. Rename it."
                )
        if pair := find_similar_names(first_rows):
            old, new = sorted(pair, key=lambda name: rows.index(first_rows[name]))
            raise DataError(
                f"{first_rows[new].where}: {kind} {new!a} and {kind} {old!a} in {first_rows[old].where} {SIMILARITY}. "
                "Use one name."
            )
    for row in rows:
        for kind, name in (("split", row.split), ("seed", row.seed), ("candidate", row.candidate)):
            if name.isdigit() or (kind == "candidate" and wide != kind):
                continue
            words = set() if kind == "candidate" else set(re.split(r"[\W_]+", name.lower()))
            if words & SUMMARY or name.lower() in SUMMARIES:
                raise DataError(
                    f"{row.where}: the {kind} '{name}' looks like a summary of other scores, which would count as one "
                    "more. Remove it, rename it, or list the columns of a wide table: --wide NAME=COLUMN,..."
                )


def ignore_set_column(all_columns: Sequence[Columns]) -> None:
    """Ignore a split column that names only the set that is scored. Refuse several sets."""
    places: Dict[str, str] = {}
    for columns in all_columns:
        position = columns.positions["split"]
        if position is None:
            continue
        for number, cells in columns.sheet.lines():
            if (name := cell_name(cells[position])) not in places:
                places[name] = columns.sheet.where(number)
    set_names = [name for name in places if SET_NAME.fullmatch(comparison_key(name))]
    words = {name: set(SET_WORDS.findall(comparison_key(name))) for name in places}
    naming = set_names or [name for name in places if words[name]]
    others = [name for name in places if naming and name != naming[0] and (set_names or words[name] - words[naming[0]])]
    if others:
        header = next(columns.header_of("split") for columns in all_columns if columns.positions["split"] is not None)
        raise DataError(
            f"{places[others[0]]}: the split is '{others[0]}', but in {places[naming[0]]} it is '{naming[0]}', which "
            "names a set. Scores on different sets are not scores on random splits. Choose one, for example with "
            f"--where '{header}={naming[-1]}', or list the columns of a wide table: --wide split=COLUMN,..."
        )
    for columns in all_columns if set_names else ():
        columns.positions["split"] = None


def refuse_steps(sheet: Sheet, candidate_at: Optional[int], score_at: Optional[int]) -> None:
    """Refuse rows that are steps of a run where each row would count as a run. Without a column of candidates, all rows
    are of one run."""
    positions = [position for position, name in enumerate(sheet.columns) if STEPS.fullmatch(name.lower())]
    first_step_of_run: Dict[Tuple[int, str], Tuple[int, str]] = {}
    for number, cells in sheet.lines() if positions else ():
        if score_at is not None and not cell_text(cells[score_at]):
            continue
        for position in positions:
            step, run = cell_name(cells[position]), (position, "" if candidate_at is None else str(cells[candidate_at]))
            earlier, earlier_step = first_step_of_run.setdefault(run, (number, step))
            if step != earlier_step and NUMBER.fullmatch(step):
                header = sheet.columns[position]
                raise DataError(
                    f"{sheet.where(number)}: '{header}' is {step}, but in {sheet.where(earlier)} it is {earlier_step}. "
                    f"If the rows are steps of one run, add --where {header}=last. If each row is a run of its own, "
                    "name a column that tells runs apart with --columns seed=NAME, or remove this column."
                )


def mixed_runs_notes(
    all_columns: Sequence[Columns], rows: Sequence[RunRow], is_filtered: Callable[[str], bool], *, has_splits: bool
) -> List[str]:
    """Return a note if all runs differ in their data or metric, or those of a candidate in their settings or length.

    On official splits, a column is a setting, whatever its name, if each value has equally many rows of each candidate.
    """
    kept_rows = {(id(row.sheet), row.number) for row in rows if row.outcome is not None}
    counts: Dict[str, DefaultDict[str, "Counter[str]"]] = {}
    for columns in all_columns:
        sheet, used = columns.sheet, {*columns.positions.values(), *columns.last_positions}
        candidates = NameColumn(sheet, columns.positions["candidate"], parse_csv_name if sheet.is_text else parse_name)
        keys = {p: comparison_key(name) for p, name in enumerate(sheet.columns) if p not in used}
        unread = {p for p, key in keys.items() if key and not is_filtered(key)}
        data_at = {p for p in unread if columns.last_positions and DATA.fullmatch(keys[p])}
        for number, cells in sheet.lines():
            candidate = candidates.name(cells)
            for position in tuple(unread if (id(sheet), number) in kept_rows else data_at):
                if (value := cell_name(cells[position])) or keys[position].endswith("parentrunid"):
                    by_candidate = counts.setdefault(sheet.columns[position], defaultdict(Counter))
                    by_candidate[candidate][value] += 1
                    if len(by_candidate[candidate]) > MAX_VALUES:
                        unread.discard(position)
    least = 1 if any(columns.has_numbered_rows for columns in all_columns) else 2
    for header, by_candidate in counts.items():
        key, first, mixed = comparison_key(header), next(iter(by_candidate.values())), list(by_candidate)
        is_crossed = not has_splits and len(mixed) > 1 and 1 < len(first) <= MAX_VALUES and min(first.values()) >= least
        if NUMBERING.fullmatch(key):
            mixed = [name for name, steps in by_candidate.items() if STEPS.fullmatch(key) and _are_far_apart(steps)]
        elif not DATA.fullmatch(key) and not (is_crossed and all(first == other for other in by_candidate.values())):
            mixed = [name for name, values in by_candidate.items() if SETTING.fullmatch(key) and len(values) > 1]
        texts = list(dict.fromkeys(chain.from_iterable(by_candidate[name] for name in mixed)))
        if len(texts) > 1:
            flags = f"--columns split={header} or seed={header}"
            mapping = f" If it tells runs apart, map it with {flags}." if least == 1 else ""
            return [
                f"The runs of {shorten(', '.join(mixed))} differ in '{header}': {shorten(', '.join(texts))}. Compare "
                f"runs of one kind: add --where '{header}={texts[0]}'.{mapping}"
            ]
    return []


def _are_far_apart(steps: Iterable[str]) -> bool:
    """Return whether the last steps of some runs are at least twice as large as those of others."""
    numbers = [float(step) for step in steps if NUMBER.fullmatch(step)]
    return bool(numbers) and 0 < 2 * min(numbers) <= max(numbers)
