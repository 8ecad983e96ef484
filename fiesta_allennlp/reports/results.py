"""The results of a selection, as records that show themselves on a terminal and in a notebook."""

import csv
from dataclasses import dataclass
from typing import Dict, List

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
