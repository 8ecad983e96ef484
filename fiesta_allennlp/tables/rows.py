"""The rows of a table of scores, one for each run: one record, whatever form the table has."""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, DefaultDict, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.records import Outcome as FinishedRun
from fiesta_allennlp.selection.brought import BroughtRuns
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.tables.forms import Sheet, SplitSource
from fiesta_allennlp.tables.read_back import ReadBack

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
    """The rows of a table of scores, and what was understood of it."""

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
    def has_splits(self) -> bool:
        """Whether runs have splits. Otherwise, all of them share one official split."""
        return self.read_back.splits_from != SplitSource.NONE

    @property
    def is_paired(self) -> bool:
        """Whether runs with equal splits are compared."""
        return self.has_splits and not self.read_back.are_splits_independent

    @property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(self.read_back.runs)

    @cached_property
    def scores(self) -> Dict[str, List[float]]:
        """The scores of each candidate that has any."""
        scores: DefaultDict[str, List[float]] = defaultdict(list)
        for row in self.rows:
            if isinstance(row.outcome, float):
                scores[row.candidate].append(row.outcome)
        return dict(scores)

    def with_candidates(self, names: Sequence[str]) -> "RunTable":
        """Return the table with candidates that may have no row yet."""
        runs = {**dict.fromkeys([*self.candidates, *names], 0), **self.read_back.runs}
        return replace(self, read_back=replace(self.read_back, runs=runs))

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
        outcomes = tuple(evaluations), tuple(pending), tuple(failures)
        return History(tuple(candidates) or self.candidates, *outcomes, sign=-1 if self.minimise else 1)

    def brought_runs(self, file: str, digest: str) -> BroughtRuns:
        """Return the runs of this file as a new selection takes them."""
        history = self.history()
        runs: Sequence[FinishedRun] = (*history.evaluations, *history.failures)
        num_runs: Counter[str] = Counter()
        outcomes: List[FinishedRun] = []
        for run in runs:
            name = run.request.candidate
            num_runs[name] += 1
            request = Request(name, -num_runs[name], -1 - run.request.split_seed, 0, 0, 0)
            outcomes.append(replace(run, request=request, origin=Origin(file=file), seconds=0.0))
        return BroughtRuns(file, digest, self.has_splits, tuple(outcomes))


def make_run_table(
    rows: List[RunRow], *, splits_from: SplitSource, is_independent: bool, **further_facts: Any
) -> RunTable:
    """Return the table of these rows. If `is_independent`, each run has a split of its own. `further_facts` are the
    fields of `ReadBack` that the rows do not show."""
    has_splits = splits_from != SplitSource.NONE
    splits_by_candidate: DefaultDict[str, Set[str]] = defaultdict(set)
    num_runs = Counter(row.candidate for row in rows if row.is_scored)
    for row in rows:
        if row.is_scored and has_splits and not is_independent:
            splits_by_candidate[row.candidate].add(row.split)
    scores = [row.outcome for row in rows if isinstance(row.outcome, float)]
    splits = list(splits_by_candidate.values())
    read_back = ReadBack(
        runs={row.candidate: num_runs[row.candidate] for row in rows},
        lowest=min(scores, default=None),
        highest=max(scores, default=None),
        splits_from=splits_from,
        are_splits_independent=has_splits and is_independent,
        are_splits_seeds=bool(rows) and all(row.split == row.seed for row in rows),
        num_splits=len(set().union(*splits)),
        num_shared_splits=len(set.intersection(*splits)) if splits else 0,
        num_failed=sum(isinstance(row.outcome, str) for row in rows),
        num_unfinished=sum(row.outcome is None for row in rows),
        **further_facts,
    )
    return RunTable(rows, read_back)
