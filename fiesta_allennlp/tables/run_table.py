"""Reads a table of scores as a record of runs: every command and every call reads its tables here."""

import csv
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.errors import DataError, escape_invisible, join_some
from fiesta_allennlp.core.files import atomic_replacement, file_digest, shorten, to_csv_cell
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.core.settings.choice_settings import OFFICIAL, SHARED
from fiesta_allennlp.core.settings.metrics import UNNAMED, Metric, error_word
from fiesta_allennlp.selecting.provenance import BroughtRuns
from fiesta_allennlp.tables.columns import NAMES, RoleFinder, Roles
from fiesta_allennlp.tables.corrections import TableError
from fiesta_allennlp.tables.read_back import ReadBack, understand
from fiesta_allennlp.tables.run_identity import identify_runs
from fiesta_allennlp.tables.run_rows import RunRow, group_rows, read_rows
from fiesta_allennlp.tables.table_files import STANDARD_INPUT, STANDARD_INPUT_NAME, Content, cell_number, read_records
from fiesta_allennlp.tables.table_settings import BroughtSettings, NextSettings
from fiesta_allennlp.tables.task_average import scale_rows


@dataclass(frozen=True)
class RunTable:
    """The runs of a table of scores, and what was understood of it."""

    rows: List[RunRow]
    read_back: ReadBack

    @property
    def name(self) -> str:
        return self.read_back.name

    @property
    def metric(self) -> Metric:
        return self.read_back.metric

    @property
    def minimise(self) -> bool:
        return self.metric.minimise

    @property
    def files(self) -> Tuple[str, ...]:
        """The files with runs, without the standard input."""
        return tuple(dict.fromkeys(row.record.file for row in self.rows if row.record.file != STANDARD_INPUT_NAME))

    @property
    def has_splits(self) -> bool:
        """Whether runs have splits. Otherwise, all of them share one official split."""
        return self.read_back.has_splits

    @property
    def is_paired(self) -> bool:
        """Whether runs with equal splits are compared."""
        return self.has_splits and not self.read_back.are_splits_independent

    @property
    def tasks(self) -> Tuple[str, ...]:
        return self.read_back.tasks

    @property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(self.read_back.runs)

    def refuse_tasks(self, command: str, remedy: str) -> None:
        """Refuse a table of several tasks for a command that compares candidates on one."""
        if len(self.tasks) > 1:
            raise DataError(
                f"{self.name}: {command} compares candidates on one task, but there are {len(self.tasks)}: "
                f"{join_some(self.tasks)}. {remedy}"
            )

    @property
    def is_complete(self) -> bool:
        """Whether every candidate has a score on every split, and nothing is running."""
        facts = self.read_back
        return facts.num_shared_splits == facts.num_splits > 1 and not facts.num_unfinished

    @cached_property
    def scores(self) -> Dict[str, List[float]]:
        """The scores of each candidate that has any."""
        scored = group_rows((row for row in self.rows if row.is_scored), "candidate")
        return {name: [row.score for row in own] for name, own in scored.items()}

    def costs(self, column: str) -> Dict[str, float]:
        """Return the mean of a column of numbers over the finished runs of each candidate that has any."""
        costs: Dict[str, float] = {}
        for name, own in group_rows(self.rows, "candidate").items():
            cells = [cell_number(row.record.cells.get(column, "")) for row in own if row.is_scored]
            numbers = [number for number in cells if number is not None]
            if numbers:
                costs[name] = sum(numbers) / len(numbers)
        return costs

    def with_candidates(self, names: Sequence[str]) -> "RunTable":
        """Return the table with candidates that may have no row yet."""
        runs = {**dict.fromkeys([*self.candidates, *names], 0), **self.read_back.runs}
        return replace(self, read_back=replace(self.read_back, runs=runs))

    def history(self, candidates: Sequence[str] = ()) -> History:
        """Return what the rows tell, in their order: finished, failed and pending runs of the candidates, by default of
        those in the table. Runs on one split of a task have its number, so that a candidate's repeats on it can be
        averaged. Without two splits of a task, each run has a number of its own."""
        is_paired = self.is_paired and self.read_back.num_splits > max(1, len(self.tasks))
        splits: Dict[Tuple[str, str], int] = {}
        tasks: Dict[int, str] = {}
        num_runs: Counter[str] = Counter()
        runs: List[Tuple[RunRow, Request]] = []
        for position, row in enumerate(self.rows):
            split = splits.setdefault((row.task, row.split), len(splits)) if is_paired else position
            tasks[split] = row.task
            runs.append((row, Request(row.candidate, num_runs[row.candidate], split, 0, 0, 0)))
            num_runs[row.candidate] += 1
        return History(
            tuple(candidates) or self.candidates,
            tuple(
                Evaluation(request, row.outcome, self.metric.name, seconds=row.seconds or 0.0)
                for row, request in runs
                if isinstance(row.outcome, float)
            ),
            tuple(request for row, request in runs if row.outcome is None),
            tuple(
                Failure(request, "error", f"{row.place}: {shorten(row.outcome)}")
                for row, request in runs
                if isinstance(row.outcome, str)
            ),
            sign=-1 if self.minimise else 1,
            tasks=tasks if len(self.tasks) > 1 else {},
        )

    def brought_runs(self, file: str, digest: str) -> BroughtRuns:
        """Return the runs of this file as a new selection takes them."""
        history = self.history()
        runs: Sequence[Outcome] = (*history.evaluations, *history.failures)
        num_runs: Counter[str] = Counter()
        outcomes: List[Outcome] = []
        for run in runs:
            name = run.request.candidate
            num_runs[name] += 1
            request = Request(name, -num_runs[name], -1 - run.request.split_seed, 0, 0, 0)
            outcomes.append(replace(run, request=request, origin=Origin(file=file), seconds=0.0))
        return BroughtRuns(file, digest, self.has_splits, tuple(outcomes))

    def write(self, path: Path) -> None:
        """Write the runs as a CSV file with our own columns, which every command reads without options."""
        has_names = True, bool(self.tasks), self.has_splits, self.read_back.knows_seeds
        columns = [name for name, has_name in zip(NAMES, has_names, strict=True) if has_name]
        with atomic_replacement(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*columns, "score", "metric", "seconds"])
            for row in self.rows:
                score = "failed" if isinstance(row.outcome, str) else row.outcome
                names = [to_csv_cell(getattr(row, column)) for column in columns]
                writer.writerow([*names, score, to_csv_cell(self.metric.option_text), row.seconds])


