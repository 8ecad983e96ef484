"""Reads a table of scores of any form: every command and every call reads its tables here."""

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.choice_settings import INDEPENDENT, OFFICIAL, SHARED
from fiesta_allennlp.core.errors import ConfigError, DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import file_digest, shorten
from fiesta_allennlp.core.metrics import MAX_SCORE, UNNAMED, Metric, error_word, find_longer_names
from fiesta_allennlp.core.records import Evaluation, Failure, Origin
from fiesta_allennlp.core.texts import comparison_key
from fiesta_allennlp.selecting.provenance import BroughtRuns
from fiesta_allennlp.tables import table_files
from fiesta_allennlp.tables.columns import NAMES, SCORE_WORDS, Roles
from fiesta_allennlp.tables.corrections import TableError, shown_cell
from fiesta_allennlp.tables.run_identity import identify_runs
from fiesta_allennlp.tables.run_table import NO_SCORE, Outcome, RunRow, RunTable, group_rows
from fiesta_allennlp.tables.table_settings import COLUMNS, UNSCALED, BroughtSettings, NextSettings

FINISHED, FAILED, RUNNING = "finished", "failed", "running"
"""What the state of a run can mean. `failed` also stands for the score of a run without one."""

STATE_WORDS = (
    (FINISHED, "finished complete completed success succeeded successful done ok"),
    (FAILED, "failed fail failure error crashed killed pruned preempted timeout aborted"),
    (FAILED, "cancelled canceled interrupted out_of_memory"),
    (RUNNING, "running waiting scheduled pending queued preempting"),
)
STATES: Mapping[str, str] = {word: meaning for meaning, words in STATE_WORDS for word in words.split(" ")}
"""The states of runs in common tools, in lower case. `terminated` is a success in Ray, and a kill in Guild."""

MAX_SECONDS = 1e9
"""The longest duration of a run, some 30 years."""

SD_FILE = "sd="
"""Begins the value of `--scale` that names a file."""

MAX_SDS = 20.0
"""The robust sds from the median of the others at which a score may be in another unit, or of another run."""

MIN_OTHER_RUNS = 3
"""The least number of other scores of a candidate that say how far its scores vary."""


def read_run_table(path: Path, settings: Any, content: table_files.Content = None) -> RunTable:
    """Read a table of any form: the files that the settings name, or the `content` that Python has.

    Args:
        path: the first file or pattern, or the name of the content in messages.
        settings: `TableSettings` with `splits`.

    Raises:
        ConfigError: if a file does not exist or a setting does not fit.
        DataError: if the table is wrong, with the line, the value and corrected commands.
    """
    paths = [str(path), *settings.files]
    try:
        records = table_files.read_records(paths, content, settings)
        roles = Roles(records, settings)
        all_rows = _read_rows(roles, settings)
        rows = _scale_rows(identify_runs(all_rows, roles, settings), settings.scale) if all_rows else []
        metric = _determine_metric(rows, roles, settings, str(path))
    except TableError as error:
        raise error.with_commands(settings) from error
    shown_names = {table_files.STANDARD_INPUT: table_files.STANDARD_INPUT_NAME}
    name = join_some([shown_names.get(path, path) for path in paths])
    files = {record.file: None for record in records if record.file != table_files.STANDARD_INPUT_NAME}
    if settings.scale not in (None, UNSCALED):
        files[settings.scale.removeprefix(SD_FILE)] = None
    return _make_table(name, tuple(files), all_rows, rows, roles, metric, settings.splits)


