"""The rows of a table of scores, one for each run: one record, whatever form the table has."""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, DefaultDict, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.tables.forms import Sheet, SplitSource
from fiesta_allennlp.tables.read_back import ReadBack, RepeatedColumn, VaryingColumn
from fiesta_allennlp.tables.sources import UNNAMED

Outcome = Union[float, str, None]
"""A score, the reason for which a run has none, or None for a run that has not finished."""


class RunRow(NamedTuple):
    """A run in a table of scores. `steps` are the values of the columns whose largest value counts, and
    `seconds` is the duration, None if it is unknown."""

    candidate: str
    split: str
    seed: str
    outcome: Outcome
    metric: str
    steps: Tuple[float, ...]
    seconds: Optional[float]
    sheet: Sheet
    number: Union[int, str]
    cells: Sequence[Any]

    @property
    def where(self) -> str:
        """The table and the line, for messages."""
        return self.sheet.where(self.number)

    @property
    def is_scored(self) -> bool:
        return isinstance(self.outcome, float)


@dataclass(frozen=True)
class RunTable:
    """The rows of the table `name`. `splits_from` says which runs share a split. If `is_independent`, each run has a
    split of its own. `varying` are the columns that are not used but differ within a candidate, and `num_nameless`
    counts the runs that have neither a score nor all names."""

    name: str
    rows: List[RunRow]
    splits_from: SplitSource
    metric: Metric = UNNAMED
    is_independent: bool = False
    varying: Tuple[VaryingColumn, ...] = ()
    num_nameless: int = 0
    more_candidates: Tuple[str, ...] = ()
    candidate_column: str = ""
    repeated: Tuple[RepeatedColumn, ...] = ()

    @property
    def minimise(self) -> bool:
        return self.metric.minimise

    @property
    def has_splits(self) -> bool:
        """Whether runs have splits. Otherwise, all of them share one official split."""
        return self.splits_from != SplitSource.NONE

    @property
    def is_paired(self) -> bool:
        """Whether runs with equal splits are compared."""
        return self.has_splits and not self.is_independent

    @cached_property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(dict.fromkeys([*(row.candidate for row in self.rows), *self.more_candidates]))

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

    def with_candidates(self, names: Sequence[str]) -> "RunTable":
        """Return the table with candidates that may have no row yet."""
        return replace(self, more_candidates=tuple(names))

    @cached_property
    def read_back(self) -> ReadBack:
        """What was understood of the table."""
        splits_by_candidate: Dict[str, Dict[str, None]] = {name: {} for name in self.scores}
        for row in self.rows:
            if row.is_scored:
                splits_by_candidate[row.candidate][row.split] = None
        all_splits = [set(splits) for splits in splits_by_candidate.values()] if self.is_paired else []
        scores = [score for own_scores in self.scores.values() for score in own_scores]
        return ReadBack(
            name=self.name,
            runs={name: len(self.scores.get(name, ())) for name in self.candidates},
            metric=self.metric,
            lowest=min(scores, default=None),
            highest=max(scores, default=None),
            splits_from=self.splits_from,
            are_splits_independent=self.has_splits and self.is_independent,
            are_splits_seeds=self.is_paired and self.splits_are_seeds,
            num_splits=len(set().union(*all_splits)),
            num_shared_splits=len(set.intersection(*all_splits)) if all_splits else 0,
            num_failed=sum(isinstance(row.outcome, str) for row in self.rows),
            num_unfinished=sum(row.outcome is None for row in self.rows),
            num_nameless=self.num_nameless,
            varying=self.varying,
            candidate_column=self.candidate_column,
            repeated=self.repeated,
        )

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
                evaluations.append(Evaluation(request, outcome, self.metric.name, seconds=row.seconds or 0.0))
        return History(tuple(candidates) or self.candidates, tuple(evaluations), tuple(pending), tuple(failures))
