"""Says what was understood of a table of scores: one record of facts, and the lines that are made of it."""

import shlex
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_LINE_CHARACTERS, join_some
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.texts import count_text
from fiesta_allennlp.tables.forms import SplitSource, shown_cell


@dataclass(frozen=True)
class VaryingColumn:
    """A column that is not used, but has several values within each of the `candidates`.

    `share` is the share of the variance of a candidate's scores that lies between these values, adjusted for their
    number. `num_elsewhere` counts the runs without a score that have none of them: keeping one value drops these runs.
    """

    column: str
    values: Tuple[str, ...]
    candidates: Tuple[str, ...]
    share: float = 0.0
    num_elsewhere: int = 0


@dataclass(frozen=True)
class RepeatedColumn:
    """A column that is not used, and has each of its few values in several scored rows."""

    column: str
    values: Tuple[str, ...]


@dataclass(frozen=True)
class ReadBack:
    """The facts that were read from the table `name`.

    Attributes:
        runs: the number of scores of each candidate.
        lowest, highest: the range of the scores; None without any.
        splits_from: what says which runs share a split.
        are_splits_independent: whether each run has a split of its own, because an option says so.
        are_splits_seeds: whether the split equals the seed in every row.
        num_splits, num_shared_splits: the splits with a score, and those on which every candidate has one.
        num_failed, num_unfinished: the runs without a score.
        num_nameless: the rows left out, which have no score and lack a name, a split or a seed.
        varying: the columns that are not used, but repeat several values within a candidate, the one with which the
            scores vary most first.
        candidate_column: the name of the column of the candidates; empty if no column has them.
        repeated: if each candidate has one run, the columns of which one may have the candidates instead.
    """

    name: str
    runs: Mapping[str, int]
    metric: Metric
    lowest: Optional[float]
    highest: Optional[float]
    splits_from: SplitSource
    are_splits_independent: bool
    are_splits_seeds: bool
    num_splits: int
    num_shared_splits: int
    num_failed: int
    num_unfinished: int
    num_nameless: int
    varying: Tuple[VaryingColumn, ...]
    candidate_column: str = ""
    repeated: Tuple[RepeatedColumn, ...] = ()

    @property
    def has_one_run_each(self) -> bool:
        return len(self.runs) > 1 and set(self.runs.values()) == {1}

    @property
    def are_splits_assumed(self) -> bool:
        """Whether runs are paired by numbers that may be seeds of one official split."""
        is_given = self.splits_from != SplitSource.LISTS and not self.are_splits_seeds
        return not is_given and not self.are_splits_independent and self.num_shared_splits > 0 and len(self.runs) > 1

    @property
    def data(self) -> Dict[str, Any]:
        """The facts as plain data for JSON."""
        return {
            **asdict(self),
            "metric": self.metric.option_text,
            "splits_from": self.splits_from.name.lower(),
            "are_splits_assumed": self.are_splits_assumed,
        }

    @property
    def lines(self) -> Tuple[str, ...]:
        """Two lines, and more if the candidates may be in another column, or a column that is not used differs within a
        candidate."""
        all_lines = (self._candidates_line(), self._runs_line(), self._splits_line(), self._columns_line())
        return tuple(filter(None, all_lines))

    def _candidates_line(self) -> str:
        """Ask about a column that gives each run a candidate of its own, unless `candidate` is its name."""
        if not self.has_one_run_each or comparison_key(self.candidate_column) in ("", "candidate"):
            return ""
        others = [f"'{shown_cell(each.column)}' ({_join(each.values)})" for each in self.repeated]
        question = ", or ".join([f"is '{shown_cell(self.candidate_column)}' the candidate", *others])
        return f"{len(self.runs)} candidates with 1 run each: {question}? Name it with --columns candidate=COLUMN"

    def _runs_line(self) -> str:
        has_one_each = self.has_one_run_each
        names = [shown_cell(name) + ("" if has_one_each else f" {number}") for name, number in self.runs.items()]
        num_runs, each = sum(self.runs.values()), " of one run each" if has_one_each else ""
        scores = f"{shown_cell(self.metric.name)} from {self.lowest:.6g} to {self.highest:.6g}, " if num_runs else ""
        groups = groupby(sorted(self.runs, key=comparison_key), comparison_key)  # case, blanks, the form of accents
        alike = [
            f"{join_some([shown_cell(ascii(name)) for name in same], ' and ')} are {len(same)} candidates"
            for _, group in groups
            if len(same := tuple(group)) > 1
        ]
        return (
            f"{self.name}: {count_text(num_runs, 'run')} of {count_text(len(self.runs), 'candidate')}{each} "
            f"({join_some(names)}), {scores}the {'lowest' if self.metric.minimise else 'highest'} mean wins"
            f"{'; ' * bool(alike)}{join_some(alike, '; ', max_characters=MAX_LINE_CHARACTERS)}"
        )

    def _splits_line(self) -> str:
        counts = (
            f"{self.num_failed} failed" if self.num_failed else "",
            f"{self.num_unfinished} not finished" if self.num_unfinished else "",
            f"{self.num_nameless} left out, without a score and a name, split or seed" if self.num_nameless else "",
        )
        remedy = "If all runs share one official split: --splits official" if self.are_splits_assumed else ""
        facts = "; ".join(filter(None, (self._splits_text(), ", ".join(filter(None, counts)))))
        return ". ".join(filter(None, (facts, remedy)))

    def _splits_text(self) -> str:
        if self.splits_from == SplitSource.NONE:
            return (
                "no splits: all runs share one official split, so scores are not paired, and P(best) is about new seeds"
            )
        if self.are_splits_independent:
            return "each run has a split of its own, so scores are not paired"
        origin = "" if self.splits_from == SplitSource.COLUMN else f" ({self.splits_from.value})"
        origin = " (equal to the seeds)" if self.are_splits_seeds else origin
        number = f"{count_text(self.num_splits, 'split')}{origin}"
        if len(self.runs) < 2 or not self.num_splits:
            return number
        if self.num_shared_splits == self.num_splits:
            return f"{number} that all share"
        return f"{number}, {self.num_shared_splits} of them shared by all"

    def _columns_line(self) -> str:
        if not self.varying:
            return ""
        columns = [f"{shown_cell(each.column)} = {_join(each.values)} ({self._whom(each)})" for each in self.varying]
        texts = join_some(columns, "; ", max_characters=MAX_LINE_CHARACTERS)
        condition = next((each for each in self.varying if not each.num_elsewhere), None)
        advice = "" if condition is None else f". To keep one: {where_option(condition.column, condition.values[0])}"
        return f"differs within a candidate, not used: {texts}{advice}"

    def _whom(self, column: VaryingColumn) -> str:
        return "all" if len(column.candidates) == len(self.runs) > 1 else _join(column.candidates)


def where_option(column: str, value: str) -> str:
    """Return the option that keeps the rows with this value, as a shell takes it."""
    return f"--where {shlex.quote(shown_cell(f'{column}={value}'))}"


def _join(names: Sequence[str]) -> str:
    return join_some(list(map(shown_cell, names)))