def read_run_table(path: Path, settings: Any, content: Content = None) -> RunTable:
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
        records = read_records(paths, content, settings)
        roles, records = RoleFinder(records, settings, is_official=settings.splits == OFFICIAL).find()
        all_rows = read_rows(records, roles, settings)
        rows = scale_rows(identify_runs(all_rows, roles, settings), settings) if all_rows else []
        metric = _determine_metric(rows, roles, settings, str(path))
    except TableError as error:
        raise error.with_commands(settings) from error
    name = join_some([STANDARD_INPUT_NAME if path == STANDARD_INPUT else path for path in paths])
    return RunTable(rows, understand(name, all_rows, rows, roles, metric, settings.splits))


def read_brought_runs(
    settings: BroughtSettings, selection_settings: Mapping[str, Any], content: Content = None
) -> Tuple[BroughtRuns, ReadBack]:
    """Read the runs that exist already, for a selection with these settings, and what was understood of their table:
    the one that `settings` name, or its `content` from Python. Raise as `read_run_table` does."""
    path = Path(str(settings.scores or "rows"))
    splits = OFFICIAL if selection_settings.get("splits") == OFFICIAL else SHARED
    minimise = Metric.parse(selection_settings.get("metric") or "").minimise
    allow = tuple(selection_settings.get("allow") or ())
    table_settings = NextSettings(scores=str(path), splits=splits, minimise=minimise, allow=allow)
    table = read_run_table(path, table_settings, content)
    remedy = (
        f"Write the runs of one: fiesta next {path} --where task=NAME --output runs.csv. Then use --scores runs.csv."
    )
    table.refuse_tasks("fiesta select --scores", remedy)
    return table.brought_runs(path.name, file_digest(path) if content is None else ""), table.read_back


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
    if error := error_word(text):
        raise TableError(
            f"{named_row.place if named_row else path}: '{text}' has '{error}' in its name, so lower is usually "
            "better, but without a sign the highest mean wins. Choose a direction.",
            {"minimise": True},
            {"minimise": False},
        )
    return metric