def read_brought_runs(
    settings: BroughtSettings, selection_settings: Mapping[str, Any], content: table_files.Content = None
) -> Tuple[BroughtRuns, RunTable]:
    """Read the runs that exist already, for a selection with these settings, and what was understood of their table:
    the one that `settings` name, or its `content` from Python. Raise as `read_run_table` does."""
    path = Path(str(settings.scores or "rows"))
    splits = OFFICIAL if selection_settings.get("splits") == OFFICIAL else SHARED
    minimise = Metric.parse(selection_settings.get("metric") or "").minimise
    allow = tuple(selection_settings.get("allow") or ())
    table_settings = NextSettings(scores=str(path), splits=splits, minimise=minimise, allow=allow)
    table = read_run_table(path, table_settings, content)
    command = f"fiesta next {path} --where task=NAME --output runs.csv"
    table.refuse_tasks("fiesta select --scores", f"Write the runs of one: {command}. Then use --scores runs.csv.")
    history, outcomes = table.history(), []
    num_runs: Counter[str] = Counter()
    runs: Sequence[Union[Evaluation, Failure]] = (*history.evaluations, *history.failures)
    for run in runs:
        num_runs[run.request.candidate] += 1
        replicate, split_seed = -num_runs[run.request.candidate], -1 - run.request.split_seed
        request = replace(run.request, replicate=replicate, split_seed=split_seed)
        outcomes.append(replace(run, request=request, origin=Origin(file=path.name), seconds=0.0))
    digest = file_digest(path) if content is None else ""
    metric_text = next((row.metric for row in table.rows if row.metric), "")
    return BroughtRuns(path.name, digest, table.has_splits, metric_text, tuple(outcomes)), table


def _read_rows(roles: Roles, settings: Any) -> List[RunRow]:
    """Return a row for each record. Refuse a state, a score or a duration that cannot be read."""
    records = roles.records
    states = _read_states(records, roles, settings.finished)
    ended = [record for record, state in zip(records, states, strict=True) if state not in (FAILED, RUNNING)]
    words = {roles.cell(record, "score").casefold() for record in ended} - {"", "nan", FAILED}
    has_percent = bool(words) and all(word.endswith("%") for word in words)
    score_by_word = SCORE_WORDS if words.issubset(SCORE_WORDS) else {"true": 1.0, "false": 0.0}
    rows: List[RunRow] = []
    for record, state in zip(records, states, strict=True):
        candidate, task, split, seed = (escape_invisible(roles.text(record, role)) for role in NAMES)
        text = roles.cell(record, "score").rstrip("%" if has_percent else "")
        score = score_by_word.get(text.casefold(), table_files.cell_number(text))
        outcome, seconds = _read_outcome(record, roles, state, score), _read_seconds(record, roles)
        rows.append(RunRow(candidate, task, split, seed, outcome, roles.text(record, "metric"), seconds, record))
    return rows


def _read_states(records: Sequence[table_files.Record], roles: Roles, finished: Sequence[str]) -> List[Optional[str]]:
    """Return what the states of the runs mean, None without one. Refuse words that are not known."""
    words = [roles.cell(record, "state").rpartition(".")[2] for record in records]
    meanings = STATES
    if finished and not roles.columns["state"]:
        raise ConfigError("--finished needs a column of states. Name it: --columns state=COLUMN.")
    if finished:
        meanings = {word: RUNNING if STATES.get(word) == RUNNING else FAILED for word in map(str.casefold, words)}
        meanings.update(dict.fromkeys(map(str.casefold, finished), FINISHED))
    unknown = list(dict.fromkeys(word for word in words if word and word.casefold() not in meanings))
    if unknown:
        known = tuple(word for word in dict.fromkeys(words) if STATES.get(word.casefold()) == FINISHED)
        raise TableError(
            f"{records[words.index(unknown[0])].place}: '{roles.option_text('state')}' is '{shown_cell(unknown[0])}', "
            "which is not a known state of a run. Name the words of success; the others mean failure. If the column is "
            "not about runs, leave it out.",
            {"finished": known} if known else {},
            *({"finished": (*known, word)} for word in unknown[:2]),
            {"columns": {"state": ""}},
        )
    return [meanings[word.casefold()] if word else None for word in words]


