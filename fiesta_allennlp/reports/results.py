"""The results of a selection or a search, as records that show themselves on a terminal and in a notebook."""

import csv
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.files import from_csv_cell
from fiesta_allennlp.documents.result import DocumentsResult
from fiesta_allennlp.reports.formats import Printable, TerminalLines
from fiesta_allennlp.reports.words import selection_in_words
from fiesta_allennlp.selection.candidate_table import candidate_table
from fiesta_allennlp.selection.result import Result


@dataclass(frozen=True, repr=False)
class SelectionResult(Printable, Result):
    """The content of `selection.json`, together with the directory of the selection.

    `best` is None until the selection has decided. `leading` names who leads, decided or not. `confidence` is the
    probability that `leading` is the best (within `margin`), or None if unknown.
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
        return [
            candidate_table(self, title=self.metric_text),
            *selection_in_words(self),
            f"Everything is in {self.directory}.",
        ]


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
