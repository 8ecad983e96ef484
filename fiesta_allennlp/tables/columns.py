"""Finds the columns of a table that say which run a row is and what came of it, after `--parse` has taken names apart,
`--where` has chosen rows, and a wide table has got a row for each score."""

import re
from collections import defaultdict
from typing import Any, DefaultDict, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core.choice_settings import OFFICIAL
from fiesta_allennlp.core.errors import ConfigError, DataError, did_you_mean, escape_invisible, join_some, near_names
from fiesta_allennlp.core.texts import comparison_key, split_names
from fiesta_allennlp.tables import corrections
from fiesta_allennlp.tables.corrections import Change, TableError, shown_cells
from fiesta_allennlp.tables.table_files import Record, cell_name, cell_number, cell_order
from fiesta_allennlp.tables.table_settings import COLUMNS

OWN_NAMES = {
    "candidate": ("candidate", "params"),
    "state": ("state", "status"),
    "split": ("split", "split_seed"),
    "seed": ("seed", "random_seed", "random_state"),
}
"""The names by which a role is found: our own, then those of `evaluations.csv`, scikit-learn and MLflow."""

NAMES = ("candidate", "task", "split", "seed")
"""The roles that name a run. Each may be several columns of a table, joined with `+`."""

LARGEST = "last"
"""The value of `--where COLUMN=last`, which keeps the row with the largest value of each run."""

SCORE_WORDS: Mapping[str, float] = {
    **dict.fromkeys(("true", "correct", "pass", "passed", "c"), 1.0),
    **dict.fromkeys(("false", "incorrect", "fail", "i"), 0.0),
}

MODEL_NAME = re.compile(r"(?i)model|arch|system|method|algo|framework|learner")
COUNT_NAME = re.compile(r"(?i)^column \d|^unnamed|seed|step|epoch|iter|time|duration|samples|std|rank|_id$")
"""Names of models, and of numbers that no candidate is chosen by."""

TIME = re.compile(r"(\d+ days?,? )?\d+:\d+(:[\d.]+)?|\d{4}-\d\d-\d\d.*|[\d.]+ ?(ms|sec|min)")


