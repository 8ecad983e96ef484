"""Finds the columns of a table that say which run a row is and what came of it, after `--parse` has taken names apart,
`--where` has chosen rows, and a wide table has got a row for each score."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, DefaultDict, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Set, Tuple, Union

from fiesta_allennlp.core.errors import (
    MAX_CHOICES,
    ConfigError,
    DataError,
    did_you_mean,
    escape_invisible,
    join_some,
    near_names,
)
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key, split_names
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.tables.patterns import find_patterns, match_pattern, propose_pattern
from fiesta_allennlp.tables.table_files import (
    Record,
    cell_name,
    cell_number,
    shown_cell,
)
from fiesta_allennlp.tables.table_settings import COLUMNS, refusal

NAMING_OPTIONS = ("columns", "score", "where", "wide", "parse", "ignore")

OWN_NAMES = {
    "candidate": ("candidate", "params"),
    "state": ("state", "status"),
    "split": ("split", "split_seed"),
    "seed": ("seed", "random_seed", "random_state"),
}
"""The names by which a role is found: our own, then those of `evaluations.csv`, scikit-learn and MLflow."""

JOINED_COLUMNS = ("candidate", "task", "split", "seed")
"""The columns that may be several columns of a table, joined with `+`."""

LARGEST = "last"
"""The value of `--where COLUMN=last`, which keeps the row with the largest value of each run."""

FINISHED, FAILED, RUNNING = "finished", "failed", "running"
"""What the state of a run can mean. `failed` also stands for the score of a run without one."""

STATES: Mapping[str, str] = {
    **dict.fromkeys(
        ("finished", "complete", "completed", "success", "succeeded", "successful", "done", "ok"), FINISHED
    ),
    **dict.fromkeys(("failed", "fail", "failure", "error", "crashed", "killed", "pruned", "preempted"), FAILED),
    **dict.fromkeys(("timeout", "aborted", "cancelled", "canceled", "interrupted", "out_of_memory"), FAILED),
    **dict.fromkeys(("running", "waiting", "scheduled", "pending", "queued", "preempting"), RUNNING),
}
"""The states of runs in common tools, in lower case. `terminated` is a success in Ray, and a kill in Guild."""

SCORE_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("true", "correct", "pass", "passed", "c"), 1.0),
    **dict.fromkeys(("false", "incorrect", "fail", "i"), 0.0),
}

MAX_SECONDS = 1e9
"""The longest duration of a run, some 30 years."""

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


@dataclass(frozen=True)
class Roles:
    """The columns of a table by what they hold.

    Attributes:
        columns: those of each role in `COLUMNS`; empty if the table has none.
        others: the columns that neither a role nor an option names.
        largest: those of which the largest value of each run counts.
        score_text: the score as it was typed, with its sign.
        numbered: `split` or `seed` if the rows of a wide table number it.
    """

    columns: Mapping[str, Tuple[str, ...]]
    others: Tuple[str, ...]
    largest: Tuple[str, ...] = ()
    score_text: str = "score"
    numbered: str = ""

    def text(self, record: Record, role: str) -> str:
        """Return the text of a role, which several columns join with `+`."""
        names = (cell_name(record.cells.get(column, "")) for column in self.columns[role])
        return "+".join(filter(None, names))

    def option_text(self, role: str) -> str:
        """Return the columns of a role as `--columns` has them."""
        return "+".join(self.columns[role])


class RoleFinder:
    """Finds the roles of the columns of records as the settings of a command say."""

    def __init__(self, records: Sequence[Record], settings: Any, *, is_official: bool) -> None:
        self.settings, self.is_official = settings, is_official
        self.name = records[0].file if records else "the table"
        self.columns = _columns_of(records)
        self.records = [record for record in records if any(record.cells.values())]
        self.used: Set[str] = set()
        score = {} if settings.score is None else {"score": settings.score}
        self.headers: Dict[str, str] = {**(settings.columns or {}), **score}

    def find(self) -> Tuple[Roles, List[Record]]:
        """Return the roles, and the rows to read with them."""
        self._parse_names()
        largest = self._filter_rows()
        self.used.update(map(self._column, self.settings.ignore))
        score_text = self.headers.get("score", "")
        numbered = self._melt()
        columns = {role: self._role_columns(role) for role in COLUMNS}
        for role in ("candidate", "score"):
            if not columns[role]:
                self._refuse_missing_role(role)
        self.used.update(column for names in columns.values() for column in names)
        if self.is_official:
            columns["split"] = ()
        others = tuple(column for column in self.columns if column not in self.used)
        return Roles(columns, others, tuple(largest), score_text or columns["score"][0], numbered), self.records

    def _find(self, name: str) -> Optional[str]:
        """Return the column with this name, or else one that differs in case or blanks; None if there is none."""
        same = [column for column in self.columns if column == name]
        same = same or [column for column in self.columns if comparison_key(column) == comparison_key(name)]
        if len(same) > 1:
            names = join_some([ascii(column) for column in same[:2]], " and ")
            raise DataError(f"{self.name}: the column '{name}' appears twice: {names}. Rename one.")
        return same[0] if same else None

    def _column(self, name: str) -> str:
        """Return the column with this name. Refuse one that is missing, with the options that have the nearest name."""
        column = self._find(name)
        if column is not None:
            return column
        changes = []
        for near in near_names(name, self.columns):
            options = {option: getattr(self.settings, option) for option in NAMING_OPTIONS}
            corrected = {option: _replace_name(value, name, near) for option, value in options.items()}
            changes.append({option: value for option, value in corrected.items() if value != options[option]})
        hint = did_you_mean(name, self.columns)
        problem = f"{self.name}: the column '{name}' is missing.{hint} Columns: {self._shown_columns()}."
        raise refusal(self.settings, problem, *changes)

    def _shown_columns(self) -> str:
        return join_some(list(map(shown_cell, self.columns)), limit=MAX_CHOICES)

    def _parse_names(self) -> None:
        """Add the columns that `--parse` takes out of others."""
        for text in self.settings.parse:
            column, pattern = self._cut_at_column(text)
            texts = [record.cells.get(column, "") for record in self.records]
            matches = [match_pattern(pattern, each) for each in texts]
            if texts and not any(matches):
                examples = join_some(list(dict.fromkeys(texts)), limit=3)
                raise ConfigError(f"--parse {text}: no '{column}' matches the pattern. They are: {examples}.")
            for record, parts in zip(self.records, matches, strict=True):
                record.cells.update(parts or {})
            self.columns = _columns_of(self.records) or self.columns

    def _cut_at_column(self, text: str) -> Tuple[str, str]:
        """Split `COLUMN=TEXT` at the end of the name of a column, which may have an equals sign."""
        pairs = [(text[: match.start()], text[match.end() :]) for match in re.finditer("=", text)]
        name, rest = next((pair for pair in pairs if self._find(pair[0])), (pairs or [(text, "")])[0])
        column = self._column(name)
        self.used.add(column)
        return column, rest

    def _filter_rows(self) -> List[str]:
        """Keep the rows that `--where` names, and return the columns of which the largest value counts."""
        kept_values: DefaultDict[str, Set[str]] = defaultdict(set)
        largest: List[str] = []
        for text in self.settings.where:
            column, typed = self._cut_at_column(text)
            values = {cell_name(record.cells.get(column, "")) for record in self.records}
            if typed == LARGEST and LARGEST not in values:
                largest.append(column)
                continue
            wanted = set(map(cell_name, [typed] if cell_name(typed) in values else split_names(typed)))
            if not wanted <= values:
                names = escape_invisible(join_some(sorted(values, key=_natural_key)))
                hint = did_you_mean(min(wanted - values), values)
                raise DataError(f"{self.name}: no row has --where {text}.{hint} Values of '{column}': {names}.")
            kept_values[column] |= wanted
        for column, wanted in kept_values.items():
            self.records = [record for record in self.records if cell_name(record.cells.get(column, "")) in wanted]
        return largest

    def _wide_columns(self) -> Dict[str, Dict[str, str]]:
        """Return the columns of scores of a wide table, each with what its name says."""
        if self.settings.wide:
            return {self._column(name): {"candidate": name} for name in self.settings.wide}
        pattern = self.headers.get("score", "")
        if "{" not in pattern or self._find(pattern) is not None:
            return {}
        named = {self._find(name) for header in self.headers.values() for name in (header, *header.split("+"))}
        free = [c for c in self.columns if c not in self.used | named and comparison_key(c) not in COLUMNS]
        matches = {column: match_pattern(pattern.lstrip("+-"), column) for column in free}
        if not any(matches.values()):
            problem = f"--score {pattern}: no column of {self.name} matches. Columns: {self._shown_columns()}."
            raise ConfigError(problem)
        return {column: parts for column, parts in matches.items() if parts is not None}

    def _melt(self) -> str:
        """Make a row of each score of a wide table. Return what the rows number if nothing else does."""
        wide = self._wide_columns()
        if not wide:
            return ""
        names = {name for parts in wide.values() for name in parts}
        names |= {role for role in ("split", "seed") if self.headers.get(role) or self._find(role)}
        is_numbered = "candidate" in names and names.isdisjoint(("split", "seed"))
        numbered = "seed" if self.is_official or self.headers.get("split") == "" else "split"
        melted: List[Record] = []
        for number, record in enumerate(self.records):
            shared = {column: text for column, text in record.cells.items() if column not in wide}
            shared.update({numbered: str(number)} if is_numbered else {})
            for column, parts in wide.items():
                if cell_name(record.cells.get(column, "")):
                    cells = {**shared, **parts, "score": record.cells[column]}
                    melted.append(record._replace(cells=cells))
        self.records, self.columns, self.headers["score"] = melted, _columns_of(melted) or self.columns, "score"
        return numbered if is_numbered else ""

    def _role_columns(self, role: str) -> Tuple[str, ...]:
        """Return the columns that the settings name for a role, or else the column of that name, which may be the last
        part of a name such as `params.seed`."""
        header = self.headers.get(role)
        if header is None:
            aliases = OWN_NAMES.get(role, (role,))
            own = [column for column in map(self._find, aliases) if column is not None][:1]
            ends = {c: re.split(r"[./]", c)[-1].casefold() for c in self.columns if c not in self.used}
            nested = [column for column, end in ends.items() if end in aliases and role in ("seed", "state")]
            if role == "task" and self._is_placed(own):
                return ()
            return tuple(own or (nested if len(nested) == 1 else ()))
        if header == "":
            self.used.update(filter(None, [self._find(role)]))
            return ()
        if role == "score" and self._find(header) is None:
            header = header[header[:1] in ("+", "-") :]
        is_joined = role in JOINED_COLUMNS and self._find(header) is None
        return tuple(self._column(name.strip()) for name in (header.split("+") if is_joined else [header]))

    def _is_placed(self, columns: Sequence[str]) -> bool:
        """Return whether columns are ignored, or belong to a role that the settings name."""
        names = {self._find(name) for header in self.headers.values() for name in (header, *header.split("+"))}
        return not {*names, *map(self._find, self.settings.ignore)}.isdisjoint(columns)

    def _change(self, role: str, header: str) -> Dict[str, Any]:
        """Return the change that names the columns of a role."""
        columns = {**self.headers, role: header}
        score = {"score": columns.pop("score")} if "score" in columns else {}
        return {"columns": columns, **score}

    def _refuse_missing_role(self, role: str) -> NoReturn:
        """Refuse a table whose candidates or scores nobody can find, with commands for what its columns suggest."""
        taken = {*self.used, *self.headers.values(), *map(self._find, OWN_NAMES["state"])}
        free = [column for column in self.columns if column not in taken]
        texts = {column: [text for r in self.records if (text := r.cells.get(column, ""))] for column in free}
        numbers = {column: cells for column, cells in texts.items() if cells and None not in map(_score_of, cells)}
        others = {column: cells for column, cells in texts.items() if column not in numbers}
        lacks_score = "score" not in self.headers and self._find("score") is None
        score_changes = self._propose_scores(numbers) if lacks_score else [{}]
        has_candidates = role != "candidate" or any("{candidate}" in each.get("score", "") for each in score_changes)
        candidate_changes = [{}] if has_candidates else self._propose_candidates(others)
        changes = [{**score, **candidate} for candidate in candidate_changes for score in score_changes]
        option = "--columns candidate=COLUMN" if role == "candidate" else "--score COLUMN"
        problem = f"{self.name}: no column is the {role}. Name it with {option}. Columns: {self._shown_columns()}."
        raise refusal(self.settings, problem, *filter(None, changes[:4]))

    def _propose_scores(self, numbers: Mapping[str, Sequence[str]]) -> List[Dict[str, Any]]:
        """Return patterns of columns; or else columns of numbers, the most varied first, and those of a test set."""
        patterns = find_patterns(list(numbers))
        if patterns and "{candidate}" in patterns[0]:
            rows = [column for column in numbers if not any(match_pattern(each, column) for each in patterns)]
            last = [f"{rows[0]}={numbers[rows[0]][-1]}"] if rows else []
            return [{"score": patterns[0], **({"where": (*self.settings.where, *last)} if last else {})}]
        if patterns:
            return [{"score": pattern} for pattern in patterns[:2]]
        varied = [column for column, cells in numbers.items() if 2 * len(set(cells)) > len(cells)]
        binary = [column for column, cells in numbers.items() if {_score_of(cell) for cell in cells} <= {0.0, 1.0}]
        ranked = sorted(varied or binary, key=_measure_rank)
        return [self._change("score", column) for column in ranked[:2]]

    def _propose_candidates(self, texts: Mapping[str, Sequence[str]]) -> List[Dict[str, Any]]:
        """Return columns of texts that repeat, or are named as models are; or else a pattern of texts that differ."""
        named = [
            column for column in texts if re.search(r"(?i)model|arch|system|method|algo|framework|learner", column)
        ]
        repeated = [column for column, cells in texts.items() if 1 < len(set(cells)) < len(cells)]
        changes = [self._change("candidate", column) for column in dict.fromkeys([*named, *repeated])]
        patterns = {column: propose_pattern(list(cells)) for column, cells in texts.items()}
        parses = [f"{column}={pattern}" for column, pattern in patterns.items() if pattern]
        return [*changes[:2], *({"parse": (*self.settings.parse, text)} for text in parses)]


def _columns_of(records: Sequence[Record]) -> List[str]:
    return list(dict.fromkeys(column for record in records for column in record.cells))


def _replace_name(value: Any, name: str, near: str) -> Any:
    """Return the value of an option with another name in its texts."""
    if isinstance(value, Mapping):
        return {role: header.replace(name, near) for role, header in value.items()}
    return (
        value.replace(name, near) if isinstance(value, str) else value and tuple(t.replace(name, near) for t in value)
    )


def _score_of(text: str) -> Optional[float]:
    return SCORE_WORDS.get(text.casefold(), cell_number(text))


def _measure_rank(column: str) -> Tuple[bool, bool]:
    """Order columns such that measures on a test set come first, then those on a validation set."""
    name = column.casefold()
    return "test" not in name, "eval" not in name and "val" not in name


def _natural_key(text: str) -> Tuple[float, str]:
    number = cell_number(text)
    return (float("inf") if number is None else number, text)


def read_rows(records: Sequence[Record], roles: Roles, settings: Any) -> List[RunRow]:
    """Return a row for each record. Refuse a state, a score or a duration that cannot be read."""
    states = _read_states(records, roles, settings)
    score_column = roles.columns["score"][0]
    texts = [text for record in records if (text := record.cells.get(score_column, "")) and not _is_failed(text)]
    has_percent = bool(texts) and all(text.endswith("%") for text in texts)
    return [
        RunRow(
            candidate=escape_invisible(roles.text(record, "candidate")),
            task=escape_invisible(roles.text(record, "task")),
            split=escape_invisible(roles.text(record, "split")),
            seed=escape_invisible(roles.text(record, "seed")),
            outcome=_read_outcome(record, roles, state, has_percent=has_percent),
            metric=roles.text(record, "metric"),
            seconds=_read_seconds(record, roles, settings),
            record=record,
        )
        for record, state in zip(records, states, strict=True)
    ]


def _is_failed(text: str) -> bool:
    return text.casefold() == FAILED


def _read_states(records: Sequence[Record], roles: Roles, settings: Any) -> List[Optional[str]]:
    """Return what the states of the runs mean, None without one. Refuse words that are not known."""
    if not roles.columns["state"]:
        return [None] * len(records)
    (column,) = roles.columns["state"]
    words = [record.cells.get(column, "").rpartition(".")[2] for record in records]
    meanings = dict(STATES)
    if settings.finished:
        typed = {word.casefold() for word in settings.finished}
        rest = {word.casefold() for word in words} - typed
        meanings = {word: RUNNING if STATES.get(word) == RUNNING else FAILED for word in rest}
        meanings.update(dict.fromkeys(typed, FINISHED))
    unknown = next((position for position, word in enumerate(words) if word and word.casefold() not in meanings), None)
    if unknown is not None:
        known = [word for word in dict.fromkeys(words) if STATES.get(word.casefold()) == FINISHED]
        others = list(dict.fromkeys(word for word in words if word and word.casefold() not in meanings))
        columns = {**(settings.columns or {}), "state": ""}
        raise refusal(
            settings,
            f"{records[unknown].place}: '{column}' is '{shown_cell(words[unknown])}', which is not a known state of a "
            "run. Name the words of success; the others mean failure. If the column is not about runs, leave it out.",
            *([{"finished": tuple(known)}] if known else []),
            {"finished": (*known, *others)},
            {"columns": columns},
        )
    return [meanings.get(word.casefold()) if word else None for word in words]


def _read_outcome(record: Record, roles: Roles, state: Optional[str], *, has_percent: bool) -> Outcome:
    """Return the score of a run, the reason why it has none, or None if it has not finished."""
    text, reason = record.cells.get(roles.columns["score"][0], ""), escape_invisible(roles.text(record, "error"))
    if state == RUNNING:
        return None
    if state == FAILED or _is_failed(text) or (reason and not cell_name(text)):
        return reason or FAILED
    if not text:
        return None if state is None else "finished without a score"
    score = _score_of(text.rstrip("%") if has_percent else text)
    if score is None or abs(score) > MAX_SCORE:
        pointed = text.replace(",", ".", 1)
        if score is None and _score_of(pointed) is not None:
            raise DataError(f"{record.place}: '{text}' has a decimal comma. Write a point: {pointed}.")
        raise DataError(
            f"{record.place}: a score must be a number of at most {MAX_SCORE:g} in magnitude but got "
            f"'{shorten(escape_invisible(text))}'. Correct it, write {FAILED} for a run that ended without a score, or "
            "leave it empty (null in JSON, None in Python) for a run that has not finished."
        )
    return score


def _read_seconds(record: Record, roles: Roles, settings: Any) -> Optional[float]:
    """Return the duration of a run, None if it has none."""
    text = record.cells.get(roles.columns["seconds"][0], "") if roles.columns["seconds"] else ""
    if not cell_name(text):
        return None
    seconds = cell_number(text)
    if seconds is None or not 0 <= seconds <= MAX_SECONDS:
        raise refusal(
            settings,
            f"{record.place}: '{roles.columns['seconds'][0]}' must be the seconds of a run, a number from 0 to "
            f"{MAX_SECONDS:g}, but is '{shorten(escape_invisible(text))}'. Correct it, or leave the column out.",
            {"columns": {**(settings.columns or {}), "seconds": ""}},
        )
    return seconds
