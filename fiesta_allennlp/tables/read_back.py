"""Says what was understood of a table of scores: one record of facts, three lines that are made of them, and notes
about what may be wrong."""

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import median
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.names import comparison_key
from fiesta_allennlp.core.settings.choice_settings import INDEPENDENT
from fiesta_allennlp.core.settings.metrics import Metric, find_longer_names
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.tables.columns import NAMES, Roles
from fiesta_allennlp.tables.corrections import shown_cell
from fiesta_allennlp.tables.run_rows import RunRow, group_rows
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


def understand(
    name: str,
    all_rows: Sequence[RunRow],
    rows: Sequence[RunRow],
    roles: Roles,
    metric: Metric,
    splits: Optional[str],
) -> ReadBack:
    """Return the facts about a table: about all its rows, and those that are runs."""
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
    return ReadBack(
        name=name,
        runs={row.candidate: len(by_candidate.get(row.candidate, ())) for row in rows},
        metric=metric,
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        columns=columns,
        has_splits=has_splits,
        are_splits_rows=roles.numbered == "split",
        are_splits_independent=is_independent,
        are_splits_seeds=bool(rows) and all(row.split == row.seed for row in rows),
        knows_seeds=bool(roles.columns["seed"]) and (not rows or any(roles.text(row.record, "seed") for row in rows)),
        tasks=tuple(dict.fromkeys(row.task for row in rows if row.task)),
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
    for _, group in groupby(sorted(by_candidate, key=comparison_key), comparison_key):  # case, blanks, accents
        names = [shown_cell(ascii(name)) for name in group]
        if len(names) > 1:
            yield f"{join_some(names, ' and ')} are {len(names)} candidates"


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