def _read_outcome(record: table_files.Record, roles: Roles, state: Optional[str], score: Optional[float]) -> Outcome:
    """Return the score of a run, the reason why it has none, or None if it has not finished."""
    text, reason = roles.cell(record, "score"), escape_invisible(roles.text(record, "error"))
    if state == RUNNING:
        return None
    if state == FAILED or text.casefold() == FAILED or (reason and not table_files.cell_name(text)):
        return reason or FAILED
    if not text:
        return None if state is None else NO_SCORE
    if score is not None and abs(score) <= MAX_SCORE:
        return score
    if pointed := table_files.decimal_point(text):
        problem = f"'{text}' has a comma, which is a decimal comma or separates thousands"
        raise DataError(f"{record.place}: {problem}. Write {pointed} or {text.replace(',', '')}.")
    raise DataError(
        f"{record.place}: a score must be a number of at most {MAX_SCORE:g} in magnitude but got "
        f"'{shorten(escape_invisible(text))}'. Correct it, write {FAILED} for a run that ended without a score, or "
        "leave it empty (null in JSON, None in Python) for a run that has not finished."
    )


def _read_seconds(record: table_files.Record, roles: Roles) -> Optional[float]:
    """Return the duration of a run, None if it has none."""
    text = roles.cell(record, "seconds")
    seconds = table_files.cell_number(text)
    if table_files.cell_name(text) and (seconds is None or not 0 <= seconds <= MAX_SECONDS):
        raise TableError(
            f"{record.place}: '{roles.option_text('seconds')}' must be the seconds of a run, a number from 0 to "
            f"{MAX_SECONDS:g}, but is '{shorten(escape_invisible(text))}'. Correct it, or leave the column out.",
            {"columns": {"seconds": ""}},
        )
    return seconds


def _scale_rows(rows: Sequence[RunRow], scale: Optional[str]) -> Sequence[RunRow]:
    """Return the rows with scores divided by the sd of their task, if `--scale sd=FILE` says so."""
    if scale is None or scale == UNSCALED:
        return rows
    if not scale.startswith(SD_FILE):
        raise ConfigError(f"--scale must be {UNSCALED} or {SD_FILE}FILE but got '{scale}'.")
    cells = [record.cells for record in table_files.read_file(scale.removeprefix(SD_FILE))]
    sds = {own.get("task", ""): table_files.cell_number(own.get("sd", "")) or 0.0 for own in cells}
    if wrong := dict.fromkeys(row.task for row in rows if sds.get(row.task, 0.0) <= 0):
        problem = f"an sd above 0 of {join_some(list(wrong))} in the columns task and sd"
        raise ConfigError(f"--scale {scale}: the file needs {problem}.")
    return [row._replace(outcome=row.score / sds[row.task]) if row.is_scored else row for row in rows]


def _determine_metric(rows: Sequence[RunRow], roles: Roles, settings: Any, path: str) -> Metric:
    """Return the metric, which the metric column names, or else the score column. Refuse an error without a
    direction."""
    named_row = next((row for row in rows if row.metric), None)
    text = roles.score_text if named_row is None else named_row.metric
    name = Metric.parse(text).name
    if "{" in name:
        name = re.sub(r"\w*\{[^{}]*\}", "", name).strip(" -_/.")
    is_signed = text[:1] in ("+", "-") and (named_row is not None or text not in roles.columns["score"])
    metric = Metric(escape_invisible(name) or UNNAMED.name, is_signed and text[0] == "-")
    if metric.minimise or settings.minimise is not None:
        return replace(metric, minimise=metric.minimise or bool(settings.minimise))
    names = [text]
    if text.casefold() in ("value", "values"):  # the metric is a cell
        names += [value for where in settings.where for value in where.split("=")[1:]]
        names += dict.fromkeys(row.task for row in rows)
    loss = next(filter(error_word, names), None)
    if loss is not None:
        raise TableError(
            f"{named_row.place if named_row else path}: '{loss}' has '{error_word(loss)}' in its name, so lower is "
            "usually better, but without a sign the highest mean wins. Choose a direction.",
            {"minimise": True},
            {"minimise": False},
        )
    return metric