class Roles:
    """The columns of a table by what they hold, as the settings of a command say.

    Attributes:
        records: the rows to read.
        columns: the columns of each role in `COLUMNS`; empty if the table has none.
        others: the columns that neither a role nor an option names.
        largest: those of which the largest value of each run counts.
        score_text: the score as it was typed, with its sign.
        numbered: `split` or `seed` if the rows of a wide table number it.
    """

    def __init__(self, records: Sequence[Record], settings: Any) -> None:
        self._settings, self._is_official = settings, settings.splits == OFFICIAL
        self._name = records[0].file if records else "the table"
        self._names = _columns_of(records)
        self._used: Set[str] = set()
        score = {} if settings.score is None else {"score": settings.score}
        self._headers: Dict[str, str] = {**(settings.columns or {}), **score}
        self.records = [record for record in records if any(record.cells.values())]
        self.largest: List[str] = []
        self.numbered = ""
        self._parse_names()
        self.score_text = self._headers.get("score", "")
        self._melt()
        self._filter_rows()
        self._used.update(map(self._column, settings.ignore))
        self.columns = {role: self._role_columns(role) for role in COLUMNS}
        self._used.update(column for columns in self.columns.values() for column in columns)
        missing = [role for role in ("candidate", "score") if not self.columns[role]]
        if missing:
            option = "--columns candidate=COLUMN" if missing[0] == "candidate" else "--score COLUMN"
            problem = f"no column is the {missing[0]}. Name it with {option}. Columns: {shown_cells(self._names)}."
            raise TableError(f"{self._name}: {problem}", *_propose_roles(self._free_cells("state"), self.columns))
        self.score_text = self.score_text or self.columns["score"][0]
        if self._is_official:
            self.columns["split"] = ()
        self.others = [column for column in self._names if column not in self._used]

    def text(self, record: Record, role: str) -> str:
        """Return the text of a role, which several columns join with `+`."""
        return "+".join(filter(None, map(record.name, self.columns[role])))

    def cell(self, record: Record, role: str) -> str:
        """Return the cell of a role that has one column; empty for a role without any."""
        return record.cells.get(self.option_text(role), "")

    def option_text(self, role: str) -> str:
        """Return the columns of a role as `--columns` has them."""
        return "+".join(self.columns[role])

    def keep(self, role: str, names: Sequence[str]) -> Change:
        """Return the change that leaves out the rows with other names; none for a role of several columns."""
        return corrections.keep_rows(self.option_text(role), names) if names and len(self.columns[role]) == 1 else {}

    def _free_cells(self, *roles: str) -> Dict[str, List[str]]:
        """Return the cells of the columns that are not used, and are not named as one of these roles."""
        names = (alias for role in roles for alias in OWN_NAMES.get(role, (role,)))
        taken = {*self._used, *self._headers.values(), *map(self._find, names)}
        return {c: [r.cells[c] for r in self.records if r.cells.get(c)] for c in self._names if c not in taken}

    def _find(self, name: str) -> Optional[str]:
        """Return the column with this name, or else one that differs in case or blanks; None if there is none."""
        same = [column for column in self._names if column == name]
        same = same or [column for column in self._names if comparison_key(column) == comparison_key(name)]
        if len(same) > 1:
            names = join_some([ascii(column) for column in same[:2]], " and ")
            raise DataError(f"{self._name}: the column '{name}' appears twice: {names}. Rename one.")
        return same[0] if same else None

    def _column(self, name: str) -> str:
        """Return the column with this name. Refuse one that is missing, with the columns that may be meant."""
        column = self._find(name)
        if column is not None:
            return column
        word = re.compile(rf"(?i)(?<![^\W_]){re.escape(name)}(?![^\W_])")
        is_score = name == self._headers.get("score", "").lstrip("+-")
        patterns = _find_patterns(self._names) if is_score else []
        longer_names = sorted(filter(word.search, (*patterns, *self._names)), key=_measure_rank)
        changes: List[Change] = [{"rename": (name, other)} for other in near_names(name, self._names) or longer_names]
        if is_score and not changes:
            changes += _propose_scores(_numbers_of(self._free_cells(*(role for role in COLUMNS if role != "score"))))
        problem = f"the column '{name}' is missing.{did_you_mean(name, self._names)}"
        raise TableError(f"{self._name}: {problem} Columns: {shown_cells(self._names)}.", *changes[:2])

    def _named_columns(self) -> Set[Optional[str]]:
        """Return the columns that the settings ignore, or name as a role."""
        names = {name for header in self._headers.values() for name in (header, *header.split("+"))}
        return set(map(self._find, (*names, *self._settings.ignore)))

    def _parse_names(self) -> None:
        """Add the columns that `--parse` takes out of others."""
        for text in self._settings.parse:
            column, pattern = self._cut_at_column(text)
            texts = [record.cells.get(column, "") for record in self.records]
            matches = [corrections.match_pattern(pattern, each) for each in texts]
            if texts and not any(matches):
                examples = join_some(list(dict.fromkeys(texts)), limit=3)
                raise ConfigError(f"--parse {text}: no '{column}' matches the pattern. They are: {examples}.")
            for record, parts in zip(self.records, matches, strict=True):
                record.cells.update(parts or {})
            self._names = _columns_of(self.records) or self._names

    def _cut_at_column(self, text: str) -> Tuple[str, str]:
        """Split `COLUMN=TEXT` at the end of the name of a column, which may have an equals sign."""
        pairs = [(text[: match.start()], text[match.end() :]) for match in re.finditer("=", text)]
        if not pairs:
            raise ConfigError(f"--where and --parse take COLUMN=TEXT but got '{text}'.")
        name, rest = next((pair for pair in pairs if self._find(pair[0])), pairs[0])
        column = self._column(name)
        self._used.add(column)
        return column, rest

    def _filter_rows(self) -> None:
        """Keep the rows that `--where` names, and note the columns of which the largest value counts."""
        kept_values: DefaultDict[str, Set[str]] = defaultdict(set)
        for text in self._settings.where:
            column, typed = self._cut_at_column(text)
            values = {record.name(column) for record in self.records}
            if typed == LARGEST and LARGEST not in values:
                self.largest.append(column)
                continue
            wanted = set(map(cell_name, [typed] if cell_name(typed) in values else split_names(typed)))
            if not wanted <= values:
                names = escape_invisible(join_some(sorted(values, key=cell_order)))
                hint = did_you_mean(min(wanted - values), values)
                raise DataError(f"{self._name}: no row has --where {text}.{hint} Values of '{column}': {names}.")
            kept_values[column] |= wanted
        for column, wanted in kept_values.items():
            self.records = [record for record in self.records if record.name(column) in wanted]

    def _wide_columns(self) -> Dict[str, Dict[str, str]]:
        """Return the columns of scores of a wide table, each with what its name says."""
        if self._settings.wide:
            return {self._column(name): {"candidate": name} for name in self._settings.wide}
        pattern = self._headers.get("score", "")
        if "{" not in pattern or self._find(pattern) is not None:
            return {}
        kept = {self._find(text.partition("=")[0]) for text in self._settings.where}
        taken = self._used | self._named_columns() | kept
        free = [column for column in self._names if column not in taken and comparison_key(column) not in COLUMNS]
        matches = {column: corrections.match_pattern(pattern.lstrip("+-"), column) for column in free}
        if not any(matches.values()):
            problem = f"no column of {self._name} matches. Columns: {shown_cells(self._names)}."
            raise ConfigError(f"--score {pattern}: {problem}")
        return {column: parts for column, parts in matches.items() if parts is not None}

    def _melt(self) -> None:
        """Make a row of each score of a wide table. Its rows number the splits, or the seeds, if nothing else does."""
        wide = self._wide_columns()
        if not wide:
            return
        names = {name for parts in wide.values() for name in parts}
        names |= {role for role in ("split", "seed") if self._headers.get(role) or self._find(role)}
        has_steps = any(text.endswith(f"={LARGEST}") for text in self._settings.where)
        if "candidate" in names and names.isdisjoint(("split", "seed")) and not has_steps:
            self.numbered = "seed" if self._is_official or self._headers.get("split") == "" else "split"
        melted: List[Record] = []
        for number, record in enumerate(self.records):
            shared = {column: text for column, text in record.cells.items() if column not in wide}
            shared.update({self.numbered: str(number)} if self.numbered else {})
            for column, parts in wide.items():
                if record.name(column):
                    melted.append(record._replace(cells={**shared, **parts, "score": record.cells[column]}))
        self.records, self._names, self._headers["score"] = melted, _columns_of(melted) or self._names, "score"

    def _role_columns(self, role: str) -> Tuple[str, ...]:
        """Return the columns that the settings name for a role, or else the column of that name, which may be the last
        part of a name such as `params.seed`."""
        header, aliases = self._headers.get(role), OWN_NAMES.get(role, (role,))
        if header is None:
            own = [column for column in map(self._find, aliases) if column is not None][:1]
            if role == "task" and not self._named_columns().isdisjoint(own):
                return ()
            ends = {c: re.split(r"[./]", c)[-1].casefold() for c in self._names if c not in self._used}
            nested = [column for column, end in ends.items() if end in aliases and role in ("seed", "state")]
            return tuple(own or (nested if len(nested) == 1 else ()))
        if header == "":
            self._used.update(filter(None, map(self._find, aliases)))
            return ()
        if role == "score" and self._find(header) is None:
            header = header[header[:1] in ("+", "-") :]
        is_joined = role in NAMES and self._find(header) is None
        return tuple(self._column(name.strip()) for name in (header.split("+") if is_joined else [header]))


