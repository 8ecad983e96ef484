"""The rows of a table as runs: who they are by the columns of their roles, and what came of them."""

import math
from collections import defaultdict
from operator import attrgetter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from fiesta_allennlp.core.errors import DataError, escape_invisible
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.tables.columns import Roles, cell_score
from fiesta_allennlp.tables.corrections import TableError, edit_lines, shown_cell
from fiesta_allennlp.tables.table_files import Record, cell_name, cell_number, decimal_point

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

QUOTED_COMMA = r"""sed -E 's/"(-?[0-9]+),([0-9]+ *%?)"/\1.\2/g'"""
"""The command that writes decimal commas as points."""

Outcome = Union[float, str, None]
"""A score, the reason for which a run has none, or None for a run that has not finished."""


class RunRow(NamedTuple):
    """A run in a table of scores. `seconds` is its duration, None if it is unknown."""

    candidate: str
    task: str
    split: str
    seed: str
    outcome: Outcome
    metric: str
    seconds: Optional[float]
    record: Record

    @property
    def place(self) -> str:
        """The table and the line, for messages."""
        return self.record.place

    @property
    def is_scored(self) -> bool:
        return isinstance(self.outcome, float)

    @property
    def score(self) -> float:
        """The score; NaN for a run without one."""
        return self.outcome if isinstance(self.outcome, float) else math.nan


def group_rows(rows: Iterable[RunRow], *fields: str) -> Dict[Any, List[RunRow]]:
    """Return the rows by the values of these fields, in the order of the first ones."""
    key, groups = attrgetter(*fields), defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def read_rows(records: Sequence[Record], roles: Roles, settings: Any) -> List[RunRow]:
    """Return a row for each record. Refuse a state, a score or a duration that cannot be read."""
    texts = [text for record in records if (text := roles.cell(record, "score")) and text.casefold() != FAILED]
    has_percent = bool(texts) and all(text.endswith("%") for text in texts)
    return [
        RunRow(
            candidate=escape_invisible(roles.text(record, "candidate")),
            task=escape_invisible(roles.text(record, "task")),
            split=escape_invisible(roles.text(record, "split")),
            seed=escape_invisible(roles.text(record, "seed")),
            outcome=_read_outcome(record, roles, state, has_percent=has_percent),
            metric=roles.text(record, "metric"),
            seconds=_read_seconds(record, roles),
            record=record,
        )
        for record, state in zip(records, _read_states(records, roles, settings.finished), strict=True)
    ]


def _read_states(records: Sequence[Record], roles: Roles, finished: Sequence[str]) -> List[Optional[str]]:
    """Return what the states of the runs mean, None without one. Refuse words that are not known."""
    words = [roles.cell(record, "state").rpartition(".")[2] for record in records]
    meanings = STATES
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
            {"finished": (*known, *unknown)},
            {"columns": {"state": ""}},
        )
    return [meanings[word.casefold()] if word else None for word in words]


def _read_outcome(record: Record, roles: Roles, state: Optional[str], *, has_percent: bool) -> Outcome:
    """Return the score of a run, the reason why it has none, or None if it has not finished."""
    text, reason = roles.cell(record, "score"), escape_invisible(roles.text(record, "error"))
    if state == RUNNING:
        return None
    if state == FAILED or text.casefold() == FAILED or (reason and not cell_name(text)):
        return reason or FAILED
    if not text:
        return None if state is None else "finished without a score"
    score = cell_score(text.rstrip("%") if has_percent else text)
    if score is not None and abs(score) <= MAX_SCORE:
        return score
    if pointed := decimal_point(text):
        problem = f"'{text}' has a decimal comma. Write a point: {pointed}."
        raise TableError(f"{record.place}: {problem}", edit_lines(QUOTED_COMMA, record.file, [record.number]))
    raise DataError(
        f"{record.place}: a score must be a number of at most {MAX_SCORE:g} in magnitude but got "
        f"'{shorten(escape_invisible(text))}'. Correct it, write {FAILED} for a run that ended without a score, or "
        "leave it empty (null in JSON, None in Python) for a run that has not finished."
    )


def _read_seconds(record: Record, roles: Roles) -> Optional[float]:
    """Return the duration of a run, None if it has none."""
    text = roles.cell(record, "seconds")
    seconds = cell_number(text)
    if cell_name(text) and (seconds is None or not 0 <= seconds <= MAX_SECONDS):
        raise TableError(
            f"{record.place}: '{roles.option_text('seconds')}' must be the seconds of a run, a number from 0 to "
            f"{MAX_SECONDS:g}, but is '{shorten(escape_invisible(text))}'. Correct it, or leave the column out.",
            {"columns": {"seconds": ""}},
        )
    return seconds
