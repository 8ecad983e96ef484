"""A table of scores: its runs, and what was understood of it, as facts and as lines that are made of them."""

import csv
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.errors import ConfigError, DataError, join_some
from fiesta_allennlp.core.files import atomic_replacement, shorten, to_csv_cell
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.tables.columns import NAMES
from fiesta_allennlp.tables.corrections import shown_cell
from fiesta_allennlp.tables.table_files import Record, cell_number

Outcome = Union[float, str, None]
"""A score, the reason for which a run has none, or None for a run that has not finished."""


NO_SCORE = "finished without a score"
"""The outcome of a row whose state says that the run has finished."""


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


@dataclass(frozen=True)
class RunTable:
    """The runs in the table `name`, and the facts that were read from it.

    Attributes:
        rows: the runs.
        files: the files that were read, without the standard input.
        runs: the number of scores of each candidate.
        lowest, highest: the range of the scores; None without any.
        columns: the columns of each role, joined with `+`; empty for a role without any.
        tasks: the tasks over which candidates are averaged; empty without a column of tasks.
        has_splits: whether runs have splits. Otherwise, all of them share one official split.
        are_splits_rows: whether the rows of a wide table are the splits.
        are_splits_independent: whether each run has a split of its own, because an option says so.
        are_splits_seeds: whether the split equals the seed in every row.
        knows_seeds: whether the seeds are known. Otherwise, each row is a run with a new seed.
        num_splits, num_shared_splits: the splits with a score, and those on which every candidate has one.
        num_repeats: the largest number of scores of a candidate on one split.
        num_failed, num_unfinished: the runs without a score.
        num_nameless: the rows left out, which have no score and lack a name, a split or a seed.
        notes: questions about scores that may be wrong.
    """

    rows: Sequence[RunRow] = field(repr=False)
    files: Tuple[str, ...] = field(repr=False)
    name: str
    runs: Mapping[str, int]
    metric: Metric
    lowest: Optional[float]
    highest: Optional[float]
    columns: Mapping[str, str]
    tasks: Tuple[str, ...]
    has_splits: bool
    are_splits_rows: bool
    are_splits_independent: bool
    are_splits_seeds: bool
    knows_seeds: bool
    num_splits: int
    num_shared_splits: int
    num_repeats: int
    num_failed: int
    num_unfinished: int
    num_nameless: int
    notes: Tuple[str, ...]

    @property
    def data(self) -> Dict[str, Any]:
        """The facts as plain data for JSON."""
        facts = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("rows", "files")}
        return {**facts, "metric": self.metric.option_text, "are_splits_assumed": self.are_splits_assumed}

    @property
    def lines(self) -> Tuple[str, ...]:
        """Three lines about the runs, the splits and the columns, and one for each note."""
        named = [f"{role} = {shown_cell(text)}" for role, text in self.columns.items() if text]
        counts = (
            f"{self.num_failed} failed" if self.num_failed else "",
            f"{self.num_unfinished} not finished" if self.num_unfinished else "",
            f"{self.num_nameless} left out, without a score and a name, split or seed" if self.num_nameless else "",
        )
        tasks = f"average of {len(self.tasks)} tasks ({join_some(self.tasks)})" if len(self.tasks) > 1 else ""
        facts = "; ".join(filter(None, (tasks, self._splits_text(), ", ".join(filter(None, counts)))))
        remedy = ". If all runs share one official split: --splits official" if self.are_splits_assumed else ""
        return (self._runs_line(), facts + remedy, f"columns: {', '.join(named)}", *self.notes)

    def _runs_line(self) -> str:
        has_one_each = len(self.runs) > 1 and set(self.runs.values()) == {1}
        names = [shown_cell(name) + ("" if has_one_each else f" {number}") for name, number in self.runs.items()]
        num_runs, each = sum(self.runs.values()), " of one run each" if has_one_each else ""
        scores = f"{shown_cell(self.metric.name)} from {self.lowest:.6g} to {self.highest:.6g}, " if num_runs else ""
        return (
            f"{self.name}: {count_text(num_runs, 'run')} of {count_text(len(self.runs), 'candidate')}{each} "
            f"({join_some(names)}), {scores}the {'lowest' if self.metric.minimise else 'highest'} mean wins"
        )

    def _splits_text(self) -> str:
        if not self.has_splits:
            seeds = "" if self.knows_seeds else "; no seeds: each row is a run with a new seed"
            return f"no splits: all runs share one official split, so scores are not paired{seeds}"
        if self.are_splits_independent:
            return "each run has a split of its own, so scores are not paired"
        origin = " (rows of a wide table)" if self.are_splits_rows else ""
        origin = " (equal to the seeds)" if self.are_splits_seeds else origin
        number = f"{count_text(self.num_splits, 'split')}{origin}"
        if len(self.runs) > 1 and self.num_splits:
            is_shared = self.num_shared_splits == self.num_splits
            number += " that all share" if is_shared else f", {self.num_shared_splits} of them shared by all"
        return number + (f", up to {self.num_repeats} runs of a candidate on each" if self.num_repeats > 1 else "")

    @property
    def are_splits_assumed(self) -> bool:
        """Whether runs are paired by numbers that may be seeds of one official split."""
        return self.are_splits_seeds and not self.are_splits_independent and self.num_shared_splits > 1

    @property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(self.runs)

    @property
    def is_paired(self) -> bool:
        """Whether runs with equal splits are compared."""
        return self.has_splits and not self.are_splits_independent

    @property
    def is_complete(self) -> bool:
        """Whether every candidate has a score on every split, and nothing is running."""
        return self.num_shared_splits == self.num_splits > 1 and not self.num_unfinished

    @cached_property
    def scores(self) -> Dict[str, List[float]]:
        """The scores of each candidate that has any."""
        scored = group_rows((row for row in self.rows if row.is_scored), "candidate")
        return {name: [row.score for row in own] for name, own in scored.items()}

    def costs(self, column: str) -> Dict[str, float]:
        """Return the mean of a column of numbers over the finished runs of each candidate that has any."""
        numbers = defaultdict(list)
        for row in self.rows:
            number = cell_number(row.record.cells.get(column, ""))
            if row.is_scored and number is not None:
                numbers[row.candidate].append(number)
        return {name: fmean(own) for name, own in numbers.items()}

    def refuse_overwriting(self, *paths: Path) -> None:
        """Refuse to write over a file of the table, which may have other rows and columns than what was read."""
        sources = {Path(file).resolve() for file in self.files}
        for path in paths:
            if path.resolve() in sources:
                raise ConfigError(f"{path} is a file of the table and would be overwritten. Choose another --output.")

    def refuse_tasks(self, command: str, remedy: str) -> None:
        """Refuse a table of several tasks for a command that compares candidates on one."""
        if len(self.tasks) > 1:
            raise DataError(
                f"{self.name}: {command} compares candidates on one task, but there are {len(self.tasks)}: "
                f"{join_some(self.tasks)}. {remedy}"
            )

    def refuse_single(self) -> None:
        """Refuse a table with scores of fewer than two candidates."""
        if len(self.scores) < 2:
            raise DataError(
                f"{self.name}: the table needs scores for at least 2 candidates but has {len(self.scores)}: "
                f"{join_some(self.scores) or 'none'}."
            )

    def history(self, candidates: Sequence[str] = ()) -> History:
        """Return what the rows tell, in their order: finished, failed and pending runs of the candidates, by default of
        those in the table. Runs on one split of a task have its number, so that a candidate's repeats on it can be
        averaged. Without two splits of a task, each run has a number of its own."""
        has_units = self.is_paired and self.num_splits > max(1, len(self.tasks))
        splits: Dict[Tuple[str, str], int] = {}
        tasks: Dict[int, str] = {}
        num_runs: Counter[str] = Counter()
        evaluations, pending, failures = [], [], []
        for position, row in enumerate(self.rows):
            split = splits.setdefault((row.task, row.split), len(splits)) if has_units else position
            tasks[split] = row.task
            request = Request(row.candidate, num_runs[row.candidate], split, 0, 0, 0)
            num_runs[row.candidate] += 1
            if row.outcome is None:
                pending.append(request)
            elif isinstance(row.outcome, str):
                failures.append(Failure(request, "error", f"{row.place}: {shorten(row.outcome)}"))
            else:
                evaluations.append(Evaluation(request, row.outcome, self.metric.name, seconds=row.seconds or 0.0))
        return History(
            tuple(candidates) or self.candidates,
            tuple(evaluations),
            tuple(pending),
            tuple(failures),
            sign=self.metric.sign,
            tasks=tasks if len(self.tasks) > 1 else {},
        )

    def write(self, path: Path) -> None:
        """Write the runs as a CSV file with our own columns, which every command reads without options."""
        has_names = True, bool(self.tasks), self.has_splits, self.knows_seeds
        columns = [name for name, has_name in zip(NAMES, has_names, strict=True) if has_name]
        with atomic_replacement(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*columns, "score", "metric", "seconds"])
            for row in self.rows:
                score = "failed" if isinstance(row.outcome, str) else row.outcome
                names = [to_csv_cell(getattr(row, column)) for column in columns]
                writer.writerow([*names, score, to_csv_cell(self.metric.option_text), row.seconds])