def cell_score(text: str) -> Optional[float]:
    """Return the score in a cell, a number or a word such as `true`; None if it has none."""
    return SCORE_WORDS.get(text.casefold(), cell_number(text))


def _columns_of(records: Sequence[Record]) -> List[str]:
    return list(dict.fromkeys(column for record in records for column in record.cells))


def _propose_roles(cells: Mapping[str, List[str]], columns: Mapping[str, Sequence[str]]) -> List[Change]:
    """Return what the cells of free columns suggest to be the scores and the candidates, where `columns` lack them."""
    numbers = _numbers_of(cells)
    texts = {c: own for c, own in cells.items() if c not in numbers and not all(map(TIME.fullmatch, own))}
    scores = [{}] if columns["score"] else _propose_scores(numbers)
    is_named = columns["candidate"] or any("{candidate}" in change.get("score", "") for change in scores)
    candidates = [{}] if is_named else _propose_candidates(texts)
    changes: List[Change] = [{**candidate, **score} for candidate in candidates for score in scores]
    return changes[:4]


def _numbers_of(cells: Mapping[str, List[str]]) -> Dict[str, List[str]]:
    return {column: texts for column, texts in cells.items() if texts and None not in map(cell_score, texts)}


def _find_patterns(columns: Sequence[str]) -> List[str]:
    """Return the patterns of columns that differ only before ` - `, or in a number."""
    texts: DefaultDict[str, Set[str]] = defaultdict(set)
    for column in columns:
        name, dash, metric = column.rpartition(" - ")
        for match in () if dash else re.finditer(r"\d+", column):
            part = "seed" if re.search(r"(?i)seed|run", column[: match.start()]) else "split"
            texts[f"{column[: match.start()]}{{{part}}}{column[match.end() :]}"].add(column)
        if dash:
            texts[f"{{candidate}} - {metric}"].add(name)
    return sorted((pattern for pattern, same in texts.items() if len(same) > 1), key=len)