def _make_table(
    name: str,
    files: Tuple[str, ...],
    all_rows: Sequence[RunRow],
    rows: Sequence[RunRow],
    roles: Roles,
    metric: Metric,
    splits: Optional[str],
) -> RunTable:
    """Return the table of these rows, which are runs, with the facts about them, and about all its rows."""
    scored = [row for row in rows if row.is_scored]
    scores = [row.score for row in scored]
    has_splits = any(row.split for row in rows) if rows else bool(roles.columns["split"])
    is_independent = has_splits and splits == INDEPENDENT
    by_candidate = group_rows(scored, "candidate")
    has_units = has_splits and not is_independent
    own_splits = [{row[1:3] for row in own} for own in by_candidate.values()] if has_units else []
    num_repeats = max(Counter(row[:3] for row in scored).values(), default=0)
    names = [key for key in NAMES if any(roles.text(row.record, key) for row in all_rows)]
    columns = {role: roles.score_text if role == "score" else roles.option_text(role) for role in COLUMNS}
    return RunTable(
        rows,
        files,
        name=name,
        runs={row.candidate: len(by_candidate.get(row.candidate, ())) for row in rows},
        metric=metric,
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        columns=columns,
        tasks=tuple(dict.fromkeys(row.task for row in rows if row.task)),
        has_splits=has_splits,
        are_splits_rows=roles.numbered == "split",
        are_splits_independent=is_independent,
        are_splits_seeds=bool(rows) and all(row.split == row.seed for row in rows),
        knows_seeds=bool(roles.columns["seed"]) and (not rows or any(roles.text(row.record, "seed") for row in rows)),
        num_splits=len(set().union(*own_splits)),
        num_shared_splits=len(set.intersection(*own_splits)) if own_splits else 0,
        num_repeats=num_repeats if own_splits else 0,
        num_failed=sum(isinstance(row.outcome, str) for row in rows),
        num_unfinished=sum(row.outcome is None for row in rows),
        num_nameless=sum(not all(getattr(row, each) for each in names) for row in all_rows),
        notes=(*_name_notes(by_candidate, roles), *_score_notes(scored, metric)),
    )


def _name_notes(by_candidate: Mapping[str, Sequence[RunRow]], roles: Roles) -> Iterator[str]:
    """Ask about columns that may name something else, and names that look alike."""
    column = roles.option_text("candidate")
    has_one_each = len(by_candidate) > 2 and {len(rows) for rows in by_candidate.values()} == {1}
    if has_one_each and comparison_key(column) != "candidate":
        question = f"is '{shown_cell(column)}' the candidate? Name it: --columns candidate=COLUMN"
        yield f"each candidate has one run: {question}"
    for record in [rows[0].record for rows in by_candidate.values()][:1]:
        if others := find_longer_names(roles.score_text, record.cells):
            others_text = f"{record.place} also has {join_some(others)}"
            yield f"the score is the column of exactly the name {roles.score_text}; {others_text}"
    tasks = dict.fromkeys(row.task for rows in by_candidate.values() for row in rows)
    for noun, own in (("candidates", by_candidate), ("tasks", tasks)):
        for _, group in groupby(sorted(own, key=comparison_key), comparison_key):  # case, blanks, accents
            names = [shown_cell(ascii(name)) for name in group]
            if len(names) > 1:
                yield f"{join_some(names, ' and ')} are {len(names)} {noun}"


def _score_notes(scored: Sequence[RunRow], metric: Metric) -> Iterator[str]:
    """Ask about a candidate one of whose scores is far better than its others, each compared with the median of its
    split. Scores of single items, which are 0 or 1, are never far."""
    if {row.score for row in scored} == {0.0, 1.0}:
        return
    centres = {split: median(row.score for row in own) for split, own in group_rows(scored, "task", "split").items()}
    for name, own in group_rows(scored, "candidate").items():
        leads = [metric.sign * (row.score - centres[row.task, row.split]) for row in own]
        centre = median(leads)
        sd = 1.4826 * median(abs(lead - centre) for lead in leads)
        if len(own) > MIN_OTHER_RUNS and sd > 0 and max(leads) - centre > MAX_SDS * sd:
            row = own[leads.index(max(leads))]
            yield (
                f"{row.place}: {row.score:.6g} is far from the other runs of {shown_cell(name)}, whose median is "
                f"{median(each.score for each in own):.6g}: is it in another unit?"
            )
