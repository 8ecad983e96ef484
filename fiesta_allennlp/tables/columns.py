"""Finds the columns of a table that say which run a row is and what came of it, after `--parse` has taken names apart,
`--where` has chosen rows, and a wide table has got a row for each score."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, DefaultDict, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Set, Tuple, Union

from fiesta_allennlp.core.errors import MAX_CHOICES, ConfigError, DataError, did_you_mean, escape_invisible, join_some
from fiesta_allennlp.core.errors import near_names as find_near_names
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key, split_names
from fiesta_allennlp.core.records import MAX_SCORE
from fiesta_allennlp.tables.settings import COLUMNS, refusal
from fiesta_allennlp.tables.table_files import (
    Record,
    cell_name,
    cell_number,
    match_pattern,
    propose_pattern,
    shown_cell,
)

JOINED_COLUMNS = ("candidate", "split", "seed")
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


@dataclass
class RoleFinder:
    """Finds the roles of the columns of records as the settings of a command say."""

    records: List[Record]
    settings: Any
    is_official: bool
    columns: List[str] = field(init=False)
    used: Set[str] = field(default_factory=set)
    headers: Dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.columns = list(dict.fromkeys(column for record in self.records for column in record.cells))
        self.records = [record for record in self.records if any(record.cells.values())]
        self.headers = dict(self.settings.columns or {})
        if self.settings.score is not None:
            self.headers["score"] = self.settings.score

    @property
    def name(self) -> str:
        return self.records[0].file if self.records else "the table"

    def find(self) -> Tuple[Roles, List[Record]]:
        """Return the roles, and the rows to read with them."""
        self._parse_names()
        largest = self._filter_rows()
        for name in self.settings.ignore:
            self.used.add(self._required_column(name, f"--ignore {name}", "ignore"))
        score_text = self.headers.get("score", "")
        numbered = self._melt()
        columns = {role: self._columns_of(role) for role in COLUMNS}
        for role in ("candidate", "score"):
            if not columns[role]:
                self._refuse_missing_role(role)
        self.used.update(column for names in columns.values() for column in names)
        if self.is_official:
            columns["split"] = ()
        others = tuple(column for column in self.columns if column not in self.used)
        return Roles(columns, others, tuple(largest), score_text or columns["score"][0], numbered), self.records

    def _find_column(self, name: str) -> Optional[str]:
        """Return the column with this name, or else one that differs in case or blanks; None if there is none."""
        key = comparison_key(name)
        same = [column for column in self.columns if column == name]
        same = same or [column for column in self.columns if comparison_key(column) == key]
        if len(same) > 1:
            names = join_some([ascii(column) for column in same[:2]], " and ")
            raise DataError(f"{self.name}: the column '{name}' appears twice: {names}. Rename one.")
        return same[0] if same else None

    def _required_column(self, name: str, subject: str, option: str) -> str:
        column = self._find_column(name)
        if column is None:
            near = find_near_names(name, self.columns)
            texts = getattr(self.settings, option)
            changes = (
                [{option: tuple(text.replace(name, near[0], 1) if name in text else text for text in texts)}]
                if near
                else []
            )
            names = join_some(list(map(shown_cell, self.columns)), limit=MAX_CHOICES)
            raise refusal(self.settings, f"{subject}: the table has no column '{name}'. Columns: {names}.", *changes)
        return column

    def _parse_names(self) -> None:
        """Add the columns that `--parse` takes out of others."""
        for text in self.settings.parse:
            column, pattern = self._cut_at_column(text, "parse")
            self.used.add(column)
            matches = [match_pattern(pattern, record.cells.get(column, "")) for record in self.records]
            if self.records and not any(matches):
                examples = join_some(list(dict.fromkeys(r.cells.get(column, "") for r in self.records)), limit=3)
                raise ConfigError(f"--parse {text}: no '{column}' matches the pattern. They are: {examples}.")
            for record, parts in zip(self.records, matches, strict=True):
                record.cells.update(parts or {})
            self.columns += [
                name for parts in filter(None, matches[:1] or [{}]) for name in parts if name not in self.columns
            ]
            self.columns += [n for parts in filter(None, matches) for n in parts if n not in self.columns]

    def _cut_at_column(self, text: str, option: str) -> Tuple[str, str]:
        """Split `COLUMN=TEXT` at the end of the name of a column, which may have an equals sign."""
        for cut in (position for position, character in enumerate(text) if character == "="):
            column = self._find_column(text[:cut])
            if column is not None:
                return column, text[cut + 1 :]
        name, equals, rest = text.partition("=")
        if not equals:
            raise ConfigError(f"--{option} {text}: must be COLUMN={'PATTERN' if option == 'parse' else 'VALUE'}.")
        return self._required_column(name, f"--{option} {text}", option), rest

    def _filter_rows(self) -> List[str]:
        """Keep the rows that `--where` names, and return the columns of which the largest value counts."""
        kept_values: DefaultDict[str, Set[str]] = defaultdict(set)
        largest: List[str] = []
        for text in self.settings.where:
            column, value_list = self._cut_at_column(text, "where")
            values = {cell_name(record.cells.get(column, "")) for record in self.records}
            self.used.add(column)
            if value_list == LARGEST and LARGEST not in values:
                largest.append(column)
                continue
            typed = [value_list] if cell_name(value_list) in values else split_names(value_list)
            for value in typed:
                if cell_name(value) not in values:
                    names = escape_invisible(join_some(sorted(values, key=_natural_key)))
                    hint = did_you_mean(value, values)
                    raise DataError(f"{self.name}: no row has --where {text}.{hint} Values of '{column}': {names}.")
                kept_values[column].add(cell_name(value))
        if kept_values:
            self.records = [
                record
                for record in self.records
                if all(cell_name(record.cells.get(column, "")) in values for column, values in kept_values.items())
            ]
        return largest

    def _melt(self) -> str:
        """Make a row of each score of a wide table. Return what the rows number if nothing else does."""
        parts_by_column: Dict[str, Dict[str, str]] = {}
        header = self.headers.get("score", "")
        if self.settings.wide:
            for name in self.settings.wide:
                parts_by_column[self._required_column(name, f"--wide {name}", "wide")] = {"candidate": name}
        elif "{" in header and self._find_column(header) is None:
            named = {self._find_column(text) for role, text in self.headers.items() if role != "score"}
            for column in self.columns:
                if column not in self.used and column not in named and comparison_key(column) not in COLUMNS:
                    parts = match_pattern(header.lstrip("+-") if header[:1] in "+-" else header, column)
                    parts_by_column.update({} if parts is None else {column: parts})
            if not parts_by_column:
                names = join_some(list(map(shown_cell, self.columns)), limit=MAX_CHOICES)
                raise ConfigError(f"--score {header}: no column of {self.name} matches. Columns: {names}.")
        if not parts_by_column:
            return ""
        melted: List[Record] = []
        number_name = "seed" if self.is_official or self.headers.get("split") == "" else "split"
        has_candidates = any("candidate" in parts for parts in parts_by_column.values())
        is_numbered = has_candidates and not any({"split", "seed"} & set(parts) for parts in parts_by_column.values())
        is_numbered = is_numbered and not any(
            self.headers.get(role) or self._find_column(role) for role in ("split", "seed")
        )
        for number, record in enumerate(self.records):
            shared = {column: text for column, text in record.cells.items() if column not in parts_by_column}
            shared.update({number_name: str(number)} if is_numbered else {})
            for column, parts in parts_by_column.items():
                score = record.cells.get(column, "")
                if cell_name(score):
                    melted.append(record._replace(cells={**shared, **parts, "score": score}))
        self.records = melted
        new_columns = dict.fromkeys([name for parts in parts_by_column.values() for name in parts] + ["score"])
        self.columns = [c for c in self.columns if c not in parts_by_column and c not in new_columns] + list(
            new_columns
        )
        self.columns += [number_name] if is_numbered else []
        if "{" in header:
            self.headers["score"] = "score"
        return number_name if is_numbered else ""

    def _columns_of(self, role: str) -> Tuple[str, ...]:
        """Return the columns that the settings name for a role, or else the column of that name."""
        header = self.headers.get(role)
        if header == "":
            self.used.update(filter(None, [self._find_column(role)]))
            return ()
        if header is None:
            aliases = ("state", "status") if role == "state" else (role,)
            own = tuple(column for column in map(self._find_column, aliases) if column is not None)[:1]
            return own or (self._find_nested(aliases) if role in ("seed", "state") else ())
        column = self._find_column(header)
        if column is None and role == "score" and header[:1] in ("+", "-"):
            column = self._find_column(header[1:])
        if column is not None:
            return (column,)
        names = header.split("+") if role in JOINED_COLUMNS else [header]
        columns: List[str] = []
        for name in names:
            found = self._find_column(name.strip())
            if found is None:
                self._refuse_missing_column(role, header, name.strip())
            columns.append(found or "")
        return tuple(columns)

    def _find_nested(self, names: Sequence[str]) -> Tuple[str, ...]:
        """Return the column whose last part is one of these names, as in `params.seed`, if there is just one."""
        columns = [c for c in self.columns if re.split(r"[./]", c)[-1].casefold() in names and c not in self.used]
        return tuple(columns) if len(columns) == 1 else ()

    def _refuse_missing_column(self, role: str, header: str, name: str) -> NoReturn:
        near = find_near_names(name.lstrip("+-") if role == "score" else name, self.columns)
        corrected = header.replace(name.lstrip("+-"), near[0], 1) if near else ""
        changes = [self._change(role, corrected)] if near else []
        names = join_some(list(map(shown_cell, self.columns)), limit=MAX_CHOICES)
        hint = f" Did you mean '{shown_cell(near[0])}'?" if near else ""
        raise refusal(self.settings, f"{self.name}: the column '{name}' is missing.{hint} Columns: {names}.", *changes)

    def _change(self, role: str, header: str) -> Dict[str, Any]:
        columns = {other: text for other, text in (self.settings.columns or {}).items() if other != role}
        if role == "score":
            return {**({"columns": columns} if columns != (self.settings.columns or {}) else {}), "score": header}
        return {"columns": {**columns, role: header}}

    def _refuse_missing_role(self, role: str) -> None:
        """Refuse a table whose candidates or scores nobody can find, with commands for what its columns suggest."""
        names = join_some(list(map(shown_cell, self.columns)), limit=MAX_CHOICES)
        texts = {
            column: [text for record in self.records if (text := record.cells.get(column, ""))]
            for column in self.columns
            if column not in self.used and column not in self.headers.values()
        }
        numbers = {column: cells for column, cells in texts.items() if cells and _are_scores(cells)}
        others = {column: cells for column, cells in texts.items() if column not in numbers}
        lacks_score = "score" not in self.headers and self._find_column("score") is None and not self.settings.wide
        score_changes = self._propose_scores(numbers) if lacks_score else [{}]
        candidate_changes = self._propose_candidates(others) if role == "candidate" else [{}]
        if any("{candidate}" in change.get("score", "") for change in score_changes):
            candidate_changes = [{}]
        changes = [{**score, **candidate} for candidate in candidate_changes for score in score_changes]
        option = "--columns candidate=COLUMN" if role == "candidate" else "--score COLUMN"
        raise refusal(
            self.settings,
            f"{self.name}: no column is the {role}. Name it with {option}. Columns: {names}.",
            *[change for change in changes if change][:4],
        )

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


def _score_of(text: str) -> Optional[float]:
    return SCORE_WORDS.get(text.casefold(), cell_number(text))


def _are_scores(texts: Sequence[str]) -> bool:
    return all(_score_of(text) is not None for text in texts)


def _measure_rank(column: str) -> Tuple[bool, bool]:
    """Order columns such that measures on a test set come first, then those on a validation set."""
    name = column.casefold()
    return "test" not in name, "eval" not in name and "val" not in name


def find_patterns(columns: Sequence[str]) -> List[str]:
    """Return the patterns of columns that differ only before ` - `, or in a number."""
    texts: DefaultDict[str, Set[str]] = defaultdict(set)
    for column in columns:
        name, dash, metric = column.rpartition(" - ")
        match = re.fullmatch(r"(.*?)(\d+)(\D*)", column)
        if dash:
            texts[f"{{candidate}} - {metric}"].add(name)
        elif match is not None:
            part = "seed" if re.search(r"(?i)seed|run", match[1]) else "split"
            texts[f"{match[1]}{{{part}}}{match[3]}"].add(column)
    return sorted((pattern for pattern, same in texts.items() if len(same) > 1), key=len)


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
    score = cell_number(text.rstrip("%") if has_percent else text)
    score = SCORE_WORDS.get(text.casefold()) if score is None else score
    if score is None or abs(score) > MAX_SCORE:
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
