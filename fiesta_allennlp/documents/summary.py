"""A system in `selection.json`."""

from dataclasses import dataclass
from typing import Optional

from fiesta_allennlp.selection.summary import CandidateSummary


@dataclass(frozen=True)
class SystemSummary(CandidateSummary):
    """A system in numbers. `measure` is over everything that it was asked about; None before its first answer. Kept
    answers count neither in `num_queries` nor in `cost`, which are None if unknown."""

    measure: Optional[float] = None
    num_documents: int = 0
    num_queries: Optional[int] = None
    cost: Optional[float] = None
