"""Says what was understood of a table of scores: one record of facts, and the lines that are made of it."""

import shlex
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.core.errors import MAX_LINE_CHARACTERS, escape_invisible, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.texts import count_text
from fiesta_allennlp.tables.forms import SplitSource

MIN_VALUES, MAX_VALUES = 2, 20
"""The bounds of the number of values, among the scored rows of a candidate, of a column that is read back."""

MAX_CELL = 40
"""The most characters of a cell that a line shows."""


@dataclass(frozen=True)
class VaryingColumn:
    """A column that is not used, but has several values within each of the `candidates`."""

    column: str
    values: Tuple[str, ...]
    candidates: Tuple[str, ...]


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
        varying: the columns that are not used, but repeat several values within a candidate.
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

    @property
    def look_alikes(self) -> List[Tuple[str, ...]]:
        """The candidates whose names differ only in case, in blanks or in how accents are encoded."""
        groups = groupby(sorted(self.runs, key=comparison_key), comparison_key)
        return [names for _, group in groups if len(names := tuple(group)) > 1]

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
        """Two lines, and a third one if a column that is not used differs within a candidate."""
        return tuple(filter(None, (self._runs_line(), self._splits_line(), self._columns_line())))

    def _runs_line(self) -> str:
        has_one_each = len(self.runs) > 1 and set(self.runs.values()) == {1}
        names = [_show(name) + ("" if has_one_each else f" {number}") for name, number in self.runs.items()]
        num_runs, each = sum(self.runs.values()), " of one run each" if has_one_each else ""
        scores = f"{_show(self.metric.name)} from {self.lowest:.6g} to {self.highest:.6g}, " if num_runs else ""
        alike = [
            f"{join_some([_show(ascii(name)) for name in names], ' and ')} are {len(names)} candidates"
            for names in self.look_alikes
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
        columns = [
            f"{_show(each.column)} = {join_some(list(map(_show, each.values)))} ({self._whom(each)})"
            for each in self.varying
        ]
        example = shlex.quote(_show(f"{self.varying[0].column}={self.varying[0].values[0]}"))
        texts = join_some(columns, "; ", max_characters=MAX_LINE_CHARACTERS)
        return f"differs within a candidate, not used: {texts}. To keep one: --where {example}"

    def _whom(self, column: VaryingColumn) -> str:
        return "all" if len(column.candidates) == len(self.runs) > 1 else join_some(list(map(_show, column.candidates)))


def _show(text: str) -> str:
    return shorten(escape_invisible(text), MAX_CELL)
