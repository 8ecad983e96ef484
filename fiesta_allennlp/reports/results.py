"""The results of a selection or a replay, as records that show themselves on a terminal and in a notebook."""

import csv
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.files import from_csv_cell
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.reports.formats import Printable, TerminalLines
from fiesta_allennlp.reports.words import replay_in_words, replay_table, selection_in_words, selection_table
from fiesta_allennlp.selection.progress import repetition_bar
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.tables.replay import replay, summarise_replay
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import ScoreSource


@dataclass(frozen=True, repr=False)
class SelectionResult(Printable, Result):
    """The content of `selection.json`, together with the directory of the selection.

    `best` is None until the selection has decided. `leading` names who leads, decided or not. `confidence` is the
    probability that `leading` is the best (within `margin`), or None if unknown. `scored_on` describes the scored data.
    `seconds` is the sum of the run times of all workers. `candidates` are `CandidateResult` records.
    """

    def scores(self) -> Dict[str, List[float]]:
        """Return the scores of every candidate, in the order in which they arrived."""
        scores: Dict[str, List[float]] = {candidate.name: [] for candidate in self.candidates}
        with RunDirectory(self.directory).evaluations_csv.open(encoding="utf-8", newline="") as csv_file:
            for row in csv.DictReader(csv_file):
                if row["status"] == "finished":
                    scores[from_csv_cell(row["candidate"])].append(float(row["score"]))
        return scores

    def shown(self) -> TerminalLines:
        return [selection_table(self), *selection_in_words(self), f"Everything is in {self.directory}."]


@dataclass(frozen=True, repr=False)
class SystemsResult(SelectionResult, DocumentsResult):
    """The content of `selection.json` of a selection by documents.

    `candidates` are `SystemResult` records. `documents` describes the file and how the selection used it.
    `num_queries` is the number of queries made and `cost` their cost; both exclude kept answers.
    """


@dataclass(frozen=True, repr=False)
class SearchResult(Printable):
    """The result of a search.

    `screening` is the content of `screening/selection.json`. Its `candidates` are the screened configs in their order
    as finalists, each with `name`, `values`, `score` and `seconds`. `selection` is the result of the second stage. It
    is None if the search stopped in the first stage. `sentences` compare the order of the screening with the fresh
    runs.
    """

    screening: Mapping[str, Any]
    selection: Optional[SelectionResult]
    sentences: Tuple[str, ...] = ()

    def shown(self) -> TerminalLines:
        return [*(() if self.selection is None else self.selection.shown()), *self.sentences]


@dataclass(frozen=True)
class ReplayedCandidate:
    """One candidate of a replay. `recommended` is the share of the repetitions that ended with this candidate."""

    name: str
    true_mean: float
    recommended: float


@dataclass(frozen=True, repr=False)
class ReplayResult(Printable):
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
            replay_run = replay(settings, source=source, on_repetitions=advance)
        if not replay_run.repetitions:
            raise KeyboardInterrupt
        summary = summarise_replay(replay_run)
        computed_fields = {
            "mean_evaluations": summary["evaluations"]["mean"],
            "num_evaluations": tuple(repetition.num_evaluations for repetition in replay_run.repetitions),
            "num_rounds": tuple(repetition.num_rounds for repetition in replay_run.repetitions),
            "candidates": tuple(ReplayedCandidate(**entry) for entry in summary["candidates"]),
            "summary": summary,
        }
        return cls(**{**{f.name: summary[f.name] for f in fields(cls) if f.name in summary}, **computed_fields})

    def shown(self) -> TerminalLines:
        return [replay_table(self.summary), *replay_in_words(self.summary)]
