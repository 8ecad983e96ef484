"""Says what was understood of a table of scores: one record of facts, three lines that are made of them, and notes
about what may be wrong."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import median
from typing import Any, DefaultDict, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.core.settings.metrics import Metric, find_longer_names
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.tables.columns import Roles, RunRow
from fiesta_allennlp.tables.table_files import shown_cell
from fiesta_allennlp.tables.table_settings import COLUMNS

MAX_SDS = 20.0
"""The robust sds from the median of the others at which a score may be in another unit, or of another run."""

MIN_OTHER_RUNS = 3
"""The least number of other scores of a candidate that say how far its scores vary."""


@dataclass(frozen=True)
class ReadBack:
    """The facts that were read from the table `name`.

    Attributes:
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
        is_binary: whether all scores are 0 or 1, and both occur.
        notes: questions about scores that may be wrong.
    """

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
    is_binary: bool = False
    notes: Tuple[str, ...] = ()

    @property
    def are_splits_assumed(self) -> bool:
        """Whether runs are paired by numbers that may be seeds of one official split."""
        return self.are_splits_seeds and not self.are_splits_independent and self.num_shared_splits > 1

    @property
    def data(self) -> Dict[str, Any]:
        """The facts as plain data for JSON."""
        return {**asdict(self), "metric": self.metric.option_text, "are_splits_assumed": self.are_splits_assumed}

    @property
    def lines(self) -> Tuple[str, ...]:
        """Three lines about the runs, the splits and the columns, and one for each note."""
        named = [f"{role} = {shown_cell(text)}" for role, text in self.columns.items() if text]
        return (self._runs_line(), self._splits_line(), f"columns: {', '.join(named)}", *self.notes)

    def _runs_line(self) -> str:
        has_one_each = len(self.runs) > 1 and set(self.runs.values()) == {1}
        names = [shown_cell(name) + ("" if has_one_each else f" {number}") for name, number in self.runs.items()]
        num_runs, each = sum(self.runs.values()), " of one run each" if has_one_each else ""
        scores = f"{shown_cell(self.metric.name)} from {self.lowest:.6g} to {self.highest:.6g}, " if num_runs else ""
        return (
            f"{self.name}: {count_text(num_runs, 'run')} of {count_text(len(self.runs), 'candidate')}{each} "
            f"({join_some(names)}), {scores}the {'lowest' if self.metric.minimise else 'highest'} mean wins"
        )

    def _splits_line(self) -> str:
        counts = (
            f"{self.num_failed} failed" if self.num_failed else "",
            f"{self.num_unfinished} not finished" if self.num_unfinished else "",
            f"{self.num_nameless} left out, without a score and a name, split or seed" if self.num_nameless else "",
        )
        tasks = f"average of {len(self.tasks)} tasks ({join_some(self.tasks)})" if len(self.tasks) > 1 else ""
        facts = "; ".join(filter(None, (tasks, self._splits_text(), ", ".join(filter(None, counts)))))
        remedy = ". If all runs share one official split: --splits official" if self.are_splits_assumed else ""
        return facts + remedy

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


def find_notes(rows: Sequence[RunRow], roles: Roles, metric: Metric) -> Tuple[str, ...]:
    """Return the questions about columns that may name something else, and about scores that may be wrong."""
    scored: DefaultDict[str, List[RunRow]] = defaultdict(list)
    for row in rows:
        if row.is_scored:
            scored[row.candidate].append(row)
    notes = _name_notes(scored, roles)
    if not is_binary(rows):
        by_split: DefaultDict[Tuple[str, str], List[float]] = defaultdict(list)
        for row in rows:
            if isinstance(row.outcome, float):
                by_split[row.task, row.split].append(row.outcome)
        centres = {split: median(scores) for split, scores in by_split.items()}
        notes += [note for name, own_rows in scored.items() for note in _run_notes(name, own_rows, centres, metric)]
    return tuple(notes)


def is_binary(rows: Sequence[RunRow]) -> bool:
    return {row.outcome for row in rows if row.is_scored} == {0.0, 1.0}


def _name_notes(scored: Mapping[str, Sequence[RunRow]], roles: Roles) -> List[str]:
    notes = []
    column = roles.option_text("candidate")
    if len(scored) > 2 and {len(rows) for rows in scored.values()} == {1} and comparison_key(column) != "candidate":
        notes.append(
            f"each candidate has one run: is '{shown_cell(column)}' the candidate? Name it: --columns candidate=COLUMN"
        )
    first = next((rows[0].record for rows in scored.values()), None)
    if first is not None and (others := find_longer_names(roles.score_text, first.cells)):
        others_text = f"{first.place} also has {join_some(others)}"
        notes.append(f"the score is the column of exactly the name {roles.score_text}; {others_text}")
    for _, group in groupby(sorted(scored, key=comparison_key), comparison_key):  # case, blanks, the form of accents
        same = list(group)
        if len(same) > 1:
            names = [shown_cell(ascii(name)) for name in same]
            notes.append(f"{join_some(names, ' and ')} are {len(same)} candidates")
    return notes


def _run_notes(
    name: str, rows: Sequence[RunRow], centres: Mapping[Tuple[str, str], float], metric: Metric
) -> List[str]:
    """Ask about a candidate one of whose scores is far better than its others, each compared with the median of its
    split in `centres`."""
    scores = [float(row.outcome) for row in rows if isinstance(row.outcome, float)]
    if len(scores) <= MIN_OTHER_RUNS:
        return []
    residuals = [score - centres[row.task, row.split] for score, row in zip(scores, rows, strict=True)]
    centre = median(residuals)
    sd = 1.4826 * median(abs(residual - centre) for residual in residuals)
    best = max(range(len(scores)), key=lambda position: metric.sign * residuals[position])
    if sd > 0 and metric.sign * (residuals[best] - centre) > MAX_SDS * sd:
        return [
            f"{rows[best].place}: {scores[best]:.6g} is far from the other runs of {shown_cell(name)}, whose median is "
            f"{median(scores):.6g}: is it in another unit?"
        ]
    return []


def describe_columns(roles: Roles) -> Dict[str, str]:
    return {role: roles.score_text if role == "score" else roles.option_text(role) for role in COLUMNS}
