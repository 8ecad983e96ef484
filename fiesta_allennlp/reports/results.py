"""The results of a selection or a replay, as records that show themselves on a terminal and in a notebook."""

import csv
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.files import from_csv
from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.listeners.progress import repetition_bar
from fiesta_allennlp.reports.formats import Lines, Shown
from fiesta_allennlp.reports.tables import replay_table, selection_table
from fiesta_allennlp.reports.words import replay_in_words, selection_in_words
from fiesta_allennlp.selection.summary import CandidateSummary
from fiesta_allennlp.tables.replay import replay, summarise_replay
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import ScoreSource

Result = TypeVar("Result", bound="SelectionResult")

LATER = ("num_missed",)
"""The fields of a candidate that earlier versions did not write."""

DECIDED = ("confidence", "budget", "documents")
"""The reasons for which a selection stops with a winner."""


@dataclass(frozen=True, repr=False)
class SelectionResult(Shown):
    """The content of `selection.json`, together with the directory of the selection.

    `best` is None until the selection has decided. `leading` names who leads, decided or not. `confidence` is the
    probability that `leading` is the best (within `margin`), or None if unknown. `scored_on` describes the scored data.
    `seconds` is the sum of the run times of all workers. `lacking` is set if `best` reached the target confidence, but
    was not named because candidates had too few runs; it has the number of runs that each still needs.
    `credible_margin` is the smallest `margin` that would have decided an inconclusive selection, with the `best`
    candidate at that margin. `ahead_on_shared_splits` compares `best` on shared splits with the other candidate of the
    best mean. `score` names the scored set, `test` or `validation`. `min_score` is the score that runs must not miss.
    `plain_loop` estimates the runs of a loop that runs all candidates equally often, once it is decided.
    `expected_loss` is what choosing `leading` costs on average, in the metric's units.
    `collapsed` names the runs far below (or above) their candidate's others, by candidate.
    """

    directory: Path
    best: Optional[str]
    confidence: Optional[float]
    margin: float
    stopped_by: str
    num_evaluations: int
    num_failures: int
    metric: str
    strategy: Mapping[str, Any]
    belief: Mapping[str, Any]
    seed: str
    seconds: float
    candidates: Tuple[CandidateSummary, ...]
    splits: str = ""
    score: str = "test"
    scored_on: str = ""
    min_score: Optional[float] = None
    expected_loss: Optional[float] = None
    plain_loop: Optional[Mapping[str, Any]] = None
    collapsed: Sequence[Mapping[str, Any]] = ()
    leading: Optional[str] = None
    seconds_of_equal_allocation: Optional[float] = None
    lacking: Mapping[str, int] = field(default_factory=dict)
    credible_margin: Optional[Mapping[str, Any]] = None
    ahead_on_shared_splits: Optional[Mapping[str, Any]] = None

    candidate_class: ClassVar[Type[CandidateSummary]] = CandidateSummary

    @classmethod
    def from_summary(cls: Type[Result], summary: Mapping[str, Any], directory: Path) -> Result:
        """Build the result of a selection in this directory, from its return value or from its `selection.json`."""
        candidates = tuple(_candidate(entry, cls.candidate_class) for entry in summary["candidates"])
        best = summary["best"] if summary["stopped_by"] in DECIDED else None
        own = {"directory": directory, "candidates": candidates, "leading": summary["best"], "best": best}
        return cls(**{**_known(cls, summary), **own})

    @classmethod
    def read(cls: Type[Result], directory: Union[str, Path]) -> Result:
        """Read the result of an earlier selection.

        Raises:
            StoreError: if the directory holds no readable result.
        """
        path = RunDirectory(Path(directory)).selection_json
        try:
            return cls.from_summary(json.loads(path.read_text(encoding="utf-8")), Path(directory))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} cannot be read as the result of a selection: {error}. Pass the directory of a finished "
                "selection, or resume it with recover=True."
            ) from error

    @property
    def decided(self) -> bool:
        """True if the selection named a winner, by its probability or at the end of a budget."""
        return self.stopped_by in DECIDED

    def scores(self) -> Dict[str, List[float]]:
        """Return the scores of every candidate, in the order in which they arrived."""
        scores: Dict[str, List[float]] = {candidate.name: [] for candidate in self.candidates}
        with RunDirectory(self.directory).evaluations_csv.open(encoding="utf-8", newline="") as rows:
            for row in csv.DictReader(rows):
                if row["status"] == "finished":
                    scores[from_csv(row["candidate"])].append(float(row["score"]))
        return scores

    def shown(self) -> Lines:
        summary = {**vars(self), "best": self.leading}
        return [selection_table(summary), *selection_in_words(summary), f"Everything is in {self.directory}."]


