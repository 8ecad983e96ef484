"""The rows of a table of scores, one for each run: one record, whatever form the table has."""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, DefaultDict, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.errors import DataError, escape_invisible
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import MAX_SCORE, Evaluation, Failure, History, Request
from fiesta_allennlp.selection.metrics import Metric, score_notes
from fiesta_allennlp.tables.forms import Sheet
from fiesta_allennlp.tables.sources import UNNAMED

FAILED, RUNNING = "failed", "running"
"""States of a run without a score. `failed` also stands for the score of such a run."""

Outcome = Union[float, str, None]
"""A score, the reason for which a run has none, or None for a run that has not finished."""

STATES: Mapping[str, str] = {
    **dict.fromkeys(("finished", "complete", "completed"), "finished"),
    **dict.fromkeys(("failed", "crashed", "killed", "fail", "pruned", "preempted"), FAILED),
    **dict.fromkeys(("running", "waiting", "scheduled", "pending", "queued", "preempting"), RUNNING),
}
"""The states of runs in Weights & Biases, MLflow, Optuna and `evaluations.csv`, in lower case."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE_NUMBER = re.compile(r"0*([0-9]+)(\.0*)?")

NO_SPLITS_NOTE = (
    "The table has no split column: all runs share one official split, and only seeds vary. Scores are not paired, and "
    "P(best) refers to new seeds on this split, not to new data."
)
OFFICIAL_SPLIT_NOTE = NO_SPLITS_NOTE.replace("The table has no split column: all", "All")
SEED_SPLITS_NOTE = (
    "Split equals seed in every row, so runs with equal numbers are compared as runs on the same data. This is right "
    "if the number also determined the split. If all runs share one official split, add --splits official."
)
PAIRED_BY_POSITION_NOTE = (
    "Scores at equal positions of the lists are compared as runs on the same split. This is right for folds or shared "
    "random splits. If all runs share one official split, add --splits official."
)
NO_SHARED_SPLITS_NOTE = (
    "No two candidates have a split in common, so no scores are paired, and the variation between splits counts as "
    "noise. Use the same name for the same split, or add --splits official if all runs share one official split."
)


class RunRow(NamedTuple):
    """A run in a table of scores."""

    candidate: str
    split: str
    seed: str
    outcome: Outcome
    metric: str
    sheet: Sheet
    number: int

    @property
    def where(self) -> str:
        """The table and the line, for messages."""
        return self.sheet.where(self.number)

    @property
    def is_scored(self) -> bool:
        return isinstance(self.outcome, float)


@dataclass(frozen=True)
class RunTable:
    """The rows of the table `name`. Without `has_splits`, all runs share one official split. If `is_independent`, each
    run has a split of its own. `reader_notes` say what was read, with `has_states` also how many runs lack scores."""

    name: str
    rows: List[RunRow]
    has_splits: bool
    metric: Metric = UNNAMED
    reader_notes: Tuple[str, ...] = ()
    is_independent: bool = False
    has_states: bool = False
    min_score: Optional[float] = None

    @property
    def minimise(self) -> bool:
        return self.metric.minimise

    @property
    def is_paired(self) -> bool:
        """Whether runs with equal splits are compared."""
        return self.has_splits and not self.is_independent

    @cached_property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(dict.fromkeys(row.candidate for row in self.rows))

    @cached_property
    def scores(self) -> Dict[str, List[float]]:
        """The scores of each candidate that has any."""
        scores: DefaultDict[str, List[float]] = defaultdict(list)
        for row in self.rows:
            if isinstance(row.outcome, float):
                scores[row.candidate].append(row.outcome)
        return dict(scores)

    @property
    def splits_are_seeds(self) -> bool:
        """Whether one number decides both the split and the seed of every run."""
        return bool(self.rows) and all(row.split == row.seed for row in self.rows)

    @cached_property
    def notes(self) -> Tuple[str, ...]:
        """Sentences about what was read, and about what splits, seeds and scores mean."""
        twice = [name for name, scores in self.scores.items() if _is_duplicated(scores)]
        duplicates_note = f"Every score of {', '.join(twice)} is in the table more than once. Are runs in it twice?"
        more_notes = (
            *self.reader_notes,
            *score_notes(self.scores, self.metric, min_score=self.min_score),
            duplicates_note if twice else None,
        )
        return (*self._split_notes(), *filter(None, more_notes))

    def _split_notes(self) -> Tuple[str, ...]:
        if not self.has_splits:
            has_column = any("split" in row.sheet.columns for row in self.rows[:1])
            return (OFFICIAL_SPLIT_NOTE if has_column else NO_SPLITS_NOTE,)
        if self.is_independent:
            return ()
        if self.splits_are_seeds:
            return (SEED_SPLITS_NOTE,)
        pairs = {(row.split, row.candidate) for row in self.rows}
        has_no_shared_split = len(pairs) == len({split for split, _ in pairs})
        if len(self.candidates) < 2:
            return ()
        is_list = any(row.sheet.is_list for row in self.rows[:1])
        return (NO_SHARED_SPLITS_NOTE,) if has_no_shared_split else (PAIRED_BY_POSITION_NOTE,) if is_list else ()

    def history(self, candidates: Sequence[str] = ()) -> History:
        """Return what the rows tell, in their order: finished, failed and pending runs of the candidates, by default of
        those in the table. Without shared splits, each run has a number of its own for its split."""
        number_by_split: Dict[str, int] = {}
        num_runs: Dict[str, int] = defaultdict(int)
        evaluations: List[Evaluation] = []
        pending: List[Request] = []
        failures: List[Failure] = []
        for position, row in enumerate(self.rows):
            name, outcome = row.candidate, row.outcome
            split = number_by_split.setdefault(row.split, len(number_by_split)) if self.is_paired else position
            request = Request(name, num_runs[name], split, 0, 0, 0)
            num_runs[name] += 1
            if outcome is None:
                pending.append(request)
            elif isinstance(outcome, str):
                failures.append(Failure(request, "error", f"{row.where}: {shorten(outcome)}"))
            else:
                evaluations.append(Evaluation(request, outcome, self.metric.name))
        return History(tuple(candidates) or self.candidates, tuple(evaluations), tuple(pending), tuple(failures))


def interpret_score(score: Any, state: Optional[str], reason: str, *, where: str) -> Outcome:
    """Interpret the score of a run in a `state` of `STATES`, None if the table has no states. Without a score, a
    `reason` makes it a failure."""
    if state == RUNNING:
        return None
    text = cell_text(score)
    if state == FAILED or text.casefold() == FAILED or (reason and (not text or score != score)):
        return reason or FAILED
    if not text:
        return None if state is None else "finished without a score"
    number = float(score) if isinstance(score, Real) and not isinstance(score, bool) else math.nan
    if NUMBER.fullmatch(text):
        number = float(text)
    if not abs(number) <= MAX_SCORE:
        raise DataError(
            f"{where}: a score must be a number of at most {MAX_SCORE:g} in magnitude but got "
            f"'{shorten(escape_invisible(text))}'. Correct it, write {FAILED} for a run that ended without a score, or "
            "leave it empty (null in JSON, None in Python) for a run that has not finished."
        )
    return number


def cell_text(value: Any) -> str:
    """Return a cell as text without blanks around it; empty for None and for what pandas calls NA."""
    return "" if value is None or type(value).__name__ in ("NAType", "NaTType") else str(value).strip()


def cell_name(value: Any) -> str:
    """Return a cell that names something: empty for NaN, and a whole number in one form for `0`, `0.0` and `00`."""
    text = cell_text(value) if value == value else ""
    match = WHOLE_NUMBER.fullmatch(text)
    return match[1] if match else text


def _is_duplicated(scores: Sequence[float]) -> bool:
    counts = Counter(scores)
    return len(counts) >= 3 and set(counts.values()) == {2}