def _propose_scores(numbers: Mapping[str, List[str]]) -> List[Dict[str, Any]]:
    """Return patterns of columns; or else the columns of numbers that vary most, those of a test set first."""
    patterns = _find_patterns(list(numbers))
    if patterns and "{candidate}" in patterns[0]:
        rows = [
            column for column in numbers if not any(corrections.match_pattern(pattern, column) for pattern in patterns)
        ]
        return [{"score": patterns[0], **(corrections.keep_rows(rows[0], numbers[rows[0]][-1:]) if rows else {})}]
    num_values = {column: len(set(cells)) for column, cells in numbers.items() if not COUNT_NAME.search(column)}
    varied = [column for column, number in num_values.items() if 2 * number > len(numbers[column])]
    binary = [column for column in num_values if set(map(cell_score, numbers[column])) <= {0.0, 1.0}]
    likely = varied or binary or sorted(num_values, key=num_values.__getitem__)[-1:]
    return [{"score": name} for name in (patterns or sorted(likely, key=_measure_rank))[:2]]


def _propose_candidates(texts: Mapping[str, List[str]]) -> List[Change]:
    """Return the columns of texts that are named as models are, or repeat; or else a pattern of texts that differ."""
    likely: List[Change] = []
    others: List[Change] = []
    for column in sorted(texts, key=lambda column: MODEL_NAME.search(column) is None):
        cells, pattern = texts[column], corrections.propose_pattern(texts[column])
        num_texts = len(set(cells))
        if num_texts == len(cells) and "{seed}" in pattern:
            likely.append({"parse": (f"{column}={pattern}",)})
        elif MODEL_NAME.search(column) or 1 < num_texts < len(cells):
            likely.append({"columns": {"candidate": column}})
        elif pattern:
            others.append({"columns": {"candidate": column}})
    return (likely or others)[:2]


def _measure_rank(column: str) -> Tuple[bool, bool]:
    """Order columns such that measures on a test set come first, then those on a validation set."""
    name = column.casefold()
    return "test" not in name, "eval" not in name and "val" not in name