@dataclass(frozen=True, repr=False)
class SystemsResult(SelectionResult):
    """The content of `selection.json` of a selection by documents.

    `candidates` are `SystemSummary` records. `documents` describes the file and how the selection used it.
    `num_queries` is the number of queries made and `cost` their cost; both exclude kept answers.
    """

    candidate_class = SystemSummary

    task: str = ""
    positive_label: Optional[str] = None
    documents: Mapping[str, Any] = field(default_factory=dict)
    num_queries: Optional[int] = None
    cost: Optional[float] = None


@dataclass(frozen=True, repr=False)
class SearchResult(Shown):
    """The result of a search.

    `screening` is the content of `screening/selection.json`. Its `candidates` are the screened configs in their order
    as finalists, each with `name`, `values`, `score` and `seconds`. `selection` is the result of the second stage. It
    is None if the search stopped in the first stage. `sentences` compare the order of the screening with the fresh
    runs.
    """

    screening: Mapping[str, Any]
    selection: Optional[SelectionResult]
    sentences: Tuple[str, ...] = ()

    def shown(self) -> Lines:
        return [*(() if self.selection is None else self.selection.shown()), *self.sentences]


@dataclass(frozen=True)
class ReplayedCandidate:
    """One candidate of a replay. `recommended` is the share of the repetitions that ended with this candidate."""

    name: str
    true_mean: float
    recommended: float


@dataclass(frozen=True, repr=False)
class ReplayResult(Shown):
    """The result of all repetitions of a replay.

    `best` has the highest true mean. `picked`, `wrong` and `undecided` are shares of the repetitions that add up to 1.
    `correct`, with its 95% Wilson interval, also counts undecided ones whose leader is the best. `num_evaluations` and
    `num_rounds` have one entry for each repetition. `summary` is the content of `fiesta-replay --output`.
    """

    repetitions: int
    interrupted: bool
    best: str
    correct: float
    correct_interval: Tuple[float, float]
    picked: float
    wrong: float
    undecided: float
    mean_evaluations: float
    num_evaluations: Tuple[int, ...]
    num_rounds: Tuple[int, ...]
    candidates: Tuple[ReplayedCandidate, ...]
    seed: str
    seconds: float
    summary: Mapping[str, Any]

    @classmethod
    def of(cls, settings: ReplaySettings, console: Console, source: Optional[ScoreSource] = None) -> "ReplayResult":
        """Make the replay, with a bar on a terminal."""
        with repetition_bar(console, settings.repetitions) as advance:
            made = replay(settings, source=source, on_repetitions=advance)
        if not made.repetitions:
            raise KeyboardInterrupt
        summary = summarise_replay(made)
        own = {
            "mean_evaluations": summary["evaluations"]["mean"],
            "num_evaluations": tuple(repetition.num_evaluations for repetition in made.repetitions),
            "num_rounds": tuple(repetition.num_rounds for repetition in made.repetitions),
            "candidates": tuple(ReplayedCandidate(**entry) for entry in summary["candidates"]),
            "summary": summary,
        }
        return cls(**{**_known(cls, summary), **own})

    def shown(self) -> Lines:
        return [replay_table(self.summary), *replay_in_words(self.summary)]


def _candidate(entry: Union[CandidateSummary, Mapping[str, Any]], record: Type[CandidateSummary]) -> CandidateSummary:
    """Make a record of an entry, without the keys of a later version. No key of the first version may be missing."""
    if isinstance(entry, CandidateSummary):
        return entry
    known = {f.name: entry[f.name] for f in fields(record) if f.name in entry or f.name not in LATER}
    return record(**{**known, "failure_reasons": tuple(known["failure_reasons"])})


def _known(record: Any, content: Mapping[str, Any]) -> Dict[str, Any]:
    return {f.name: content[f.name] for f in fields(record) if f.name in content}
