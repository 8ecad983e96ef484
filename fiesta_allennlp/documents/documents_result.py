"""The result of a selection by documents, as `selection.json` has it."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Mapping, Optional, Tuple, Type

from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.result_words import Words

DOCUMENT_WORDS = Words("system", "systems", "document", "documents", "answered documents", "system")

BATCH_WORDS = Words("system", "systems", "batch", "batches", "answered batches", "system")


@dataclass(frozen=True)
class SystemResult(CandidateResult):
    """A system in numbers. `measure` is over everything that it was asked about; None before its first answer. Kept
    answers count neither in `num_queries` nor in `cost`, which are None if unknown.

    `num_unknown` answers are no gold label; `unknown_labels` are the commonest of them with their numbers.

    `scores` are those of single documents or of batches. `interval` is the 95% credible interval of the measure of all
    answers on all documents like these, by the selection's posterior; None if the posterior is not about measures.
    """

    measure: Optional[float] = None
    num_documents: int = 0
    num_queries: Optional[int] = None
    cost: Optional[float] = None
    num_unknown: int = 0
    unknown_labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class DocumentsResult(Result):
    """The content of `selection.json` of a selection by documents.

    `candidates` are `SystemResult` records. `documents` describes the file and how the selection used it.
    `num_queries` is the number of queries made and `cost` their cost; both exclude kept answers, and are None if
    unknown.
    """

    candidates: Tuple[SystemResult, ...]
    task: str = ""
    positive_label: Optional[str] = None
    documents: Mapping[str, Any] = field(default_factory=dict)

    candidate_class: ClassVar[Type[CandidateResult]] = SystemResult
    by_documents: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        return DOCUMENT_WORDS if self.documents.get("batch_size", 1) == 1 else BATCH_WORDS

    @property
    def compared(self) -> Tuple[Any, ...]:
        """Nothing: a measure of all answers together has no single scores."""
        return ()

    @property
    def num_queries(self) -> Optional[int]:
        numbers = [system.num_queries for system in self.candidates if system.num_queries is not None]
        return sum(numbers) if numbers else None

    @property
    def cost(self) -> Optional[float]:
        costs = [system.cost for system in self.candidates if system.cost is not None]
        return sum(costs) if costs else None
